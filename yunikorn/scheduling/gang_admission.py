"""Admission of gangs: their styles, and the queues that accept them (`docs/decisions/0024`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.gang import ATOMIC, SOFT, STYLES, AtomicGang, Gang, placeholder_timeout
from yunikorn.resources import Resource, describe, fits, fits_quota, has_negative, smaller_of

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.application import Application
    from yunikorn.model.queue import Queue

GANG_POLICIES = ("fifo", "stateaware")
"""Sort policies that allow placeholders; under others, two gangs could each hold half of theirs."""


def make_gang(app: Application, total: Resource, timeout: int, partition: Partition) -> None:
    """Make `app` a gang with these total resources, according to its gang style."""
    if app.gang_style == ATOMIC:
        app.atomic = AtomicGang(app, total)
    else:
        timeout = placeholder_timeout(timeout, app.tags, partition.clock.now())
        app.gang = Gang(total, app.gang_style, timeout)


def report_style(app: Application, style: str, partition: Partition) -> None:
    """Report to the RM that a gang style is unknown and that Soft applies instead."""
    message = f"unknown gang scheduling style '{style}', {SOFT} is used instead; known: {', '.join(STYLES)}"
    partition.gangs.report(app, "UnknownGangStyle", message)


def gang_refusal(app: Application, queue: Queue) -> str:
    """Return why a gang cannot run in a leaf queue; empty if the queue accepts the application."""
    if app.forced:
        return ""
    if app.gang is not None:
        total, policy = app.gang.total, queue.settings.app_sort
        if policy not in GANG_POLICIES:
            return (
                f"queue {queue.path} cannot run application {app.id} with task group request: unsupported "
                f"sort type '{policy}', placeholders need one of {', '.join(GANG_POLICIES)}"
            )
    elif app.atomic is not None:
        total = app.atomic.total
    else:
        return ""
    if has_negative(total):
        return f"application {app.id} has a negative task group request: {describe(total)}"
    most = Resource()
    for level in queue.chain:
        if level.parent is not None and level.max is not None:
            most = smaller_of(most, level.max)
    if not fits_quota(most, total):
        return (
            f"queue {queue.path} cannot run application {app.id}: task group request {describe(total)} "
            f"larger than max queue allocation {describe(most)}"
        )
    return ""


def report_oversize(app: Application, partition: Partition) -> None:
    """Record an event if all nodes together are too small for the gang; more nodes may register later."""
    gang = app.gang or app.atomic
    whole = partition.cluster.total
    if gang is not None and whole and not fits(whole, gang.total):
        message = (
            f"the gang needs {describe(gang.total)}, and all nodes together have {describe(whole)}: "
            "it cannot run until nodes are added"
        )
        partition.event_recorder.record("APP", app.id, message=message, reason="GangTooLarge")
