"""Typed access to a YAML tree, which collects all problems.

A reader never stops at a problem: it reports the invalid value and returns the default, so that one pass
finds all problems. Readers return `None` for a reported value where later checks need the difference.
"""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import attrs

from yunikorn.config.document import NULLS, Listing, Mapping, Scalar, YamlNode, quote, show
from yunikorn.errors import Problem, printable
from yunikorn.text import suggest

N = TypeVar("N", Mapping, Scalar)

UINT64_MAX = 2**64 - 1
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_YES = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_NO = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]*)\Z")
_BASED = re.compile(r"[+-]?0([xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)\Z")
_FLOAT = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?\Z")
_NO_NUMBER = re.compile(r"[+-]?\.(inf|Inf|INF|nan|NaN|NAN)\Z")


@attrs.frozen(eq=False)
class Spot:
    """Position in the text: a path and the node there."""

    path: str
    node: YamlNode


class Findings:
    """Problems, warnings, notes and hints about a text."""

    def __init__(self, pace: Callable[[], None] | None = None) -> None:
        """Create without findings; `pace` is called all the time, and may end the work by an error."""
        self.pace = pace
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.notes: list[Problem] = []
        self.hints: list[Problem] = []

    def problem(self, spot: Spot, message: str) -> None:
        """Add a problem, which makes the configuration invalid."""
        if self.pace is not None:
            self.pace()
        self.problems.append(_found(spot, message))

    def warning(self, spot: Spot, message: str) -> None:
        """Add a warning about a value that is valid but probably a mistake."""
        self.warnings.append(_found(spot, message))

    def note(self, spot: Spot, message: str) -> None:
        """Add a note about a value that is valid here but refused or treated differently by YuniKorn 1.9."""
        self.notes.append(_found(spot, message))

    def hint(self, spot: Spot, message: str) -> None:
        """Add a hint about a value that is normal, but has no effect at present."""
        self.hints.append(_found(spot, message))


class YamlTable:
    """Mapping in the text, with typed readers for its keys."""

    __slots__ = ("findings", "node", "path")

    def __init__(self, path: str, node: Mapping, findings: Findings) -> None:
        self.path = path
        self.node = node
        self.findings = findings
        if findings.pace is not None:
            findings.pace()

    def only(self, known: Collection[str], hints: abc.Mapping[str, str] | None = None) -> None:
        """Report every key that is not in `known`; `hints` has additional texts for some keys."""
        for key in self.node.entries:
            if key not in known:
                hint = (hints or {}).get(key) or suggest(key, known)
                self.findings.problem(self.key_spot(key), f"unknown key{hint}; known: {', '.join(known)}")

    def __contains__(self, key: str) -> bool:
        """Return True if the key is present and not null."""
        return self.get(key) is not None

    def get(self, key: str) -> YamlNode | None:
        """Return the value of a key, or None if it is missing or null."""
        node = self.node.entries.get(key)
        if isinstance(node, Scalar) and node.plain and node.text in NULLS:
            return None
        return node

    def spot(self, key: str) -> Spot:
        """Return the position of a key's value, or of the mapping if the key is missing."""
        return Spot(self._below(key), self.node.entries.get(key, self.node))

    def key_spot(self, key: str) -> Spot:
        """Return the position of the key itself."""
        return Spot(self._below(key), self.node.key(key))

    def here(self) -> Spot:
        """Return the position of the mapping itself."""
        return Spot(self.path, self.node)

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def problem(self, key: str, message: str) -> None:
        """Report a problem with the value of a key."""
        self.findings.problem(self.spot(key), message)

    # -- typed values -------------------------------------------------------------------------------

    def text(self, key: str, default: str = "") -> str:
        """Read a text; any scalar is valid."""
        node = self.get(key)
        if node is None:
            return default
        if isinstance(node, Scalar):
            return node.text
        self.problem(key, f"expected a text, got {show(node)}")
        return default

    def boolean(self, key: str, default: bool = False, *, strict: bool = False) -> bool:
        """Read a boolean of YAML 1.1; `strict` accepts only `true` and `false`."""
        node = self.get(key)
        if node is None:
            return default
        hint = ""
        if isinstance(node, Scalar) and node.text in _TRUE | _FALSE:
            if node.plain:
                return node.text in _TRUE
            hint = " in quotes, which make it a text: remove them"
        elif isinstance(node, Scalar) and node.text in _YES | _NO:
            if not strict:
                return node.text in _YES
            hint = f" (YuniKorn 1.9 reads it as {str(node.text in _YES).lower()})"
        self.problem(key, f"expected true or false, got {show(node)}{hint}")
        return default

    def count(self, key: str) -> int | None:
        """Read a whole number of at least 0; return 0 if it is missing, None if it was refused."""
        return self.integer(key, 0, UINT64_MAX)

    def integer(self, key: str, low: int, high: int) -> int | None:
        """Read a whole number within bounds; return 0 if it is missing, None if it was refused."""
        node = self.get(key)
        if node is None:
            return 0
        try:
            number = read_integer(node)
            if not low <= number <= high:
                raise ValueError(f"expected a whole number from {low} to {high}, got {show(node)}")
        except ValueError as error:
            self.problem(key, str(error))
            return None
        return number

    def number(self, key: str) -> float | None:
        """Read a finite number; return None if it was refused."""
        try:
            return read_number(self.node.entries[key])
        except ValueError as error:
            self.problem(key, str(error))
            return None

    def table(self, key: str, known: Collection[str] | None = None) -> YamlTable | None:
        """Read a mapping, with only `known` keys if given; return None if it is missing or was refused."""
        node = self.get(key)
        if node is None:
            return None
        if not isinstance(node, Mapping):
            self.problem(key, f"expected a mapping, got {show(node)}")
            return None
        table = YamlTable(self._below(key), node, self.findings)
        if known is not None:
            table.only(known)
        return table

    def items(self, key: str) -> list[Spot] | None:
        """Read the entries of a list, without nulls; return None if it is missing or was refused."""
        node = self.get(key)
        if node is None:
            return None
        if not isinstance(node, Listing):
            hint = f": write [{node.text}]" if isinstance(node, Scalar) else ": put '- ' before each entry"
            self.problem(key, f"expected a list, got {show(node)}{hint}")
            return None
        path = self._below(key)
        return [
            Spot(f"{path}[{index}]", item)
            for index, item in enumerate(node.items)
            if not (isinstance(item, Scalar) and item.is_null)
        ]

    def tables(self, key: str) -> list[YamlTable]:
        """Read a list of mappings."""
        entries = self._entries(key, Mapping, "a mapping")
        return [YamlTable(spot.path, node, self.findings) for node, spot in entries]

    def texts(self, key: str) -> list[tuple[str, Spot]]:
        """Read a list of texts, with their positions."""
        return [(node.text, spot) for node, spot in self._entries(key, Scalar, "a text")]

    def _entries(self, key: str, kind: type[N], expected: str) -> Iterator[tuple[N, Spot]]:
        for spot in self.items(key) or ():
            if isinstance(spot.node, kind):
                yield spot.node, spot
            else:
                self.findings.problem(spot, f"expected {expected}, got {show(spot.node)}")

    def pairs(self, key: str) -> dict[str, str]:
        """Read a mapping from text to text; null is read as an empty text."""
        table = self.table(key)
        return dict(table.each_text()) if table else {}

    def each_text(self) -> Iterator[tuple[str, str]]:
        """Yield the keys and values of this mapping; values must be texts."""
        for key, node in self.node.entries.items():
            if isinstance(node, Scalar):
                yield key, "" if node.is_null else node.text
            else:
                self.problem(key, f"expected a text, got {show(node)}")


