"""Pages of long lists: `?limit=N` returns the first N entries, and a link to the next page.

Pages are sorted by id, and a page begins behind the last id of the page before. An object that exists
throughout is therefore on exactly one page, whatever comes and goes meanwhile. Without `limit` a list is
complete, in the order of the core.
"""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Callable, Collection, Generator, Iterator
from typing import TypeVar
from urllib.parse import quote, urlencode

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import AnswerLists
from yunikorn_rest.endpoints import COUNT, SAFE, Call, Query
from yunikorn_service.runtime.sliced_reads import Slices

T = TypeVar("T")

LIMIT = Query(
    "limit", "maximum number of entries; the header `Link` then leads to the next page", "100", COUNT
)
CONTINUE = Query("continue", "token of the next page, from the header `X-Continue` of the page before")
PAGES = (LIMIT, CONTINUE)
LARGEST_PAGE = 10_000
"""Maximum number of entries of a page, even if a request wants more."""
STEP = 500
"""Number of ids that are looked at without a pause."""


@attrs.frozen
class Page:
    """Part of a list that a request wants."""

    limit: int | None = None
    """Maximum number of entries; None for the whole list."""
    after: str = ""
    """Id after which the page begins; empty for the first page."""

    @classmethod
    def of(cls, call: Call) -> Page:
        """Return the page that a request wants; raises `RequestRefused`."""
        given, token = call.query("limit"), call.query("continue")
        if token and not given:
            raise RequestRefused(400, '"continue" needs "limit"')
        limit = min(unsigned(given, "limit"), LARGEST_PAGE) if given else None
        return cls(limit, _id_of(token) if token else "")

    def select(
        self, things: Collection[T], id_of: Callable[[T], str], wanted: Callable[[T], bool]
    ) -> Generator[None, None, tuple[list[T], str]]:
        """Return the wanted things of this page, and the last id of the page if another one follows.

        `things` must be a copy, because this pauses.
        """
        if self.limit is None:
            found: list[T] = []
            for part in _parts(things):
                found += [thing for thing in part if wanted(thing)]
                yield
            return found, ""
        first: list[T] = []
        for part in _parts(things):
            behind = [thing for thing in part if id_of(thing) > self.after and wanted(thing)]
            first = heapq.nsmallest(self.limit + 1, [*first, *behind], key=id_of)
            yield
        if len(first) <= self.limit:
            return first, ""
        page = first[: self.limit]
        return page, id_of(page[-1])


def _parts(things: Collection[T]) -> Iterator[list[T]]:
    part: list[T] = []
    for thing in things:
        part.append(thing)
        if len(part) == STEP:
            yield part
            part = []
    yield part


LARGEST = (1 << 64) - 1
"""Largest number that a parameter may be."""


def unsigned(text: str, name: str) -> int:
    """Return the number of a parameter that YuniKorn does not have, from 1 on; raises `RequestRefused`."""
    is_number = text.isascii() and text.isdigit()
    if not (is_number and len(text) <= 20 and 1 <= int(text) <= LARGEST):
        bound = f"to {LARGEST}" if is_number and text.strip("0") else "on"
        raise RequestRefused(400, f'{name}: expected a whole number from 1 {bound}, got "{text[:40]}"')
    return int(text)


def limit_of(call: Call, usual: int, most: int) -> int:
    """Return the parameter `limit`, `most` if it is larger, and `usual` if it is absent.

    Raises `RequestRefused`.
    """
    given = call.query("limit")
    return min(unsigned(given, "limit"), most) if given else usual


def _id_of(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token.encode("ascii")).decode("utf-8")
    except (binascii.Error, ValueError) as problem:
        raise RequestRefused(400, '"continue" is not a token of this server') from problem


async def listed(call: Call, reading: Callable[[Scheduler, AnswerLists], Slices[str]]) -> Answer:
    """Answer with the entries that a reading passes on.

    The reading returns the last id of its page if another page follows, else an empty text.
    """
    last, gathering = await call.gather(reading)
    answer = await call.json(gathering.list())
    token = base64.urlsafe_b64encode(last.encode("utf-8", "replace")).decode("ascii")
    return continued(call, answer, token) if last else answer


def continued(call: Call, answer: Answer, token: str, **given: str) -> Answer:
    """Return an answer with a page that another one follows, which has this token.

    `given` are parameters that the next page has as well.
    """
    kept = [
        (name, value)
        for name, value in call.request.query_params.multi_items()
        if name != "continue" and name not in given
    ]
    kept += given.items()
    path = quote(call.request.scope["path"], safe=SAFE)
    link = f"{path}?{urlencode([*kept, ('continue', token)])}"
    headers = {
        "link": f'<{link}>; rel="next"',
        "x-continue": token,
        "access-control-expose-headers": "Link, X-Continue",
    }
    return attrs.evolve(answer, headers={**answer.headers, **headers})
