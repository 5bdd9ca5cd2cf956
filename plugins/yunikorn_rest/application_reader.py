"""Readers of applications, asks and allocations: from objects of the core to shapes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.explain.explanations import failed_attempts
from yunikorn.model.allocation import TerminationType
from yunikorn.resources import shrink
from yunikorn.states import REJECTED, RUNNING, STARTING, compatible_state
from yunikorn_rest import shapes
from yunikorn_rest.encoding import COMPLETE, AnswerLists, EncodedList
from yunikorn_rest.time_texts import rfc3339
from yunikorn_service.runtime.sliced_reads import Slices

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

STEP = 20
"""Number of asks or allocations that are read without a pause."""
LARGE = 2000
"""Number of asks and allocations from which those of an application are passed on one by one."""
SKIPPED = 500
"""Number of ended asks or allocations that are looked at without a pause."""

T = TypeVar("T")
S = TypeVar("S")


def in_steps(
    things: Iterable[T], read: Callable[[T], S], step: int = STEP
) -> Generator[None, None, tuple[S, ...]]:
    """Return what `read` makes of each thing, with a pause after every `step` of them."""
    found: list[S] = []
    for thing in things:
        found.append(read(thing))
        if len(found) % step == 0:
            yield
    return tuple(found)


def read_application(
    app: Application, at: PartitionScheduler, gathering: AnswerLists
) -> Slices[shapes.Application]:
    """Read an application, with pauses if it has many asks or allocations.

    The application itself, with its sums, is of one moment, and so are the lists of its asks and allocations
    unless these are many. Those of a large application are passed on one by one.
    """
    found = _scalars(app, at.name)
    if is_waiting(app, at):
        found["awaited"] = at.submitted.awaited(app.id)
    if len(app.asks) + len(app.allocations) > LARGE:
        return (yield from _read_large(app, at, gathering, found))
    waiting = [ask for ask in app.asks.values() if ask.pending]
    placed = list(app.allocations.values())
    reserved = tuple(ask.key for ask in waiting if ask.reserved is not None)
    requests = yield from in_steps(waiting, lambda ask: read_ask(ask, at))
    allocations = yield from in_steps(placed, read_allocation)
    return shapes.Application(
        requests=requests,
        allocations=allocations,
        has_reserved=bool(reserved),
        reservations=reserved,
        **found,
    )


def _read_large(
    app: Application, at: PartitionScheduler, gathering: AnswerLists, found: dict[str, Any]
) -> Slices[shapes.Application]:
    """Read an application with many asks or allocations; those that end meanwhile are left out.

    A hundred thousand objects at the same time would keep the garbage collector busy for longer than a slice.
    For the same reason keys are copied: it visits each element of a new list.
    """
    yield None
    asks = list(app.asks)
    yield None
    placed = list(app.allocations)
    yield None
    requests, allocations, reserved = EncodedList(), EncodedList(), list[str]()
    for index, key in enumerate(asks):
        ask = app.asks.get(key)
        if ask is not None and ask.pending:
            if ask.reserved is not None:
                reserved.append(ask.key)
            yield from gathering.put(read_ask(ask, at), requests)
        elif index % SKIPPED == 0:
            yield None
    yield from gathering.put(COMPLETE, requests)
    for index, uuid in enumerate(placed):
        one = app.allocations.get(uuid)
        if one is not None:
            yield from gathering.put(read_allocation(one), allocations)
        elif index % SKIPPED == 0:
            yield None
    yield from gathering.put(COMPLETE, allocations)
    return shapes.Application(
        requests=requests,
        allocations=allocations,
        has_reserved=bool(reserved),
        reservations=tuple(reserved),
        **found,
    )


def read_summary(app: Application, partition: str) -> shapes.Application:
    """Read an application without its requests and allocations."""
    return shapes.Application(**_scalars(app, partition))


def _used_by(app: Application) -> Mapping[str, int]:
    """Return the resources of the allocations of an application that are no placeholders."""
    if app.gang is None or not app.gang.placed:
        return app.allocated
    used = dict(app.allocated)
    shrink(used, app.gang.placed)
    return used


def _peak_of(app: Application) -> dict[str, int]:
    """Return the highest use of an application so far, per type, without placeholders."""
    peak = {} if app.lifetime is None else dict(app.lifetime.peak)
    for name, amount in _used_by(app).items():
        if amount > peak.get(name, 0):
            peak[name] = amount
    return peak


def _scalars(app: Application, partition: str) -> dict[str, Any]:
    whole = _states(app)
    log = tuple(_merged(whole))
    started = next((entry.time for entry in log if entry.application_state == RUNNING), 0)
    backoff = app.backoff_timer
    return {
        "application_id": app.id,
        "used_resource": present(_used_by(app)),
        "max_used_resource": _peak_of(app),
        "pending_resource": present(app.pending),
        "partition": partition,
        "queue_name": app.queue.path if app.queue is not None else app.queue_name,
        "submission_time": app.submitted,
        "finished_time": app.finished,
        "application_state": compatible_state(app.state),
        "user": app.user,
        "groups": app.groups,
        "rejected_message": app.reason if app.state == REJECTED else "",
        "state_log": log,
        "placeholder_data": _placeholders(app),
        "max_request_priority": app.priority,
        "start_time": started // MILLISECOND,
        "resource_history": _history(app),
        "backoff_deadline": "" if backoff is None else rfc3339(backoff.due),
        "design_state": design_state(app.state),
        "design_state_log": () if log == whole else whole,
    }


def is_waiting(app: Application, at: PartitionScheduler) -> bool:
    """Return True if an application is not accepted yet, because the answer of a policy is awaited."""
    one = at.submitted.get(app.id)
    return one is not None and one.app is app


def _states(app: Application) -> tuple[shapes.StateChange, ...]:
    if not app.state_log:
        # Web UIs show the latest entry as the time of the latest change.
        return (shapes.StateChange(time=app.submitted, application_state=app.state),)
    return tuple(
        shapes.StateChange(time=entry.time, application_state=entry.state) for entry in app.state_log
    )


def design_state(state: str) -> str:
    """Return a state of an application if YuniKorn 1.9 would report another one, else an empty text."""
    return "" if compatible_state(state) == state else state


def _merged(log: Iterable[shapes.StateChange]) -> Iterator[shapes.StateChange]:
    """Yield the states of a log as YuniKorn 1.9 would, in which the first task makes Running of Accepted."""
    before = ""
    for entry in log:
        if before != STARTING or entry.application_state != RUNNING:
            yield attrs.evolve(entry, application_state=compatible_state(entry.application_state))
        before = entry.application_state


def present(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return a copy of amounts without zero entries."""
    return {name: amount for name, amount in amounts.items() if amount}


