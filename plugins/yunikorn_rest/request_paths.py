"""Paths of requests: decoding of names, and corrected paths of requests that only nearly match a route.

Servers decode the percent escapes of a path once; an escaped slash therefore separates segments. Names of
queues, users and groups are decoded a second time, like a query, as YuniKorn does: a client that sends a name
with `/` or `%` escapes it twice.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.routing import compile_path

from yunikorn_rest.answers import RequestRefused

SAFE = "/:@!$&'()*+,;=-._~"
"""Characters that need no escape in a path."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decoded_twice(value: str) -> str:
    """Return a name decoded like a query value; raises `RequestRefused` for an invalid escape."""
    bad = _BAD_ESCAPE.search(value)
    if bad is not None:
        raise RequestRefused(400, f'invalid URL escape "{value[bad.start() : bad.start() + 3]}"')
    return unquote_to_bytes(value.replace("+", " ")).decode("utf-8", "replace")


class Spelling:
    """Finds the correct spelling of paths with other letter case, `//`, `..`, or another final slash."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._known = []
        for pattern in patterns:
            regex, template, _ = compile_path(pattern)
            self._known.append((re.compile(regex.pattern, re.IGNORECASE), template))

    def corrected(self, path: str) -> str | None:
        """Return the path that was probably meant, or None if no route is near."""
        clean = posixpath.normpath("/" + path.lstrip("/"))
        for meant in (path.rstrip("/"), f"{path}/", clean, f"{clean}/"):
            for regex, template in self._known:
                found = regex.match(meant)
                if found is not None:
                    corrected = template.format(**found.groupdict())
                    if corrected != path:
                        return corrected
        return None
