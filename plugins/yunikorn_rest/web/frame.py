"""Frame of a page: the time, the partitions to choose from, addresses of other pages, and similar names.

Names are parameters of the query in all addresses, never a part of the path: ids of applications and nodes
may contain slashes, dots and anything else.
"""

from __future__ import annotations

import difflib
import functools
import heapq
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import islice
from urllib.parse import urlencode

import attrs

from yunikorn.accounting.partition import Partition
from yunikorn.interface.scheduler import Scheduler
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.lookup import find_partition

NO_RM = "No resource manager is registered yet, so there is no partition."

PARAMETERS = {"application": "id", "queue": "name", "user": "name", "node": "id"}
"""Parameters that name the object of a page, by its kind."""


@attrs.frozen
class PartitionName:
    """A partition in the choice of partitions."""

    key: str
    """Name in addresses: `NAME`, or `[RM]NAME` if an earlier partition has the same name."""
    rm_id: str
    is_first: bool = False
    """True for the partition that is shown without a choice."""


@attrs.frozen
class PageFrame:
    """Frame of a page."""

    now: int = 0
    """Time of the reading (ns)."""
    partitions: tuple[PartitionName, ...] = ()
    current: PartitionName | None = None
    """Partition that the page is about."""

    def url(self, path: str, **query: object) -> str:
        """Return the address of a page about the current partition; empty values are left out."""
        key = "" if self.current is None or self.current.is_first else self.current.key
        return address(path, **{"partition": key, **query})

    def url_of(self, kind: str, name: str) -> str:
        """Return the address of the page of an object, such as `node` n1."""
        return self.url(f"/{kind}", **{PARAMETERS[kind]: name})

    def at(self, key: str) -> PageFrame:
        """Return the frame of a page about another partition."""
        found = next((one for one in self.partitions if one.key == key), self.current)
        return attrs.evolve(self, current=found)


def address(path: str, **query: object) -> str:
    """Return an address with a query; empty values are left out."""
    given = {name: str(value) for name, value in query.items() if value not in ("", None)}
    text = urlencode(given, errors="replace")
    return f"{path}?{text}" if text else path


class Unknown(RequestRefused):
    """Refusal of a page about an unknown object."""

    def __init__(
        self,
        message: str,
        frame: PageFrame,
        name: str = "",
        known: Collection[str] = (),
        link: Callable[[str], str] = str,
        elsewhere: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Refuse the name of an object; `link` returns the address of a known one.

        `elsewhere` has objects of this name in other places, each with a description and its address.
        """
        super().__init__(404, message)
        self.frame, self.elsewhere = frame, elsewhere
        self._name, self._known, self._link = name, known, link

    def suggestions(self) -> list[tuple[str, str]]:
        """Return objects that were perhaps meant, each with its address; takes long for many names."""
        similar = nearest(self._name, self._known) if self._name else []
        return [*self.elsewhere, *((one, self._link(one)) for one in similar)]


def read_frame(scheduler: Scheduler, wanted: str = "") -> tuple[PageFrame, PartitionScheduler | None]:
    """Return the frame of a page about a partition, by default the first one, and the partition.

    The partition is None if there is none at all. Raises `Unknown` for an unknown name.
    """
    known = scheduler.all_partitions()
    names: list[PartitionName] = []
    taken: set[str] = set()
    for rm_id, at in known:
        names.append(PartitionName(at.partition.name if at.name in taken else at.name, rm_id, not names))
        taken.add(at.name)
    frame = PageFrame(scheduler.clock.now(), tuple(names), names[0] if names else None)
    if not wanted:
        return frame, known[0][1] if known else None
    try:
        _, at = find_partition(scheduler, wanted)
    except RequestRefused:
        every = [(one.key, address("/", partition=one.key)) for one in names[:SHOWN]]
        raise Unknown(f"There is no partition {wanted}.", frame, elsewhere=every) from None
    index = next(index for index, (_, one) in enumerate(known) if one is at)
    return attrs.evolve(frame, current=names[index]), at


def read_frame_at(scheduler: Scheduler, wanted: str) -> tuple[PageFrame, PartitionScheduler]:
    """Return the frame of a page that needs a partition, and the partition; raises `Unknown`."""
    frame, at = read_frame(scheduler, wanted)
    if at is None:
        raise Unknown(NO_RM, frame)
    return frame, at


async def frame_of(call: Call) -> PageFrame:
    """Return the frame of a page that reads nothing else of the core."""
    key = call.query("partition")

    def read(scheduler: Scheduler) -> Generator[None, None, PageFrame]:
        yield
        return read_frame(scheduler, key)[0]

    return await call.read(read)


def unknown_object(
    scheduler: Scheduler,
    frame: PageFrame,
    kind: str,
    name: str,
    known: Collection[str],
    is_in: Callable[[Partition], bool],
    more: str = "",
) -> Unknown:
    """Return the refusal of a page whose object is in none of the `known`; other partitions may have it."""
    elsewhere = [
        (f"{name} in partition {one.key}", frame.at(one.key).url_of(kind, name))
        for one, (_, other) in zip(frame.partitions, scheduler.all_partitions(), strict=True)
        if is_in(other.partition)
    ]
    link = functools.partial(frame.url_of, kind)
    return Unknown(f"There is no {kind} {name}.{more}", frame, name, known, link, elsewhere)


# -- names that are similar to an unknown one ------------------------------------------------------------

COMPARED = 200
"""Largest number of names that are compared in detail."""
MOST = 20_000
"""Largest number of names that are looked at."""
LONGEST = 200
"""Number of characters of a name that are compared."""
SHOWN = 5
"""Largest number of names in an answer."""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are most similar to a name, best first.

    A comparison in detail takes a tenth of a millisecond. Of many names, only those are compared that have
    most characters in common with the name at their begin and end.
    """
    wanted = name.lower()[:LONGEST]
    some = islice(known, MOST)
    candidates = heapq.nlargest(COMPARED, some, key=lambda one: _likeness(wanted, one.lower()))
    by_lower = {one.lower(): one for one in reversed(candidates)}
    close = difflib.get_close_matches(wanted, list(by_lower), n=SHOWN, cutoff=0.6)
    inside = [one for one in by_lower if wanted and wanted in one and one not in close]
    return [by_lower[one] for one in [*close, *inside[: SHOWN - len(close)]]]


def _likeness(wanted: str, one: str) -> tuple[int, int]:
    """Return the number of characters that two names share at their begin and end; more is nearer."""
    if wanted and wanted in one:
        return len(wanted), -len(one)
    same = 0
    for left, right in zip(wanted, one, strict=False):
        if left != right:
            break
        same += 1
    end = 0
    for left, right in zip(reversed(wanted[same:]), reversed(one[same:]), strict=False):
        if left != right:
            break
        end += 1
    return same + end, -abs(len(wanted) - len(one))