def _placeholders(app: Application) -> tuple[shapes.PlaceholderData, ...]:
    groups = app.gang.groups.values() if app.gang is not None else ()
    return tuple(
        shapes.PlaceholderData(
            task_group_name=group.name,
            count=group.count,
            min_resource=group.size,
            replaced=group.replaced,
            timedout=group.timed_out,
        )
        for group in groups
    )


def _history(app: Application) -> shapes.ResourceHistory:
    lifetime = app.lifetime
    if lifetime is None:
        return shapes.ResourceHistory()
    return shapes.ResourceHistory(
        resource_usage=_in_seconds(lifetime.used),
        preempted_resource=_in_seconds(lifetime.preempted),
        placeholder_resource=_in_seconds(lifetime.placeholders),
    )


def _in_seconds(usage: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return amounts times whole seconds; what is less than one is left out, as in YuniKorn 1.9."""
    found = {
        instance_type: {name: amount // SECOND for name, amount in amounts.items() if amount >= SECOND}
        for instance_type, amounts in usage.items()
    }
    return {instance_type: amounts for instance_type, amounts in found.items() if amounts}


def read_ask(ask: Ask, at: PartitionScheduler) -> shapes.Ask:
    """Read a pending ask."""
    reporter = at.state_reporter
    attempted = ask.unschedulable or ask.ask_class.unschedulable or ask.tries > 0
    return shapes.Ask(
        allocation_key=ask.key,
        allocation_tags=ask.tags,
        request_time=ask.created,
        resource=ask.resource,
        pending_count=ask.pending if ask.pending > 1 else 0,
        priority=str(ask.priority),
        required_node_id=ask.required_node,
        application_id=ask.app.id,
        placeholder=ask.placeholder,
        task_group_name=ask.task_group,
        allocation_log=tuple(
            shapes.LogEntry(message=reason, last_occurrence=latest, count=count)
            for reason, count, latest in failed_attempts(at, ask)
        ),
        triggered_preemption=ask.eviction is not None,
        originator=ask.originator,
        scheduling_attempted=attempted,
        triggered_scale_up=reporter is not None and reporter.has_failed(ask),
    )


def read_allocation(allocation: Allocation) -> shapes.Allocation:
    """Read an allocation."""
    requested = allocation.placeholder_requested
    if requested is None:
        requested = allocation.placed if allocation.ask is None else allocation.ask.created
    return shapes.Allocation(
        allocation_key=allocation.key,
        allocation_tags=allocation.tags,
        request_time=requested,
        allocation_time=allocation.placed,
        # The clock of a resource manager may be ahead.
        allocation_delay=max(allocation.placed - requested, 0),
        resource=allocation.resource,
        priority=str(allocation.priority),
        node_id=allocation.node.id,
        application_id=allocation.app.id,
        placeholder=allocation.placeholder,
        placeholder_used=allocation.placeholder_requested is not None,
        task_group_name=allocation.task_group,
        preempted=allocation.releasing == TerminationType.PREEMPTED_BY_SCHEDULER,
        originator=allocation.originator,
    )
