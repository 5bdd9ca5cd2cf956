"""Charts of the history of objects, kept for some seconds, because open pages are made again often."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.web.frame import PageFrame
from yunikorn_rest.web.time_windows import DEFAULT, SPANS, TimeWindow, window_of

if TYPE_CHECKING:
    from yunikorn_history.history_filter import HistoryScope
    from yunikorn_history.page_queries import Place
    from yunikorn_history.past_records import PastConfig
    from yunikorn_history.queries import HistoryQueries
    from yunikorn_rest.web.time_charts import TimeChart

Charted = Literal["queue", "user", "node", "partition"]
"""Kind of an object with charts."""
PAGES: Mapping[Charted, tuple[str, str]] = {
    "queue": ("/queue", "name"),
    "user": ("/user", "name"),
    "node": ("/node", "id"),
    "partition": ("/", ""),
}
"""Paths of the pages with charts, and parameters with the name of the object, by its kind."""
NEAR = 30
"""Distance below which numbers of changes would overlap, of a width of 1000."""
KEPT = 64
"""Number of objects and windows whose charts are kept."""
FRESH = 20 * SECOND
"""Time for which charts are shown (ns)."""


@attrs.frozen
class ConfigMark:
    """Change of a configuration in a window."""

    number: int
    """Number in the charts; 0 for a change that is not listed."""
    config: PastConfig
    x: float


@attrs.frozen(kw_only=True)
class ChartSection:
    """Charts of an object in a window."""

    window: TimeWindow
    charts: Sequence[TimeChart] = ()
    marks: Sequence[ConfigMark] = ()
    listed: Sequence[ConfigMark] = ()
    """The latest changes, oldest first."""
    unknown: Sequence[tuple[float, float]] = ()
    """Positions and widths of the times in which nothing was observed."""
    problem: str = ""
    """Reason for which there are no charts; empty if they were read."""
    path: str = ""
    query: Mapping[str, str] = attrs.field(factory=dict)
    """Path and parameters of the page."""
    now: int = 0
    """Time of the page (ms)."""

    def mark_labels(self) -> list[tuple[float, str]]:
        """Return positions in percent, and texts, of the numbers of listed changes; near ones share one."""
        found: list[tuple[float, str]] = []
        for one in self.listed:
            if found and one.x - 10 * found[-1][0] < NEAR:
                found[-1] = (one.x / 10, f"{found[-1][1].partition('–')[0]}–{one.number}")
            else:
                found.append((one.x / 10, str(one.number)))
        return found

    def choices(self) -> list[tuple[str, Mapping[str, str], bool]]:
        """Return the names and parameters of windows of all lengths, and True for this one."""
        here = {**self.query, **self.window.query}
        return [
            (span.name, {**here, "time": key if key != DEFAULT else ""}, key == self.window.key)
            for key, span in SPANS.items()
        ]

    def beside(self) -> tuple[Mapping[str, str], Mapping[str, str] | None]:
        """Return the parameters of the window before, and of the one after this one, None for the latest."""
        window, here = self.window, self.query
        earlier = {**here, **window.at(window.begin, self.now)}
        later = {**here, **window.at(window.end + window.span.length, self.now)}
        return earlier, None if window.is_latest else later


MakeSection = Callable[["HistoryQueries", Charted, str, TimeWindow, "Place | None"], ChartSection]
"""Reads the charts of an object from a history."""
ScopeOf = Callable[[Call], Awaitable["HistoryScope | None"]]
"""Returns what a caller may see; None for everything."""


class ChartBoard:
    """Charts that were made lately."""

    def __init__(self, stopwatch: Callable[[], int], make: MakeSection, scope_of: ScopeOf) -> None:
        """Create without charts; `stopwatch` counts nanoseconds."""
        self._stopwatch, self._make, self.scope_of = stopwatch, make, scope_of
        self._kept: OrderedDict[tuple[object, ...], tuple[int, ChartSection]] = OrderedDict()

    async def section(
        self, call: Call, frame: PageFrame, kind: Charted, name: str, *, is_gone: bool = False
    ) -> ChartSection | None:
        """Return the charts of an object in the window that a request wants; None if they are hidden.

        They are those of the partition of the page; of an object that is gone, of all until one is chosen.
        """
        scope = await self.scope_of(call) if kind == "user" else None
        if scope is not None and scope.user != name:
            return None
        at = _place(frame) if call.query("partition") or not is_gone else None
        now = frame.now // MILLISECOND
        window, (path, parameter) = window_of(call, now), PAGES[kind]
        place = ChartSection(window=window, path=path, query={parameter: name} if parameter else {}, now=now)
        key = kind, name, window, at
        until, found = self._kept.get(key, (0, None))
        if found is None or self._stopwatch() >= until:
            try:
                found = await self._read(call, kind, name, place, at)
            except RequestRefused as refused:
                # The rest of the page does not need the history.
                return attrs.evolve(place, problem=refused.message)
            self._kept[key] = (self._stopwatch() + FRESH, found)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    async def _read(
        self, call: Call, kind: Charted, name: str, place: ChartSection, at: Place | None
    ) -> ChartSection:
        history = call.context.past
        assert history is not None
        found = await history.read(lambda queries: self._make(queries, kind, name, place.window, at))
        return attrs.evolve(found, path=place.path, query=place.query, now=place.now)


def _place(frame: PageFrame) -> Place | None:
    """Return the partition of a page; None for all, if there is no other one.

    Then what was recorded under an earlier name or resource manager is not hidden.
    """
    chosen = frame.current
    if chosen is None or len(frame.partitions) < 2:
        return None
    return chosen.rm_id, chosen.key.removeprefix(f"[{chosen.rm_id}]")
