"""Memory: after many rounds of short-lived objects the core holds no more than after a few."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue
from tests.shim_plugins.shim import Listening
from yunikorn.interface.messages import AddApplicationRequest, UserGroupInformation
from yunikorn.resources import Resource

LEFT_OUT = (type, types.ModuleType, types.CodeType)
DAYS = 24 * 3600
ROUNDS = 100


def held(root: object) -> int:
    """Return the number of objects reachable from `root`, without code."""
    seen: dict[int, object] = {id(root): root}
    todo = [root]
    while todo:
        for found in _in(todo.pop()):
            if id(found) not in seen and not isinstance(found, LEFT_OUT):
                seen[id(found)] = found
                todo.append(found)
    return len(seen)


def _in(here: object) -> Iterable[object]:
    if isinstance(here, types.FunctionType):
        # The globals of a function are code, its closure is not.
        return here.__closure__ or ()
    # For a dict with str keys the collector reports values only.
    return [*here.keys(), *here.values()] if isinstance(here, dict) else gc.get_referents(here)


def check(rm: RM, one_round: Callable[[int], None]) -> None:
    """Assert that a round leaves nothing behind; only rounds before the first placement may."""

    def settled() -> int:
        completes(rm, -1)
        rm.responses.clear()
        rm.__dict__.pop("all", None)
        return held(rm.scheduler)

    def some(first: int) -> tuple[int, int]:
        for number in range(first, first + ROUNDS):
            one_round(number)
            rm.responses.clear()
            rm.__dict__.pop("all", None)
        return held(rm.scheduler), settled()

    some(0)
    before = settled()
    after, settled_after = some(ROUNDS)
    assert (after - before) / ROUNDS < 12
    assert (settled_after - before) / ROUNDS < 0.5


class ListeningGangs(Listening, GangRM):
    """A GangRM with an event sink."""


def completes(rm: RM, number: int) -> None:
    """Place the task of an application, and end the application."""
    rm.app(f"app{number}")
    rm.ask(f"app{number}", vcore=1)
    rm.schedule()
    rm.release(f"app{number}", next(iter(rm.running)))
    rm.pass_time(4 * DAYS)


def fails(rm: RM, number: int) -> None:
    """Fail an application while its ask waits."""
    rm.app(f"app{number}")
    rm.ask(f"app{number}", vcore=99)
    rm.schedule()
    rm.scheduler.fail_application("rm", "default", f"app{number}", "enough")
    rm.pass_time(4 * DAYS)


def is_rejected(rm: RM, number: int) -> None:
    """Submit an application to a queue that does not exist."""
    rm.app(f"app{number}", "root.a.nowhere")
    rm.pass_time(4 * DAYS)


def is_removed(rm: RM, number: int) -> None:
    """Remove an application while its task runs."""
    rm.app(f"app{number}")
    rm.ask(f"app{number}", vcore=1)
    rm.schedule()
    rm.remove_app(f"app{number}")
    rm.pass_time(4 * DAYS)


def uses_a_dynamic_queue(rm: RM, number: int) -> None:
    """Place an application in a dynamic queue, and remove both."""
    rm.app(f"app{number}", f"root.made.queue{number}")
    rm.ask(f"app{number}", vcore=99)
    rm.remove_app(f"app{number}")
    rm.pass_time(3600)


def has_no_room_for_its_gang(rm: RM, number: int) -> None:
    """Submit an Atomic gang that finds no room for long, and remove it."""
    app_id = f"app{number}"
    request = AddApplicationRequest(
        app_id, "root.a", "", UserGroupInformation("user", ["group"]), {}, 0, Resource(vcore=99), "Atomic"
    )
    rm.update(new_applications=[request])
    rm.ask(app_id, "member", 99, tags={"yunikorn.apache.org/task-group-name": "all"}, vcore=1)
    rm.schedule()
    rm.pass_time(3600)
    rm.schedule()
    rm.remove_app(app_id)


@pytest.mark.parametrize(
    "one_round",
    [
        completes,
        fails,
        is_rejected,
        is_removed,
        uses_a_dynamic_queue,
        has_no_room_for_its_gang,
    ],
)
@pytest.mark.parametrize("kind", [RM, ListeningGangs])
def test_ended_application_leaves_no_objects(kind: type[RM], one_round: Callable[[RM, int], None]) -> None:
    rules = [{"name": "provided", "create": True}]
    leaf = queue("a", properties={"application.sort.policy": "stateaware"})
    rm = kind(configuration(leaf, queue("made", parent=True), placementrules=rules))
    rm.node("n1", vcore=10)
    check(rm, lambda number: one_round(rm, number))


def test_removed_partition_leaves_no_objects() -> None:
    rm = ListeningGangs(document(partition(queue("a"))))
    rm.node("n1", vcore=10)

    def one_round(number: int) -> None:
        rm.reload(document(partition(queue("a")), partition(queue("a"), name=f"p{number}")))
        rm.app(f"app{number}", partition_name=f"p{number}")
        rm.ask(f"app{number}", partition_name=f"p{number}", vcore=1)
        rm.schedule()
        rm.reload(document(partition(queue("a"))))
        rm.pass_time(1)

    check(rm, one_round)
