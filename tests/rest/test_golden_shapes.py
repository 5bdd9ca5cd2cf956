"""Answers of all routes of YuniKorn 1.9, field by field: name, kind, unit, presence and order.

`golden_shapes` is the table of all objects. Three things are compared with it: the classes from which the
answers and the OpenAPI document are made, the answers of some clusters, and the union of the fields in these
answers, so that no field of the table is without a cluster that shows it.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from tests.core.test_backoff import Never
from tests.rest.golden_shapes import ORDERS, OTHER_ROUTES, ROUTES, TABLE
from tests.rest.kit import Rest
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.constants import HOST_NAME, INSTANCE_TYPE, RACK_NAME
from yunikorn.interface.messages import (
    Allocation,
    RegisterResourceManagerRequest,
    TerminationType,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import Resource
from yunikorn_rest import config_shapes, event_json, shapes
from yunikorn_rest.encoding import EncodedList
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.routes import dump_routes
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_rest.sampled_history import HistorySample
from yunikorn_service.fields import is_shape, members_of

START = 1_700_000_000 * SECOND
A_DAY = 24 * 3600 * SECOND


@attrs.frozen
class Field:
    """A line of the table."""

    kind: str
    optional: bool
    """True if the field is absent while it is empty, here."""
    own: bool
    """True if 1.9 does not have the field."""


@cache
def table() -> dict[str, dict[str, Field]]:
    """Return the fields of each object by name."""
    found: dict[str, dict[str, Field]] = {}
    for block in TABLE.strip().split("\n\n"):
        name, *lines = block.split("\n")
        fields = found.setdefault(name, {})
        for line in lines:
            field, kind, *mark = line.split()
            fields[field] = Field(kind.rstrip("?!"), kind.endswith("?"), mark == ["+"])
    return found


# -- the table and the classes ---------------------------------------------------------------------------

SIMPLE: Mapping[Any, str] = {str: "text", int: "integer", bool: "flag", float: "number"}
MEANINGS = {
    "text": {"go-duration", "rfc3339"},
    "integer": {"ns", "ms", "duration"},
    "{integer}": {"amounts", "percent", "counts"},
    "{text}": {"texts"},
    "{Any}": {"texts"},
    "{number}": {"weights"},
    "{{integer}}": {"usage"},
}
"""Kinds of the table by the kind that a class declares."""


def classes() -> dict[str, Any]:
    """Return the classes of all objects of the table, by name."""
    found = {"EventBatch": event_json.EventBatch}
    for module, prefix in ((shapes, ""), (config_shapes, "Config"), (dump_routes, "")):
        for name, kind in vars(module).items():
            if is_shape(kind) and kind.__module__ == module.__name__:
                found[name if name == "Configuration" else f"{prefix}{name}"] = kind
    return found


def kind_of(declared: Any) -> str:
    """Return a declared type as the table spells it."""
    if is_shape(declared):
        prefix = "Config" if declared.__module__ == config_shapes.__name__ else ""
        name = str(declared.__name__)
        return name if name == "Configuration" else prefix + name
    if declared in SIMPLE:
        return SIMPLE[declared]
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is tuple or origin is list:
        return f"[{kind_of(arguments[0])}]"
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{{{kind_of(arguments[1])}}}"
    if NoneType in arguments or EncodedList in arguments:
        return kind_of(arguments[0])
    return "Any"


def same_kind(declared: str, wanted: str) -> bool:
    """Return True if a class declares what the table wants."""
    if declared.startswith("[") and wanted.startswith("["):
        return same_kind(declared[1:-1], wanted[1:-1])
    return wanted == declared or wanted in MEANINGS.get(declared, ())


@pytest.mark.parametrize("name", [name for name in table() if name not in ("EventRecord", "EventResource")])
def test_classes_have_the_fields_of_the_table(name: str) -> None:
    members = {member.name: member for member in members_of(classes()[name])}
    if name == "EventBatch":
        assert members.keys() == table()[name].keys()
        return
    assert members.keys() == table()[name].keys()
    for field, wanted in table()[name].items():
        assert members[field].omitted == wanted.optional, field
        assert same_kind(kind_of(members[field].type), wanted.kind), field


def test_every_route_of_the_table_exists() -> None:
    known = {(endpoint.path, endpoint.method) for endpoint in ENDPOINTS}
    wanted = {(path.partition("?")[0], "GET") for path in ROUTES}
    wanted |= {(path, method) for path, (method, _) in OTHER_ROUTES.items()}
    by_state = {path.rpartition("/")[0] + "/{state}" for path, _ in wanted if "/applications/" in path}
    wanted = {one for one in wanted if "/applications/" not in one[0]} | {(path, "GET") for path in by_state}
    assert wanted <= known


# -- the table and the answers ---------------------------------------------------------------------------


def check(value: Any, kind: str, where: str, seen: set[str]) -> None:
    """Compare a part of an answer with its kind, and collect the fields that have a value."""
    if kind in table():
        check_object(value, kind, where, seen)
    elif kind.startswith("["):
        assert isinstance(value, list), where
        for index, inner in enumerate(value):
            check(inner, kind[1:-1], f"{where}[{index}]", seen)
    else:
        assert CHECKS[kind](value), f"{where} is not {kind}: {value!r}"


def check_object(value: Any, kind: str, where: str, seen: set[str]) -> None:
    """Compare an object with the table."""
    assert isinstance(value, dict), where
    fields = table()[kind]
    assert value.keys() <= fields.keys(), where
    for name, field in fields.items():
        if name not in value:
            assert field.optional, f"{where}.{name} is missing"
            continue
        given = value[name]
        # An empty object stays, as in Go, which omits only empty mappings.
        empty = given in ("", 0, False, None) or (given in ([], {}) and field.kind not in table())
        assert not (empty and field.optional), f"{where}.{name} is empty"
        if given is None:
            assert (kind, name) == ("EventBatch", "EventRecords"), f"{where}.{name} is null"
            continue
        check(given, field.kind, f"{where}.{name}", seen)
        order = ORDERS.get(f"{kind}.{name}")
        if order is not None:
            keys = [one.get(order, 0) for one in given]
            assert keys == sorted(keys, key=_natural), f"{where}.{name} is not sorted"
        if given not in ([], {}):
            seen.add(f"{kind}.{name}")


def _natural(key: Any) -> Any:
    return int(key.partition("-")[0]) if isinstance(key, str) else key


def is_integer(value: Any) -> bool:
    """Return True for a 64-bit integer."""
    return type(value) is int and -(2**63) <= value < 2**63


def mapping_of(check_value: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check of mappings from texts, with sorted keys."""
    return lambda value: (
        isinstance(value, dict) and list(value) == sorted(value) and all(map(check_value, value.values()))
    )


