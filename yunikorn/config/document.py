"""A YAML text as a tree of located nodes: scalars stay text, every node knows its line and column.

What a scalar means is decided where its type is known (decision 1), so `name: no`, `vcore: 4` and
`t: 1:30` are all just text here. Only the first document of a text is read. Duplicate keys are refused;
merge keys (`<<`) and aliases work, but neither endless nor explosive ones.
"""

from __future__ import annotations

from typing import Any, NoReturn

import attrs
import yaml

from yunikorn.errors import ConfigError, Problem

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 250
"""How deep mappings and lists may nest; what reads the tree recurses over it."""
MAX_ALIASED = 500_000
"""How many nodes aliases may add to those that are written."""

_TAG = "tag:yaml.org,2002:"
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""Texts that, without quotes, stand for nothing."""


@attrs.define(eq=False)
class Node:
    """A part of the text, with its place (counted from 1)."""

    line: int
    column: int


@attrs.define(eq=False)
class Scalar(Node):
    """A single text."""

    text: str
    plain: bool
    """Written without quotes, so it may stand for a number, a boolean or nothing."""

    @property
    def is_null(self) -> bool:
        """Whether it stands for nothing: `~`, `null`, or no text at all."""
        return self.plain and self.text in NULLS


@attrs.define(eq=False)
class Listing(Node):
    """A list."""

    items: list[Node] = attrs.field(factory=list)


@attrs.define(eq=False)
class Mapping(Node):
    """A mapping with text keys, in the order of the text; merged keys come last."""

    entries: dict[str, Node] = attrs.field(factory=dict)
    keys: dict[str, Scalar] = attrs.field(factory=dict)
    """The keys as nodes, for their places."""


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark. Raises `ConfigError`."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        byte = f"byte 0x{data[error.start]:02x}"
        raise ConfigError(
            [_at(before, f"this is no {encoding[:6].upper().rstrip('-')} text: {byte}")]
        ) from None


def compose(text: str) -> tuple[Node | None, list[Problem]]:
    """The first document of `text` (None if there is none), and the problems inside it.

    Raises `ConfigError` when the text is no YAML at all.
    """
    strange = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if strange:
        character = f"character U+{ord(strange[0]):04X} is not allowed in YAML"
        raise ConfigError([_at(text[: strange.start()], character)])
    composer = _Composer()
    try:
        return composer.compose(_Loader(text)), composer.problems
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(text, error)]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", f"this is no valid YAML: {_first_line(str(error))}")]) from None


def show(node: Node) -> str:
    """A node as a message names it."""
    if isinstance(node, Scalar):
        return "nothing" if node.is_null else quote(node.text)
    return "a list" if isinstance(node, Listing) else "a mapping"


def quote(text: str) -> str:
    """A text of the user in a message: quoted, and not longer than it helps."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


# -- composing ----------------------------------------------------------------------------------------


_NO_KEY = Scalar(0, 0, "", False)
"""Stands for a key that was refused."""


@attrs.define(eq=False)
class _Open:
    """A collection whose end has not come yet."""

    node: Listing | Mapping
    anchor: str | None
    key: Scalar | None = None
    merged: Node | None = None
    weight: int = 1
    """How many nodes it holds, aliases followed."""
    height: int = 1


@attrs.define(eq=False)
class _Anchored:
    """What an alias can name."""

    node: Node
    weight: int = 1
    height: int = 1


