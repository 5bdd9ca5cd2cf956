"""Whether a replay gives the responses that the recording has."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from yunikorn.interface.messages import UpdateResponse
from yunikorn.interface.wire import v0_11
from yunikorn.interface.wire.json_form import to_json
from yunikorn.recording.moments import write_seconds
from yunikorn.recording.recorded_entry import RecordedEntry


@attrs.frozen
class Difference:
    """The first place where a replay is not what was recorded."""

    line: int
    """In the recording; 0 behind its end."""
    what: str
    place: str = ""
    """The line, with its file where there are several."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class ReplayComparison:
    """Compares response by response, up to the first difference: what follows differs for that reason."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        """Whether there is any sense in comparing; not under another configuration."""
        self.equal = 0
        """Responses that were as recorded."""
        self.first: Difference | None = None
        self._extra: list[tuple[str, int]] = []
        self.beyond = 0
        """Responses to the last line of a core that was recorded: the recording ends before them."""
        self.recorded = 0
        """Responses in the recording that have been reached."""

    def on_response(
        self,
        rm_id: str,
        response: UpdateResponse,
        recorded: RecordedEntry | None,
        at: int,
        *,
        cut_off: bool = False,
    ) -> None:
        """The core gave a response where the recording has that one, or none.

        `cut_off` says that the process may have ended before it could write this response.
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
            self._differ(recorded, f"a response to {recorded.rm_id} is now one to {rm_id}")
        elif recorded.content != response:
            was, now = (to_json(v0_11.to_update_response(one)) for one in (recorded.content, response))
            place, before, after = next(differences(was, now), ("", was, now))
            self._differ(recorded, f"{place} was {before}, and is now {after}")
        else:
            self.equal += 1

    def missed(self, recorded: RecordedEntry) -> None:
        """The recording has a response that the core did not give."""
        self.recorded += 1
        if not self._is_over():
            self._differ(recorded, f"the response to {recorded.rm_id} does not come any more")

    def ended(self) -> None:
        """The recording is over."""
        if self.recorded and self._extra and not self._is_over():
            self._differ(None, _surplus(*self._extra[0]))

    @property
    def is_possible(self) -> bool:
        """Whether the recording has responses to compare with."""
        return self.wanted and self.recorded > 0

    def _is_over(self) -> bool:
        return not self.wanted or self.first is not None

    def _differ(self, line: RecordedEntry | None, what: str) -> None:
        self.first = Difference(0, what) if line is None else Difference(line.number, what, line.place)


def _surplus(rm_id: str, at: int) -> str:
    return f"a response to {rm_id} at {write_seconds(at)} s is new"


def differences(was: object, now: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """The places where two JSON documents differ, with what is there."""
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
        return f"{len(value)} of them"
    return f"'{value}'" if isinstance(value, str) else str(value)
