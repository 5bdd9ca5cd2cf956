"""Text form of responses: one line per entry."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.errors import printable
from yunikorn.interface.messages import SchedulerAction, UpdateResponse
from yunikorn.resources import describe


def tell(response: UpdateResponse) -> Iterator[str]:
    """Yield a response as text, one line per entry, in the order of its parts."""
    for line in _tell(response):
        yield printable(line)


def _tell(response: UpdateResponse) -> Iterator[str]:
    if response.action == SchedulerAction.RESYNC:
        yield "RESYNC: register again, and report everything"
    yield from (f"node {one.node_id} accepted" for one in response.accepted_nodes)
    yield from (f"node {one.node_id or '(no id)'} rejected: {one.reason}" for one in response.rejected_nodes)
    yield from (f"update of node {one.node_id} failed: {one.reason}" for one in response.failed_node_updates)
    yield from (f"application {one.application_id} accepted" for one in response.accepted_applications)
    yield from (
        f"application {one.application_id or '(no id)'} rejected: {one.reason}"
        for one in response.rejected_applications
    )
    yield from (
        f"ask {one.allocation_key or '(no key)'} of {one.application_id or '(no application)'} rejected:"
        f" {one.reason}"
        for one in response.rejected_allocations
    )
    for placed in response.new_allocations:
        what = "placeholder" if placed.placeholder else "allocation"
        yield (
            f"{what} {placed.uuid} of {placed.application_id} on node {placed.node_id}"
            f" ({describe(placed.resource_per_alloc)})"
        )
    yield from (
        f"allocation {one.uuid or one.allocation_key} of {one.application_id} released:"
        f" {one.termination_type.name}{_why(one.message)}"
        for one in response.released_allocations
    )
    yield from (
        f"ask {one.allocation_key or 'all'} of {one.application_id} released:"
        f" {one.termination_type.name}{_why(one.message)}"
        for one in response.released_allocation_asks
    )
    yield from (
        f"application {one.application_id} is {one.state}{_why(one.message)}"
        for one in response.updated_applications
    )


def _why(message: str) -> str:
    return f" ({message})" if message else ""
