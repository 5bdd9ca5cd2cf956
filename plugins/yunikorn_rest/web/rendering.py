"""HTML of pages and their files: templates, rendered in short pieces, with headers that protect a page.

Notices of changes to open pages, as Server-Sent Events, at most one each second.

A page needs to know that something has changed, and then fetches itself again. The stream of all events would
tell a browser the same with tens of thousands of messages a second.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs

from yunikorn import __version__
from yunikorn.quantities import ordered
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import PIECE, LoopTurns
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.event_streams import EVENT_STREAM, HEARTBEAT, EventStream, OpenStream
from yunikorn_rest.web import amount_bars, time_phrases
from yunikorn_rest.web.frame import address

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOLDER = "/static"
YEAR = 31_536_000
"""Seconds for which a browser may keep a file, because another version has another address."""


@attrs.frozen
class StaticFile:
    """A file."""

    name: str
    content: bytes
    content_type: str
    version: str
    """Hash of the content."""


class StaticFiles:
    """All files, by name."""

    def __init__(self) -> None:
        """Read the files of the package."""
        self.by_name: dict[str, StaticFile] = {}
        for one in sorted(
            resources.files("yunikorn_rest.web").joinpath("static").iterdir(), key=lambda file: file.name
        ):
            kind = TYPES.get(one.name.rpartition(".")[2])
            if kind is not None:
                content = one.read_bytes()
                version = hashlib.blake2b(content, digest_size=8).hexdigest()
                self.by_name[one.name] = StaticFile(one.name, content, kind, version)

    def address(self, name: str) -> str:
        """Return the address of a file, which changes with its content."""
        return f"{FOLDER}/{name}?v={self.by_name[name].version}"


_LONG_SECONDS = re.compile(r"\b([0-9]+\.[0-9])[0-9]+s\b")
HTML = "text/html; charset=utf-8"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content security policy: nothing is loaded from elsewhere, and no code or style is inside of a page."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of all pages and of their files."""


class Renderer:
    """Templates of the pages."""

    def __init__(self, files: StaticFiles, stopwatch: Callable[[], int]) -> None:
        """Load no template yet; `stopwatch` counts nanoseconds, to render in slices."""
        self._turns = LoopTurns(stopwatch)
        self._files = files

    @functools.cached_property
    def _environment(self) -> Environment:
        # At the first page: most services show none, and the import is a twentieth of their start.
        from jinja2 import Environment, PackageLoader, StrictUndefined

        found = Environment(
            loader=PackageLoader("yunikorn_rest.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        found.globals.update(
            version=__version__, address=address, file=self._files.address, times=time_phrases
        )
        found.filters.update(
            amount=_amount,
            amounts=amount_bars.listed,
            ordered=ordered,
            number=amount_bars.number,
            duration=time_phrases.duration,
            breakable=breakable,
            ident=ident,
            tidy=tidy,
        )
        return found

    async def render(self, template: str, context: Mapping[str, Any]) -> Sequence[bytes]:
        """Return the HTML of a page in pieces; other tasks run after each millisecond.

        The interpreter would otherwise be kept from the core for as long as a large page takes.
        """
        pieces: list[bytes] = []
        waiting: list[str] = []
        if "_environment" not in vars(self):
            await asyncio.to_thread(lambda: self._environment)
        size, until = 0, self._turns.begin()
        for text in self._environment.get_template(template).generate(**context):
            waiting.append(text)
            size += len(text)
            if size >= PIECE:
                pieces.append("".join(waiting).encode("utf-8", "replace"))
                waiting, size = [], 0
            if self._turns.is_over(until):
                until = await self._turns.next()
        pieces.append("".join(waiting).encode("utf-8", "replace"))
        return pieces

    def render_at_once(self, template: str, context: Mapping[str, Any]) -> bytes:
        """Return the HTML of a small page."""
        return self._environment.get_template(template).render(context).encode("utf-8", "replace")


def _amount(value: int, name: str) -> str:
    return amount_bars.amount(name, value)


def tidy(text: str) -> str:
    """Return a message with tenths of a second at most: `29.9s` instead of `29.981477569s`."""
    return _LONG_SECONDS.sub(r"\1s", text)


def ident(name: str) -> str:
    """Return a name as a part of an `id` attribute, which has no blanks."""
    return quote(name, safe="", errors="replace")


@functools.lru_cache(maxsize=1024)
def breakable(name: str) -> Markup:
    """Return a name that lines may break behind dots, slashes, hyphens and underscores."""
    from markupsafe import Markup

    found = Markup.escape(name)
    for char in "./-_":
        found = found.replace(char, Markup(f"{char}<wbr>"))
    return found


PAUSE = 1.0
"""Seconds between two notices."""


@attrs.frozen(kw_only=True)
class ChangeStream(EventStream):
    """Answer that sends a message after each change, and another one when the changes have ended.

    The last message is later than the last change by more than the time for which a page is kept.
    """

    pause: float = PAUSE

    async def _pieces(self, stream: OpenStream) -> AsyncIterator[bytes]:
        store = self.hub.store
        yield b"retry: 2000\nevent: open\ndata: %b\n\n" % store.instance.encode()
        is_settled = True
        while not stream.is_over:
            stream.wake.clear()
            _, following = store.bounds
            if following == stream.position and is_settled:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await stream.wake.wait()
                except TimeoutError:
                    yield b"event: beat\ndata:\n\n"
                continue
            is_settled = following == stream.position
            stream.position = following
            yield b"event: change\ndata: %d\n\n" % following
            await asyncio.sleep(self.pause)


@Route("/live", content_type=EVENT_STREAM, errors=(404, 503), cross_origin=False, is_unlimited=True)
async def live(call: Call) -> Answer:
    """Notices of changes for open pages."""
    hub = call.context.events
    if hub is None:
        raise RequestRefused(404, "no events are kept, so there are no notices of changes")
    host = call.caller.address
    if not hub.has_room(host):
        raise RequestRefused(503, "Too many streaming connections")
    return ChangeStream(hub=hub, host=host, position=hub.store.bounds[1], as_messages=True, headers=HEADERS)
