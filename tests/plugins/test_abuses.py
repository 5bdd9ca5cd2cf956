"""Every abuse in every method of every kind of plugin: contained, named, counted, with correct books."""

from __future__ import annotations

import functools
import inspect
import json
import traceback
from collections import Counter
from typing import Any

import attrs
import pytest

import yunikorn_testing as testing
from tests.core.kit import plugin_with
from tests.core.partition_checks import check_sums
from tests.core.strict import StrictRM, Submitted
from tests.example_counts import examples
from tests.plugins.abuses import ABUSES, RAISING, Abuse, coroutine, generator
from yunikorn.api import Wait
from yunikorn.containment import describe_error
from yunikorn.errors import ConfigError
from yunikorn.framework.kinds import GANG_PLACEMENT, KINDS, PREDICATE, PluginKind
from yunikorn.framework.registry import Registry
from yunikorn.model.context import Timeouts
from yunikorn_commands.interrupts import interrupts_known
from yunikorn_testing import PluginContract

PLUGIN = ("test-plugin", "yunikorn-test", "1.0")
REGISTRY = Registry.load(third_party=False)
"""Registry of all cases; each adds its plugin, and removes it."""
ORIGIN = "bad of test-plugin (yunikorn-test 1.0)"
SOUND: dict[str, Any] = {"key": 0, "rank": 0, "score": 0.0, "place": "root.default", "groups": ()}
SOUND |= {"reserves_after": 0, "path": ("one", "1")}
"""Sound answer of the method of a kind; None for the others."""
CONTRACTS: dict[str, type[PluginContract]] = {
    contract.kind.id: contract
    for contract in vars(testing).values()
    if inspect.isclass(contract) and issubclass(contract, PluginContract) and hasattr(contract, "kind")
}
NEAR = {
    "yunikorn.apache.org/gang-topology": '{"preferred": [{"level": "site", "for": "1s"}], '
    '"slices": [{"size": 1, "level": "zone"}]}'
}
"""Tag of a gang that prefers a level for a time."""
TOO_MUCH = 10_000_000
"""Largest size in characters of everything that a cluster reports about a plugin."""


COMPANIONS: dict[str, tuple[str, ...]] = {
    "placed": ("released", "ask_class", "domain", "subjects"),
    "released": ("placed", "ask_class", "domain", "subjects"),
    "commit": ("placed", "released"),
    "node_added": ("placed", "released", "ask_class", "domain"),
    "node_removed": ("placed", "released", "ask_class", "domain"),
    "domain": ("placed", "released", "ask_class", "subjects"),
    "subjects": ("placed", "released", "ask_class", "domain"),
    "subject": ("placed", "released"),
    "node_class": ("ask_class",),
    "classes_version": ("ask_class",),
    "domain_in": ("placed", "released", "ask_class", "scope", "subjects"),
    "scope": ("placed", "released", "ask_class", "domain_in", "subjects"),
    "admission_limits": ("admission_class",),
    "group": ("permit",),
    "wanted": ("check",),
    "calls_at_once": ("blocking",),
    "path": ("levels",),
    "opened": ("levels",),
    "reloaded": ("levels",),
    "closed": ("levels",),
    "score": ("compares",),
    "reason": ("reserves_after",),
}
"""Other members without which a member is not called; a kind may lack some of them."""


def _refusing(self: object, ask: Any, node: Any) -> str | None:
    """Refuse a zone to one application, so that a refusal of a domain is remembered and reviewed."""
    return "not here" if ask.app.id == "app-1" and node.attributes.get("zone") == "1" else None


SOUND_COMPANIONS: dict[str, Any] = {
    "placed": lambda self, task, node: None,
    "released": lambda self, task, node: None,
    "ask_class": lambda self, ask: getattr(ask, "tags", {}).get("zone"),
    "domain": lambda self, node: node.attributes.get("zone"),
    "scope": lambda self, ask, node: "zone",
    "domain_in": lambda self, node, scope: node.attributes.get("zone"),
    "subjects": lambda self, task: (task.app.id,),
    "admission_class": lambda self, app: app.user,
    "permit": lambda self, allocation: Wait(20, "held"),
    "check": lambda self, ask, node: "not here" if ask.app.id == "app-1" else None,
    "blocking": True,
    "levels": ("site", "zone"),
    "compares": 2,
    "reserves_after": lambda self, ask, delay: None,
}
BOOKS = ("placed", "released", "node_added", "node_removed", "prepare", "domain", "subjects")
"""Members of plugins that keep books."""
UNCALLED = {
    "__class__": "the core asks for the type of a plugin, which no plugin can change",
    "close_before_open": "read from the class, where a property is only true",
    "normalised": "read from the class, where only True counts",
    "key_range": "read where the policy is a factor of another one",
    "counts_foreign": "read from the class, where only True and False are accepted",
    "on_reservation": "read from the class, where only True and False are accepted",
    "blocking": "read where threads ask",
    "calls_at_once": "read where threads ask",
    "saved": "called for a snapshot",
    "restored": "called for a snapshot",
}
"""Members that the cluster of the matrix does not call, with the reason."""