def matching(pattern: str) -> Callable[[Any], bool]:
    """Return a check of texts."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "flag": lambda value: isinstance(value, bool),
    "integer": is_integer,
    "ns": lambda value: is_integer(value) and START <= value < START + A_DAY,
    "ms": lambda value: is_integer(value) and START <= value * 1_000_000 < START + A_DAY,
    "duration": lambda value: is_integer(value) and 0 < value < A_DAY,
    "go-duration": matching(r"(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|µs|ns)"),
    "rfc3339": matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "texts": mapping_of(lambda value: isinstance(value, str)),
    "amounts": mapping_of(is_integer),
    "counts": lambda value: all(map(is_integer, value.values())) and "total" in value,
    "percent": mapping_of(lambda value: is_integer(value) and value >= 0),
    "weights": mapping_of(lambda value: isinstance(value, (int, float))),
    "usage": mapping_of(mapping_of(is_integer)),
    "EventAmounts": mapping_of(lambda value: value == {} or (value.keys() == {"value"} and value["value"])),
}


# -- clusters --------------------------------------------------------------------------------------------

CONFIG = document(
    partition(
        queue(
            "a",
            resources={"guaranteed": {"vcore": "2"}, "max": {"vcore": "12", "memory": "100"}},
            maxapplications=9,
            adminacl="root",
            submitacl="*",
            properties={"priority.offset": "3"},
            limits=[
                {"limit": "ann", "users": ["ann"], "maxapplications": 2, "maxresources": {"vcore": "9"}},
                {"limit": "dev", "groups": ["dev"], "maxapplications": 9},
            ],
        ),
        queue(
            "p",
            parent=True,
            childtemplate={
                "maxapplications": 5,
                "properties": {"application.sort.policy": "fifo"},
                "resources": {"max": {"vcore": "2"}, "guaranteed": {"vcore": "1"}},
            },
        ),
        placementrules=[
            {
                "name": "tag",
                "value": "namespace",
                "create": True,
                "filter": {"type": "allow", "users": ["ann", "bob"], "groups": ["^d.*"]},
                "parent": {"name": "fixed", "value": "root.p"},
            },
            {"name": "provided", "filter": {"type": "deny", "users": ["^bad-"], "groups": ["x", "y"]}},
        ],
        nodesortpolicy={"type": "binpacking", "resourceweights": {"vcore": 2, "memory": 0.5}},
        usergroupresolver={"type": "os"},
        preemption={"enabled": True, "quotapreemptionenabled": True},
        limits=[{"limit": "all", "users": ["*"], "maxapplications": 20}],
        topology=[RACK_NAME],
    )
)


def new_scheduler(store: EventStore, registry: Registry | None = None) -> Scheduler:
    """Return a scheduler that begins at a time of this century, and keeps its events."""
    registry = registry or Registry.load(third_party=False)
    return Scheduler(registry, ManualClock(START), event_receiver=store)


def busy(store: EventStore) -> tuple[RM, str, str]:
    """Return a cluster with applications in many states, the id of an application, and a node."""
    rm = RM(CONFIG, scheduler=new_scheduler(store))
    request = RegisterResourceManagerRequest("rm", config=CONFIG)
    request.build_info, request.extra_config = {"buildVersion": "1"}, {"log.level": "INFO"}
    rm.scheduler.register_resource_manager(request, rm)
    attributes = {HOST_NAME: "h1", RACK_NAME: "r1", INSTANCE_TYPE: "big"}
    rm.node("n1", attributes, vcore=4000, memory=100)
    rm.node("n2", vcore=4000, memory=100)
    foreign = Allocation("system", "", node_id="n2", resource_per_alloc=Resource(vcore=500))
    foreign.allocation_tags = {"foreign": "default"}
    rm.update(allocations=[foreign])
    rm.app("app", user="ann", groups=["dev"])
    rm.ask("app", "driver", vcore=500, originator=True, tags={"k": "v"})
    rm.ask("app", "small", 2, vcore=500, priority=3, tags={"k": "v"})
    rm.pass_time(1)
    rm.schedule()
    rm.app("done", user="bob", groups=["ops"])
    rm.ask("done", vcore=100)
    rm.schedule()
    rm.pass_time(2)
    rm.release("done", next(uuid for uuid, one in rm.running.items() if one.application_id == "done"))
    rm.pass_time(60)
    rm.ask("app", "large", vcore=4000, originator=True, tags={"k": "v", REQUIRED_NODE_TAG: "n2"})
    rm.ask("app", "many", 2, vcore=8000)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    rm.app("tagged", "", user="ann", groups=["dev"], namespace="blue")
    rm.app("lost", "root.none", user="bob", groups=["ops"])
    rm.scheduler.stop_partition("rm", "default")
    return rm, "app", "n1"


def gangs(store: EventStore) -> tuple[RM, str, str]:
    """Return a cluster with gangs: one with a replaced placeholder, one that waits, one that timed out."""
    rm = GangRM(scheduler=new_scheduler(store))
    rm.node(vcore=10)
    rm.gang("late", vcore=3, seconds=5)
    rm.task("late", "p", "tg", 3, placeholder=True, vcore=1)
    rm.schedule()
    rm.task("late", "other", "tg", vcore=1)
    rm.gang("gang", vcore=2)
    rm.task("gang", "ph", "tg", 2, placeholder=True, vcore=1)
    rm.schedule()
    rm.take_response()
    rm.pass_time(5)
    rm.confirm()
    rm.task("gang", "real", "tg", vcore=1)
    rm.scheduler.schedule()
    for release in list(rm.evicted.values()):
        if release.termination_type == TerminationType.PLACEHOLDER_REPLACED:
            rm.release(release.application_id, release.uuid, termination=release.termination_type)
    rm.gang("waits", vcore=12)
    rm.task("waits", "w", "tg", 2, placeholder=True, vcore=6)
    rm.schedule()
    return rm, "gang", "n1"


def preempting(store: EventStore) -> tuple[RM, str, str]:
    """Return a cluster in which a request has preempted allocations, one of which has ended."""
    config = configuration(queue("b"), queue("a", resources={"guaranteed": {"memory": "4"}}))
    rm = RM(config, scheduler=new_scheduler(store))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    rm.confirm(next(iter(rm.evicted)))
    return rm, "late", "n1"


def backing_off(store: EventStore) -> tuple[RM, str, str]:
    """Return a cluster in which an application pauses after requests that a predicate has refused."""
    properties = {"application.unschedasks.backoff": "2", "application.unschedasks.backoff.delay": "30s"}
    config = configuration(queue("a", properties=properties), predicates=["never"])
    rm = RM(config, scheduler=new_scheduler(store, with_plugins(predicates=[Never])))
    Never.asked = []
    rm.node("n1", memory=4)
    rm.app()
    for key in ("one", "two"):
        rm.ask(key=key, memory=1, tags={"refuse": "yes"})
    rm.schedule()
    return rm, "app", "n1"


CLUSTERS = {"busy": busy, "gangs": gangs, "preempting": preempting, "backing off": backing_off}


def answers(name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield path, kind and body of the answer of each route of a cluster."""
    store = EventStore("instance")
    rm, app, node = CLUSTERS[name](store)
    rest = Rest(rm, store)
    rest.context.history.add(HistorySample(START, 3, 2))
    user, group = rm.find_app(app).user, "dev" if name == "busy" else ""
    names = {"partition": "default", "queue": "root.a", "application": app, "node": node, "user": user}
    for path, kind in ROUTES.items():
        if "{group}" in path and not group:
            continue
        whole = path.format(group=group, **names)
        answer = rest.get(whole, accept="application/json")
        assert answer.status_code == 200, whole
        yield whole, kind, answer.json()


@cache
def fields_of(name: str) -> frozenset[str]:
    """Check all answers of a cluster, and return the fields that have a value in them."""
    seen: set[str] = set()
    for path, kind, body in answers(name):
        check(body, kind, path, seen)
    return frozenset(seen)


@pytest.mark.parametrize("name", CLUSTERS)
def test_answers_have_the_shapes_of_the_table(name: str) -> None:
    assert fields_of(name)


ELSEWHERE = {"Ask.triggeredScaleUp", "StateDump.eventStreams"}
"""Fields that other tests of this folder show."""
OTHER_OBJECTS = {"Error", "OpenEventStream", "Validation"}
"""Objects of those fields and of other routes."""


def test_every_field_of_the_table_is_in_an_answer() -> None:
    seen = {field for name in CLUSTERS for field in fields_of(name)}
    reached = {kind for kind in table() if any(field.startswith(f"{kind}.") for field in seen)}
    assert table().keys() - reached == OTHER_OBJECTS
    wanted = {f"{kind}.{name}" for kind in reached for name, field in table()[kind].items() if not field.own}
    assert wanted - seen == ELSEWHERE
