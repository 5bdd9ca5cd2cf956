"""Semantic versions, by the rules of semver.org, version 2.0.0."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST = 256
"""Number of characters of the longest version that is read."""
_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z"
)
_DIGITS = frozenset("0123456789")
_UINT64_MAX = 2**64 - 1


class InvalidVersion(ValueError):
    """A text that is no semantic version."""


class SemanticVersion(NamedTuple):
    """A version; what is built in does not count in comparisons."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[tuple[int, int, str], ...] = ()
    """Parts before the release, comparable: numbers are below texts."""

    def compare(self, other: SemanticVersion) -> int:
        """Return -1, 0 or 1 for an older, equal or newer version."""
        mine, its = self._key(), other._key()
        return (mine > its) - (mine < its)

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]:
        # A version without parts before the release is newer than one with some.
        return self.major, self.minor, self.patch, not self.prerelease, self.prerelease


@lru_cache(maxsize=1024)
def read_version(text: str, *, tolerant: bool = False) -> SemanticVersion:
    """Return the version of a text. Raises `InvalidVersion`.

    A tolerant reader accepts a `v` in front, zeros in front of numbers, and missing numbers.
    """
    match = _VERSION.match(_normal(text) if tolerant else text) if len(text) <= LONGEST else None
    if match is None:
        raise InvalidVersion(f"{text[:LONGEST]!r} is not a semantic version")
    numbers = [int(number) for number in match.groups()[:3]]
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in (match[4] or "").split(".")
        if part
    )
    if max(*numbers, *(part[1] for part in parts)) > _UINT64_MAX:
        raise InvalidVersion(f"{text!r} is not a semantic version: a number is too large")
    return SemanticVersion(numbers[0], numbers[1], numbers[2], parts)


def _normal(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for number, part in enumerate(parts):
        if len(part) > 1:
            short = part.lstrip("0")
            parts[number] = short if short[:1] in _DIGITS else "0" + short
    if len(parts) < 3 and not ("+" in parts[-1] or "-" in parts[-1]):
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)