def read_integer(node: YamlNode) -> int:
    """Return a whole number such as `10`, `1_000`, `0x1F` or `1e3`. Raises `ValueError`.

    YuniKorn's YAML cuts off fractions and reads a leading zero as octal. Both are refused here, because
    they are probably mistakes (see `docs/decisions/archive/0001`).
    """
    text = _number_text(node, "a whole number")
    if _DECIMAL.match(text):
        # int() refuses very long texts; numbers of more than 40 digits are out of all bounds anyway.
        return int(text[:40])
    if _BASED.match(text):
        return int(text[:80], 0)
    if _FLOAT.match(text):
        if "." not in text and "e" not in text.lower():
            raise ValueError(
                f"expected a whole number, got {show(node)}: leading zeros mean octal, leave them out"
            )
        value = float(text)
        if abs(value) != float("inf") and value == int(value):
            return int(value)
    raise ValueError(f"expected a whole number, got {show(node)}")


def read_number(node: YamlNode) -> float:
    """Return a finite number in YuniKorn's YAML syntax. Raises `ValueError`."""
    text = _number_text(node, "a number")
    if _NO_NUMBER.match(text):
        raise ValueError(f"expected a finite number, got {show(node)}")
    if _BASED.match(text):
        return float(int(text[:80], 0))
    value = float(text) if _FLOAT.match(text) else float("inf")
    if abs(value) == float("inf"):
        raise ValueError(f"expected a number, got {show(node)}")
    return value


def plain_data(node: YamlNode) -> object:
    """Return a node as mappings, lists, texts and None, the input of `Registry.make`."""
    if isinstance(node, Scalar):
        return None if node.is_null else node.text
    if isinstance(node, Listing):
        return [plain_data(item) for item in _given(node)]
    if isinstance(node, Mapping):
        return {key: plain_data(value) for key, value in node.entries.items()}
    raise TypeError(f"no such node: {node!r}")


def descend(spot: Spot, below: str) -> Spot:
    """Return the position `below` a spot (`.a.b[0]`), as deep as the text has nodes; the path is complete."""
    node, rest = spot.node, below
    while rest:
        step = _step(node, rest)
        if step is None:
            break
        node, rest = step
    return Spot((spot.path + below).lstrip("."), node)


def _step(node: YamlNode, rest: str) -> tuple[YamlNode, str] | None:
    if isinstance(node, Mapping) and rest[0] == ".":
        # Keys may contain dots, so the longest matching key is the right one.
        for key in sorted(node.entries, key=len, reverse=True):
            after = rest[1 + len(key) :]
            if rest.startswith(key, 1) and after[:1] in ("", ".", "["):
                return node.entries[key], after
    index = re.match(r"\[([0-9]+)\]", rest)
    if isinstance(node, Listing) and index:
        items = _given(node)
        if int(index[1]) < len(items):
            return items[int(index[1])], rest[index.end() :]
    return None


def _given(node: Listing) -> list[YamlNode]:
    return [item for item in node.items if not (isinstance(item, Scalar) and item.is_null)]


def _number_text(node: YamlNode, wanted: str) -> str:
    if not isinstance(node, Scalar):
        raise ValueError(f"expected {wanted}, got {show(node)}")
    if not node.plain:
        raise ValueError(f"expected {wanted}, got the text {quote(node.text)}: remove the quotes")
    return node.text.replace("_", "")


def _found(spot: Spot, message: str) -> Problem:
    return Problem(printable(spot.path), printable(message), spot.node.line, spot.node.column)
