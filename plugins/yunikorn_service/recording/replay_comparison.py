"""Comparison of the responses in a replay with those in the recording, entry by entry and by counts."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from yunikorn.errors import printable
from yunikorn.interface.messages import SchedulerAction, UpdateResponse
from yunikorn.quantities import in_words
from yunikorn_service.recording.recorded_entry import RecordedEntry
from yunikorn_service.recording.recorded_values import write_seconds
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.json_form import to_json


@attrs.define
class Counts:
    """Sums over responses."""

    responses: int = 0
    allocations: int = 0
    releases: int = 0
    """Number of released allocations, for any reason."""
    rejected: int = 0
    """Number of rejected applications, asks and nodes."""
    failed_node_updates: int = 0

    def add(self, response: UpdateResponse) -> None:
        """Add the entries of a response."""
        self.responses += 1
        self.allocations += len(response.new_allocations)
        self.releases += len(response.released_allocations)
        self.rejected += len(response.rejected_applications)
        self.rejected += len(response.rejected_allocations) + len(response.rejected_nodes)
        self.failed_node_updates += len(response.failed_node_updates)

    def __str__(self) -> str:
        parts = [
            _count(self.responses, "response"),
            _count(self.allocations, "allocation"),
            _count(self.releases, "release"),
            f"{self.rejected} rejected",
        ]
        if self.failed_node_updates:
            parts.append(_count(self.failed_node_updates, "failed node update"))
        return ", ".join(parts)


def response_lines(response: UpdateResponse) -> Iterator[str]:
    """Yield a response as text, one line per entry, in the order of its parts."""
    for line in _lines_of(response):
        yield printable(line)


def _lines_of(response: UpdateResponse) -> Iterator[str]:
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
            f" ({in_words(placed.resource_per_alloc)})"
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


@attrs.frozen
class Difference:
    """First difference between a replay and its recording."""

    line: int
    """Line number in the recording; 0 after its end."""
    what: str
    place: str = ""
    """Position of the line, with its file if there are several."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class ReplayComparison:
    """Comparison by response, up to the first difference; later differences are its consequences."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        """True if the responses are compared; a what-if is expected to differ."""
        self.equal = 0
        """Number of responses that equal the recorded ones."""
        self.first: Difference | None = None
        self._extra: list[tuple[str, int]] = []
        self.beyond = 0
        """Number of responses to a core's last recorded line that a truncated recording may lack."""
        self.recorded = 0
        """Number of recorded responses reached so far."""

    def on_response(
        self,
        rm_id: str,
        response: UpdateResponse,
        recorded: RecordedEntry | None,
        at: int,
        *,
        cut_off: bool = False,
    ) -> None:
        """Compare a response with the recorded one; `recorded` is None if the recording has none here.

        `cut_off` is True if the recording process may have ended before it wrote this response.
        """
        if recorded is None and cut_off:
            self.beyond += 1
            return
        if recorded is None:
            self._extra.append((rm_id, at))
            return
        self.recorded += 1
        if self._is_over():
            return
        if self._extra:
            self._differ(recorded, _surplus(*self._extra[0]))
        elif recorded.rm_id != rm_id:
            self._differ(recorded, f"a response to {recorded.rm_id} is now a response to {rm_id}")
        elif recorded.content != response:
            was, now = (to_json(v0_11.UPDATE_RESPONSE.to_wire(one)) for one in (recorded.content, response))
            place, before, after = next(differences(was, now), ("", was, now))
            self._differ(recorded, f"{place} was {before}, and is now {after}")
        else:
            self.equal += 1

    def missed(self, recorded: RecordedEntry) -> None:
        """Process a recorded response that the core did not give."""
        self.recorded += 1
        if not self._is_over():
            self._differ(recorded, f"the recorded response to {recorded.rm_id} is missing")

    def ended(self) -> None:
        """Process the end of the recording."""
        if self.recorded and self._extra and not self._is_over():
            self._differ(None, _surplus(*self._extra[0]))

    @property
    def is_possible(self) -> bool:
        """True if there are recorded responses to compare with."""
        return self.wanted and self.recorded > 0

    def _is_over(self) -> bool:
        return not self.wanted or self.first is not None

    def _differ(self, line: RecordedEntry | None, what: str) -> None:
        self.first = Difference(0, what) if line is None else Difference(line.number, what, line.place)


def _surplus(rm_id: str, at: int) -> str:
    return f"a response to {rm_id} at {write_seconds(at)} s is new"


def differences(was: object, now: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the paths at which two JSON documents differ, with both values as text."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            inner = f"{path}.{key}" if path else key
            yield from differences(was.get(key), now.get(key), inner)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif was != now:
        yield path, _show(was), _show(now)


def _show(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"{len(value)} entries"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
