"""Hypothesis strategies for everything that an RM can send: configurations, applications, asks, gangs.

`test_everything.py` runs the state machine that draws from these.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.core.doorkeepers import admissions
from tests.core.kit import document, partition
from tests.core.machine import LIMITS, REQUIRED
from tests.core.predicate_tags import DISK, SHY, ZONE
from tests.core.predicates import plugins
from tests.core.reservers import reservings
from tests.core.victim_choosers import victim_choosers
from yunikorn.config.load import check_config
from yunikorn.interface.messages import PreemptionPolicy

QUEUES = ["root.a", "root.a", "root.b", "root.p.c", "root.p.c", "root.p.d", "root.e", "root.p.m"]
STOPPABLE = ["root.a", "root.b", "root.p.c", "root.p", "root"]
NODES = ["n0", "n1", "n2", "n3"]
GROUPS = {"u1": ["g1"], "u2": ["g2", "g1"], "u3": []}
KEYS = ["k0", "k1", "k2", "k3"]
TASKS = ["t1", "t1", "t2"]
AMOUNTS = st.fixed_dictionaries({"memory": st.integers(1, 3)}, optional={"vcore": st.integers(1, 3)})
CAPACITIES = st.fixed_dictionaries({"memory": st.sampled_from([2, 4, 8])}, optional={"vcore": st.just(6)})
QUOTAS = st.fixed_dictionaries({"memory": st.integers(2, 12)}, optional={"vcore": st.integers(2, 9)})
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={ZONE: st.sampled_from(["x", "y"]), DISK: st.sampled_from(["ssd", "hdd"])}
)
TAGS: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            ZONE: st.sampled_from(["x", "y"]),
            DISK: st.sampled_from(["ssd", "hdd"]),
            SHY: st.just("yes"),
            "creationTime": st.sampled_from(["0", "5"]),
            REQUIRED: st.sampled_from(["n0", "n1"]),
        },
    ),
)
DEFAULTS = [
    {"name": "spread", "attribute": ZONE, "max": 3, "skew": 2},
    {"name": "anti-affinity", "labels": DISK, "tag": DISK},
]
"""Default predicates that keep books."""
POLICIES = st.sampled_from(
    [
        None,
        None,
        None,
        PreemptionPolicy(allow_preempt_self=False),
        PreemptionPolicy(allow_preempt_other=False),
    ]
)
ASKS = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "count": st.sampled_from([1, 1, 2, 3]),
        "priority": st.sampled_from([0, 0, 0, 1, -1, 5]),
        "tags": TAGS,
        "amount": AMOUNTS,
        "originator": st.sampled_from([False, False, False, True]),
        "policy": POLICIES,
        "limit": st.sampled_from([0, 0, 0, 20]),
        "task": st.sampled_from(["", "", "", *TASKS]),
        "placeholder": st.booleans(),
    }
)
APPS = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "user": st.sampled_from(sorted(GROUPS)),
        "style": st.sampled_from(["", "", "", "Soft", "Hard", "Atomic", "Atomic"]),
        "size": st.integers(2, 4),
        "each": st.integers(1, 2),
        "limit": st.sampled_from([0, 0, 25, 70]),
        "forced": st.sampled_from([False, False, False, False, True]),
    }
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "application.sort.policy": st.sampled_from(["fifo", "stateaware", "fair"]),
        "application.sort.priority": st.sampled_from(["enabled", "disabled"]),
        "priority.policy": st.just("fence"),
        "priority.offset": st.sampled_from(["-1", "2"]),
        "preemption.policy": st.sampled_from(["fence", "disabled"]),
        "preemption.delay": st.sampled_from(["5s", "10s"]),
        "preemption.by.priority": st.just("enabled"),
        "preemption.within.queue": st.just("enabled"),
        "quota.preemption.delay": st.just("8s"),
        "application.unschedasks.backoff": st.just("2"),
        "application.unschedasks.backoff.delay": st.just("10s"),
        "node.sort.policy": st.just("packed"),
        "queue.state": st.sampled_from(["active", "active", "stopped"]),
    },
)


def starting(
    config: st.SearchStrategy[str],
    *,
    capacities: st.SearchStrategy[dict[str, int]] = CAPACITIES,
    nodes: tuple[int, int] = (1, 3),
    apps: tuple[int, int] = (2, 4),
    asks: int = 2,
) -> Any:
    """Return the first rule of a machine, which draws a configuration and begins with nodes and applications.

    `nodes` and `apps` are the smallest and the largest number; each application has up to `asks` asks.
    """

    @initialize(
        config=config,
        capacities=st.lists(capacities, min_size=nodes[0], max_size=nodes[1]),
        apps=st.lists(st.tuples(APPS, st.lists(ASKS, max_size=asks)), min_size=apps[0], max_size=apps[1]),
        reserving=st.booleans(),
        eager=st.booleans(),
    )
    def start(
        self: Any,
        config: str,
        capacities: list[dict[str, int]],
        apps: list[tuple[dict[str, Any], list[dict[str, Any]]]],
        reserving: bool,
        eager: bool,
    ) -> None:
        self.begin(config, reserving=reserving, eager=eager)
        for node_id, capacity in zip(NODES, capacities, strict=False):
            self.add_node(node_id, capacity, {})
        for app, drawn in apps:
            self.submit_with(app, drawn)

    return start


def _texts(amount: dict[str, int]) -> dict[str, str]:
    return {name: f"{value}m" if name == "vcore" else str(value) for name, value in amount.items()}


@st.composite
def _queues(draw: Any, name: str, *children: str) -> dict[str, Any]:
    config: dict[str, Any] = {"name": name}
    resources: dict[str, Any] = {}
    if children:
        config["parent"] = True
        config["queues"] = [draw(_queues(child)) for child in children if draw(st.integers(0, 7))]
        if draw(st.integers(0, 3)) == 0:
            config["childtemplate"] = {"maxapplications": 2, "resources": {"max": {"memory": "5"}}}
    if draw(st.booleans()):
        config["properties"] = draw(PROPERTIES)
    if draw(st.integers(0, 2)) == 0:
        resources["max"] = _texts(draw(QUOTAS))
    if draw(st.integers(0, 2)) == 0:
        resources["guaranteed"] = _texts(draw(QUOTAS))
    if resources:
        config["resources"] = resources
    if draw(st.integers(0, 4)) == 0:
        config["limits"] = draw(st.lists(LIMITS, min_size=1, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        config["maxapplications"] = draw(st.integers(1, 3))
    return config


@st.composite
def configurations(draw: Any) -> str:
    """Draw the text of a valid configuration."""
    names = (("a",), ("b",), ("p", "c", "d"), ("e",))
    config = partition(*[draw(_queues(*each)) for each in names if draw(st.integers(0, 9))])
    config["placementrules"] = [{"name": "provided", "create": draw(st.integers(0, 4)) > 0}]
    if draw(st.integers(0, 3)) == 0:
        config["queues"][0]["limits"] = draw(st.lists(LIMITS, min_size=1, max_size=1))
    config["nodesortpolicies"] = [{"name": "packed", "type": "binpacking"}]
    config["nodesortpolicy"] = {"type": draw(st.sampled_from(["fair", "binpacking", "sparse"]))}
    config["preemption"] = {
        "enabled": draw(st.integers(0, 3)) > 0,
        "quotapreemptionenabled": draw(st.booleans()),
        "shrunknodes": draw(st.booleans()),
        "policy": draw(victim_choosers()),
    }
    known = ["zone", "crowd", "disk", "ledger", "few", "even", "alone", "witness", *DEFAULTS]
    config["admission"] = draw(admissions())
    config["reservations"] = draw(reservings(without=4))
    config["predicates"] = [one for one in known if draw(st.integers(0, 2)) == 0]
    return valid(config)


def valid(config: dict[str, Any]) -> str:
    """Return the text of a configuration; quotas and limits are left out where they contradict each other."""
    for keys in ((), ("guaranteed",), ("max",), ("maxapplications",), ("max", "guaranteed"), ("limits",)):
        tried = copy.deepcopy(config)
        _strip(tried["queues"][0], keys)
        if check_config(document(tried), plugins()).valid:
            return document(tried)
    _strip(config["queues"][0], ("max", "guaranteed", "maxapplications", "limits"))
    return document(config)


def _strip(queue: dict[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        queue.pop(key, None)
        queue.get("resources", {}).pop(key, None)
    if "maxapplications" in keys:
        queue.pop("childtemplate", None)
    for child in queue.get("queues", ()):
        _strip(child, keys)
