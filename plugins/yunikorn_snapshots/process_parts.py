"""Parts of a scheduler that belong to its process: a snapshot names them, and does not keep them.

These parts are given again to a restored scheduler: the registry of plugins, the clock, the callbacks of
resource managers, workers. Plugins of other distributions are made again from the configuration, and get what
they returned by `saved`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import Plugin
from yunikorn.framework.registry import Registry
from yunikorn.interface.callback import CallbackAdapter
from yunikorn.interface.sinks import Sinks
from yunikorn_snapshots.graph_writer import SameAs
from yunikorn_snapshots.snapshot_errors import SnapshotError, SnapshotNotYet
from yunikorn_snapshots.state_layouts import slots_of
from yunikorn_snapshots.state_names import is_state_module

if TYPE_CHECKING:
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.policy_calls import Workers
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.interface.session import Session
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

Row = list[Any]

OMITTED: dict[str, dict[str, Any]] = {
    "yunikorn.accounting.changes:Changes": {"_measurements": None, "counts": False},
    "yunikorn.framework.instances:PluginInstance": {"closer": None},
    "yunikorn.framework.plugin_failures:PluginFailures": {"_listeners": []},
    "yunikorn.interface.callback:RMFacade": {"_records": None},
    "yunikorn.interface.configurations:LoadedAhead": {"_kept": {}},
    "yunikorn.interface.session:Session": {"_planned_sinks": None},
    "yunikorn.interface.sessions:Sessions": {"_prepared": {}, "_buffer_sinks": None},
    "yunikorn.scheduling.decision_states:DecisionStates": {"states": {}, "_task": ("", "")},
    "yunikorn.scheduling.partition_scheduler:PartitionScheduler": {"_measured": None},
    "yunikorn.scheduling.predicate_calls:AskedAhead": {"_ask": None, "_error": None, "_answers": {}},
    "yunikorn.scheduling.predicate_calls:Condition": {"search_check": SameAs("check")},
    "yunikorn.scheduling.predicate_calls:Prepared": {"_ask": None, "_error": None, "_state": None},
    "yunikorn.scheduling.preemption.gang_preemption:GangCandidates": {"usable": {}},
}
"""Fields that belong to the process, or that only remember what is computed again."""
SUBSTITUTES = {
    "yunikorn_service.counted_chain:CountedChain": ("_choices",),
    "yunikorn_service.measured_decisions:MeasuredCycle": ("measurements",),
    "yunikorn_service.measured_decisions:MeasuredNodeOrders": ("measurements",),
}
"""Classes that measure, and the fields that they add to those that they derive from."""


def partitions_of(scheduler: Scheduler) -> Iterator[tuple[Session, str, PartitionScheduler]]:
    """Yield the partitions with their sessions and names."""
    for session in sessions_of(scheduler).by_rm.values():
        for name, at in session.partitions.by_name.items():
            yield session, name, at


def sessions_of(scheduler: Scheduler) -> Any:
    """Return the sessions of a scheduler."""
    return scheduler._sessions


def workers_of(scheduler: Scheduler) -> Workers | None:
    """Return the workers of a scheduler; None without them."""
    calls = sessions_of(scheduler).core_context.policy_calls
    return None if calls is None else calls._workers


def is_walked(plugin: object) -> bool:
    """Return True for a plugin of this project, whose fields are state like those of the core."""
    return is_state_module(type(plugin).__module__)


@attrs.frozen
class ForeignPlugin:
    """A plugin object that is made again from the configuration."""

    place: tuple[str, str, int]
    """Id of the resource manager, name of the partition, position among its instances."""
    instance: PluginInstance
    is_shared: bool
    """True if the options are texts of queue properties."""


def foreign_plugins(scheduler: Scheduler) -> Iterator[ForeignPlugin]:
    """Yield the plugins in use that are no part of this project."""
    for session, name, at in partitions_of(scheduler):
        for number, one in enumerate(at.instances):
            if not is_walked(one.plugin):
                shared = at.instances.find_shared(one.kind, one.name, one.options)
                yield ForeignPlugin((session.rm_id, name, number), one, shared is one)


def saves(plugin: object) -> bool:
    """Return True if a plugin returns what a snapshot keeps of it."""
    return isinstance(plugin, Plugin) and type(plugin).saved is not Plugin.saved


def keeps_fields(plugin: object) -> bool:
    """Return True if a plugin has other fields than its options."""
    cls: Any = type(plugin)
    options = {field.name for field in attrs.fields(cls) if field.init} if attrs.has(cls) else set()
    return not options.issuperset({*slots_of(cls), *getattr(plugin, "__dict__", ())})


def named_parts(scheduler: Scheduler) -> dict[int, Row]:
    """Return the rows that stand for objects of the process, by their identity."""
    sessions = sessions_of(scheduler)
    found: dict[int, Row] = {
        id(scheduler): ["scheduler"],
        id(scheduler.clock): ["clock"],
        id(scheduler.registry): ["registry", "", ""],
        id(scheduler.wake_requests._notify): ["notify"],
        id(scheduler.wake_requests._lock): ["lock"],
        id(scheduler.failures.reports._lock): ["lock"],
    }
    for part in ("configurations", "measurements"):
        if getattr(scheduler, part) is not None:
            found[id(getattr(scheduler, part))] = [part]
    if sessions._event_receiver is not None:
        found[id(sessions._event_receiver)] = ["event_receiver"]
    calls = sessions.core_context.policy_calls
    if calls is not None:
        found[id(calls._workers)] = ["workers"]
    for session in sessions.by_rm.values():
        found[id(session.registry)] = ["registry", session.rm_id, "own"]
        found[id(session.enabled)] = ["registry", session.rm_id, "enabled"]
        found[id(session.sinks)] = ["sinks", session.rm_id]
        found[id(session.callback_adapter)] = ["callback", session.rm_id]
        for at, loaded in enumerate(session.config.loaded):
            found[id(loaded)] = ["loaded", session.rm_id, at]
    for one in foreign_plugins(scheduler):
        found[id(one.instance.plugin)] = ["plugin", *one.place]
        for at, cls in enumerate(one.instance.classes):
            found[id(cls)] = ["class", *one.place, at]
    return found


def refuse(scheduler: Scheduler) -> None:
    """Raise `SnapshotError` if a scheduler is in a state that a snapshot cannot have."""
    sessions = sessions_of(scheduler)
    if sessions.operation:
        raise SnapshotNotYet(f"the core {sessions.operation}: take the snapshot between two calls")
    calls = sessions.core_context.policy_calls
    if calls is not None and len(calls):
        raise SnapshotNotYet(
            f"{len(calls)} questions to policies are with their workers, whose answers no snapshot can have:"
            " try again in a moment"
        )
    for session in sessions.by_rm.values():
        if session.registry.has_own_plugins:
            raise SnapshotError(
                f"{session.label} has registered plugins of its own, which a snapshot does not contain:"
                " install them as packages"
            )


HOOKED = (Registry, CallbackAdapter, Sinks)
"""Classes of this project whose objects belong to the process, and have to be among `named_parts`."""
