"""Files of the pages: style sheet, script and icon, kept in memory and named by their content."""

from __future__ import annotations

import hashlib
from importlib import resources

import attrs

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
            resources.files("yunikorn.web").joinpath("static").iterdir(), key=lambda file: file.name
        ):
            kind = TYPES.get(one.name.rpartition(".")[2])
            if kind is not None:
                content = one.read_bytes()
                version = hashlib.blake2b(content, digest_size=8).hexdigest()
                self.by_name[one.name] = StaticFile(one.name, content, kind, version)

    def address(self, name: str) -> str:
        """Return the address of a file, which changes with its content."""
        return f"{FOLDER}/{name}?v={self.by_name[name].version}"