class _Composer:
    """Builds the tree from the parser's events, without recursion: depth is the user's to choose."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._written = 0
        self._root: Node | None = None

    def compose(self, loader: Any) -> Node | None:
        takes = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
        }
        next_event = loader.get_event
        try:
            while True:
                event = next_event()
                take = takes.get(event.__class__)
                if take is not None:
                    take(event)
                elif isinstance(event, (yaml.DocumentEndEvent, yaml.StreamEndEvent)):
                    break
        finally:
            loader.dispose()
        return self._root

    def _scalar(self, event: Any) -> None:
        mark = event.start_mark
        plain = not event.style if event.tag is None else _is_plain(event)
        scalar = Scalar(mark.line + 1, mark.column + 1, event.value, plain)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(scalar)
        self._place(scalar)

    def _begin(self, event: Any) -> None:
        mark = event.start_mark
        if len(self._open) >= MAX_DEPTH:
            _fail(mark, f"mappings and lists nest too deeply here: at most {MAX_DEPTH} levels")
        line, column = mark.line + 1, mark.column + 1
        node: Listing | Mapping
        if isinstance(event, yaml.SequenceStartEvent):
            node = Listing(line, column, [])
        else:
            node = Mapping(line, column, {}, {})
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(node)
        self._open.append(_Open(node, event.anchor))

    def _end(self, _: Any) -> None:
        closed = self._open.pop()
        if closed.merged is not None and isinstance(closed.node, Mapping):
            self._merge(closed.node, closed.merged)
        if closed.anchor:
            anchored = self._anchors[closed.anchor]
            if anchored.node is closed.node:
                anchored.weight, anchored.height = closed.weight, closed.height
        self._place(closed.node, closed.weight, closed.height)

    def _alias(self, event: Any) -> None:
        mark, named = event.start_mark, self._anchors.get(event.anchor)
        if named is None:
            _fail(mark, f"the alias *{event.anchor} names nothing: no &{event.anchor} before it")
        if any(each.node is named.node for each in self._open):
            _fail(mark, f"the alias *{event.anchor} stands inside of what it names, so it never ends")
        if len(self._open) + named.height > MAX_DEPTH:
            _fail(mark, f"mappings and lists nest too deeply here: at most {MAX_DEPTH} levels")
        self._place(named.node, named.weight, named.height)
        if self._open and self._open[-1].weight > self._written + MAX_ALIASED:
            _fail(mark, f"aliases blow this text up: they may add at most {MAX_ALIASED} values")

    def _place(self, node: Node, weight: int = 1, height: int = 1) -> None:
        self._written += 1
        if not self._open:
            self._root = node
            return
        top = self._open[-1]
        top.weight += weight
        if height >= top.height:
            top.height = height + 1
        holder = top.node
        if isinstance(holder, Listing):
            holder.items.append(node)
        elif top.key is None:
            if isinstance(node, Scalar) and not (node.plain and node.text in NULLS):
                top.key = node
            else:
                self._problem(node, f"expected a text as a key, got {show(node)}")
                top.key = _NO_KEY
        else:
            key, top.key = top.key, None
            self._enter(top, holder, key, node)

    def _enter(self, top: _Open, mapping: Mapping, key: Scalar, value: Node) -> None:
        text = key.text
        if text not in mapping.entries and text != "<<" and key is not _NO_KEY:
            mapping.entries[text] = value
            mapping.keys[text] = key
        elif key is _NO_KEY:
            return
        elif text == "<<" and key.plain:
            if top.merged is not None:
                self._problem(key, "the key '<<' is given twice: merge a list, <<: [*first, *second]")
            top.merged = value
        elif text in mapping.entries:
            first = mapping.keys[text].line
            self._problem(key, f"the key {quote(text)} is given twice, first in line {first}")
        else:
            mapping.entries[text] = value
            mapping.keys[text] = key

    def _merge(self, mapping: Mapping, value: Node) -> None:
        for source in value.items if isinstance(value, Listing) else [value]:
            if not isinstance(source, Mapping):
                self._problem(source, f"'<<' merges a mapping or a list of mappings, got {show(source)}")
                continue
            for key, inherited in source.entries.items():
                if key not in mapping.entries:
                    mapping.entries[key] = inherited
                    mapping.keys[key] = source.keys[key]

    def _problem(self, node: Node, message: str) -> None:
        self.problems.append(Problem("", message, node.line, node.column))


def _is_plain(event: Any) -> bool:
    """Whether a scalar with a tag may stand for a number, a boolean or nothing."""
    if not event.tag.startswith(_TAG):
        return not event.style
    kind = event.tag[len(_TAG) :]
    if kind == "binary":
        _fail(event.start_mark, "the tag !!binary is not supported: write the text as it is")
    return kind != "str" and (not event.style or kind in ("int", "float", "bool", "null"))


# -- explaining ---------------------------------------------------------------------------------------

_COLON = "a ': ' cannot stand here: check the indentation, or put the text in quotes"
_PLAINLY = {
    "mapping values are not allowed here": _COLON,
    "mapping values are not allowed in this context": _COLON,
    "did not find expected key": "expected a key here: check the indentation",
    "could not find expected ':'": "expected a ':' after a key here: check the indentation",
    "found unexpected end of stream": "the text ends inside of quotes: the closing one is missing",
    "did not find expected '-' indicator": "expected a list entry '- ' here: check the indentation",
    "found incompatible YAML document": "this version of YAML is not known: leave the %YAML line out",
}


def _explain(text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    what = error.problem or error.context or "it cannot be read"
    if what.startswith("found character") and what.endswith("cannot start any token"):
        lines = text.splitlines()
        character = lines[line - 1][column - 1 : column] if 0 < line <= len(lines) else ""
        what = (
            "a tab cannot indent: use blanks"
            if character == "\t"
            else f"a text cannot start with {character!r}: put it in quotes"
        )
    return Problem("", f"this is no valid YAML: {_PLAINLY.get(what, what)}", line, column)


def _fail(mark: Any, message: str) -> NoReturn:
    raise ConfigError([Problem("", message, mark.line + 1, mark.column + 1)])


def _at(before: str, message: str) -> Problem:
    lines = before.split("\n")
    return Problem("", message, len(lines), len(lines[-1]) + 1)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