def members(kind: PluginKind) -> list[str]:
    """Return the names of the methods and properties of a kind, its constructor and class included."""
    public = [name for name in dir(kind.base) if not name.startswith("_") and name != "name"]
    return sorted({*public, kind.method, "__init__", "__class__"})


@attrs.define
class Calls:
    """Number of calls of the member that misbehaves."""

    count: int = 0


def plugin_class(kind: PluginKind, member: str, abuse: Abuse, calls: Calls) -> type[Any]:
    """Return a class called `bad` whose `member` misbehaves, and whose other methods are sound."""

    def sound(self: object, *_: object, **__: object) -> Any:
        return SOUND.get(kind.method)

    def body(self: object, *arguments: object, **named: object) -> Any:
        calls.count += 1
        return abuse(*arguments, **named)

    made = abuse if abuse in (coroutine, generator) else body
    found = inspect.getattr_static(kind.base, member, sound)
    is_method = inspect.isfunction(found) or member == "__init__"
    namespace = {"name": "bad", kind.method: sound, member: made if is_method else property(made)}
    if member == "check_nodes":
        namespace["asks_ahead"] = True
    for companion in COMPANIONS.get(member, ()):
        if hasattr(kind.base, companion):
            namespace[companion] = SOUND_COMPANIONS[companion]
    if "domain" in namespace or "scope" in namespace:
        namespace["check"] = _refusing
    return type("Bad", (kind.base,), namespace)


@functools.cache
def config(kind: PluginKind, also: str = "", *, several: bool = False) -> str:
    """Return a configuration that names the plugin, with `several` beside another node sort policy."""
    stand_in = plugin_class(kind, kind.method, lambda *_, **__: SOUND.get(kind.method), Calls())
    contract = CONTRACTS[kind.id]
    case: PluginContract = type("Contract", (contract,), {contract.subject: stand_in()})()
    document = json.loads(case.configuration(also))
    if several:
        scores = [{"name": "bad"}, {"name": "binpacking", "weight": 2}]
        document["partitions"][0]["nodesortpolicy"] = {"type": "weighted", "scores": scores}
    if kind in (GANG_PLACEMENT, PREDICATE):
        document["partitions"][0]["topology"] = ["site", "zone"]
    for queue in document["partitions"][0]["queues"][0]["queues"]:
        if queue["name"] == "other":
            queue["resources"] = {"guaranteed": {"vcore": "4m"}}
    return json.dumps(document)


def run(rm: StrictRM, changed: str, *, gang_preempts: bool = False) -> None:
    """Let everything happen that calls a plugin: placement, gangs, releases, explanations, a reload to the
    configuration `changed`.
    """
    for number in (1, 2):
        rm.nodes[f"n{number}"] = None
        rm.node(f"n{number}", {"site": "one", "zone": f"{number}"}, vcore=4)
    # The first two fill the nodes, and the last one preempts.
    for number, queue in enumerate(["root.default", "root.default", "root.other"]):
        name = f"app-{number}"
        rm.apps[name] = Submitted()
        group = "group" if gang_preempts and number == 2 else ""
        if group:
            rm.gang(name, "Atomic", queue, vcore=4)
        else:
            rm.app(name, queue, user=f"user-{number}", groups=(), zone="1")
        if name in rm.apps:
            rm.wanted[name, "ask"] += 2
            rm.task(name, "ask", group, 2, vcore=2, tags={"zone": "1"})
        rm.schedule()
    examine(rm)
    rm.pass_time(70)
    rm.schedule()
    rm.confirm(*rm.evicted)
    rm.apps["gang"] = Submitted()
    has_levels = "topology" in json.loads(changed)["partitions"][0]
    rm.gang("gang", queue_name="root.default", tags=NEAR if has_levels else {}, vcore=2)
    if "gang" in rm.apps:
        rm.wanted["gang", "placeholder"] += 2
        rm.task("gang", "placeholder", "group", 2, placeholder=True, vcore=1)
    rm.schedule()
    rm.reload(changed)
    for uuid, one in list(rm.running.items())[:2]:
        rm.release(one.application_id, uuid)
    rm.change_node("n1", attributes={"site": "one", "zone": "3"}, vcore=5)
    rm.schedule()
    examine(rm)
    rm.pass_time(70)
    rm.schedule()


