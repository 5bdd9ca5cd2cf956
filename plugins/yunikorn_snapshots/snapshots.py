"""Snapshots of a scheduler: everything that decides, in one file, from which a scheduler goes on.

    take_snapshot(scheduler, Path("monday.snapshot"))
    scheduler = restored_scheduler(Path("monday.snapshot"), registry, clock)

The state is taken as a whole: every object that can be reached from the scheduler, with all its fields, so
that no field can be forgotten. `process_parts` has what belongs to the process instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from yunikorn import __version__
from yunikorn.interface.scheduler import Scheduler
from yunikorn_snapshots.graph_writer import GraphWriter
from yunikorn_snapshots.process_parts import (
    HOOKED,
    OMITTED,
    SUBSTITUTES,
    foreign_plugins,
    keeps_fields,
    named_parts,
    partitions_of,
    refuse,
    saves,
    sessions_of,
)
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshot_file import SnapshotHeader, SnapshotWriter, saved
from yunikorn_snapshots.state_layouts import possible_fields

if TYPE_CHECKING:
    from yunikorn_snapshots.graph_writer import Row


def take_snapshot(scheduler: Scheduler, path: Path, lacks: Iterable[str] = ()) -> SnapshotHeader:
    """Write everything that decides to a file, between two calls of the scheduler; return its header.

    `lacks` is what the state lacks already, for the header.

    Raises `SnapshotError` if the state cannot be kept, which names the object, and `OSError`; then there
    is no file.
    """
    refuse(scheduler)
    header = header_of(scheduler)
    header.warnings.extend(lacks)
    saved(path, lambda file: write_snapshot(scheduler, file, header))
    return header


def header_of(scheduler: Scheduler) -> SnapshotHeader:
    """Return what describes a snapshot of a scheduler."""
    sizes = dict.fromkeys(("partitions", "nodes", "applications", "allocations", "pending"), 0)
    for _, _, at in partitions_of(scheduler):
        partition = at.partition
        sizes["partitions"] += 1
        sizes["nodes"] += len(partition.nodes)
        sizes["applications"] += len(partition.applications)
        for app in partition.applications.values():
            sizes["allocations"] += len(app.allocations)
            sizes["pending"] += sum(ask.pending for ask in app.asks.values())
    warnings = [
        f"plugin {one.instance.origin} has fields but no method `saved`: it is made again, without them"
        for one in foreign_plugins(scheduler)
        if keeps_fields(one.instance.plugin) and not saves(one.instance.plugin)
    ]
    rms = [session.rm_id for session in sessions_of(scheduler).by_rm.values()]
    return SnapshotHeader(__version__, scheduler.clock.now(), sizes, warnings, rms)


def write_snapshot(scheduler: Scheduler, file: BinaryIO, header: SnapshotHeader) -> None:
    """Write a snapshot to a file that is open."""
    writer = SnapshotWriter(file, header)
    writer.write({"sessions": _session_records(scheduler), "plugins": _plugin_records(scheduler)})
    state = GraphWriter(dict.fromkeys(HOOKED, _refused), OMITTED, SUBSTITUTES, named_parts(scheduler))
    fields = possible_fields(Scheduler)
    root = {name: value for name, value in vars(scheduler).items() if name in fields}
    count = writer.write_rows(state.rows(root))
    writer.write({"rows": count, "layouts": state.layouts, "sets": state.sets})
    writer.close()


def _refused(one: object) -> Row:
    raise SnapshotError(f"an object of {type(one).__qualname__} that belongs to no session cannot be kept")


def _session_records(scheduler: Scheduler) -> list[Any]:
    return [
        {
            "rm": session.rm_id,
            "methods": sorted(session.callback_adapter.methods),
            "predicates": list(session.callback_adapter.predicates_in_force),
            "disabled": list(session.config.disabled),
            "overriding": list(session.config.overriding),
            "loaded": [[one.name, one.digest] for one in session.config.loaded],
        }
        for session in sessions_of(scheduler).by_rm.values()
    ]


def _plugin_records(scheduler: Scheduler) -> list[Any]:
    return [
        {
            "place": list(one.place),
            "kind": one.instance.kind.id,
            "name": one.instance.name,
            "options": dict(one.instance.options),
            "shared": one.is_shared,
            "saves": saves(one.instance.plugin),
            "saved": one.instance.plugin.saved() if saves(one.instance.plugin) else None,
        }
        for one in foreign_plugins(scheduler)
    ]