def examine(rm: StrictRM) -> None:
    """Explain every pending request, and compare the books of the core with those of the RM and a recount."""
    for app_id in rm.apps:
        rm.scheduler.explain(rm.rm_id, "default", app_id)
    list(rm.scheduler.first_reasons(rm.rm_id))
    check_sums(rm)


CASES = [(kind, member) for kind in KINDS for member in members(kind)]
SHARED = Counter(member for _, member in CASES)
"""Number of kinds that have a member of this name."""
KINDS_OF_COMMON = examples(3)
"""Number of kinds in which each abuse is tried of a member that all kinds have: they share its code."""


def abuses_of(kind: PluginKind, member: str, each: int) -> list[str]:
    """Return the abuses to try, such that each is tried in `each` of the kinds that have the member."""
    if SHARED[member] <= each:
        return list(ABUSES)
    having = [one for one, name in CASES if name == member]
    turn, step = having.index(kind), len(having)
    return [abuse for number, abuse in enumerate(ABUSES) if (number * each - turn) % step < each]


@pytest.mark.parametrize(("kind", "member"), CASES, ids=lambda one: getattr(one, "id", one))
def test_abuses_are_contained_named_and_counted(kind: PluginKind, member: str) -> None:
    each = KINDS_OF_COMMON if SHARED[member] == len(KINDS) else len(KINDS)
    found = {abuse: fault(kind, member, abuse) for abuse in abuses_of(kind, member, each)}
    assert not {abuse: text for abuse, text in found.items() if text}


def fault(kind: PluginKind, member: str, abuse: str) -> str:
    """Return what the core makes wrong of an abuse, "" if all is well."""
    try:
        check(kind, member, abuse)
    except AssertionError as error:
        return str(error) or "an assertion without a text"
    except BaseException as error:
        # pytest would print values of the plugin, and fail at that.
        places = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
        return f"{describe_error(error)} was not contained, at {' '.join(places[-6:])}"
    return ""


def check(kind: PluginKind, member: str, abuse: str) -> None:
    """Let one member of a plugin misbehave in one way, and assert what the core makes of it."""
    calls = Calls()
    cls = plugin_class(kind, member, ABUSES[abuse], calls)
    plugin = plugin_with(**{kind.hook.removeprefix("yunikorn_"): [cls]})
    if not REGISTRY.register(plugin, *PLUGIN):
        assert "test-plugin (yunikorn-test 1.0)" in str(REGISTRY.broken[-1]), "left out, and named"
        return
    try:
        with interrupts_known():
            play(kind, member, abuse, calls)
    finally:
        REGISTRY.unregister("test-plugin")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_every_member_is_called(kind: PluginKind) -> None:
    """A case whose member is never called, or whose class is left out, would test nothing."""
    assert uncalled_members(kind) <= UNCALLED.keys()


def uncalled_members(kind: PluginKind, scheduler: Any = None) -> set[str]:
    """Return the members of a kind that are never called in their cases."""
    uncalled = set()
    for member in members(kind):
        calls = Calls()
        cls = plugin_class(kind, member, ABUSES["None"], calls)
        plugin = plugin_with(**{kind.hook.removeprefix("yunikorn_"): [cls]})
        if REGISTRY.register(plugin, *PLUGIN):
            try:
                play(kind, member, "None", calls, scheduler)
            finally:
                REGISTRY.unregister("test-plugin")
        if not calls.count:
            uncalled.add(member)
    return uncalled


def play(kind: PluginKind, member: str, abuse: str, calls: Calls, scheduler: Any = None) -> None:
    """Run a cluster with the plugin; its refusals and its failures have to name it."""
    before = occurrences(scheduler)
    rm, refused = None, ""
    several = member == "score_range"
    try:
        rm = StrictRM(config(kind, several=several), REGISTRY, Timeouts(), scheduler)
        run(rm, config(kind, "new", several=several), gang_preempts=member == "cost_of_units")
    except ConfigError as error:
        refused = str(error)
    assert not refused or ORIGIN in refused, "refused, and named"
    if rm is None:
        return
    check_sums(rm)
    rm.scheduler.stop(rm.rm_id)
    failures = [
        failure
        for failure in rm.scheduler.failures
        if failure.count > before.get((failure.plugin, failure.operation), 0)
    ]
    assert {failure.plugin for failure in failures} <= {ORIGIN}, "named with its distribution"
    if abuse in RAISING and calls.count and member != "wanted":  # explanations name it, and report nothing
        assert failures or refused, "counted"
    assert sum(len(failure.message) for failure in failures) < TOO_MUCH
    assert sum(len(repr(response)) for response in rm.all_said) < TOO_MUCH


def occurrences(scheduler: Any) -> dict[tuple[str, str], int]:
    """Return how often each plugin has failed at each operation; a served core has had earlier cases."""
    found = () if scheduler is None else scheduler.failures
    return {(failure.plugin, failure.operation): failure.count for failure in found}
