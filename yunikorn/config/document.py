"""Parser of YAML into a tree of nodes with line and column; scalars stay text.

Scalars such as `name: no`, `vcore: 4` and `t: 1:30` are all text here. The reader of a key converts them,
since it knows the type (see `docs/decisions/archive/0001`). Only the first document of a text is read.
Duplicate keys are refused. Merge keys (`<<`) and aliases are supported, within limits on recursion and
expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import attrs
import yaml

from yunikorn.errors import ConfigError, Problem

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 250
"""Maximum nesting of mappings and lists; the readers of the tree are recursive."""
MAX_ALIASED = 500_000
"""Maximum number of nodes that aliases may add to the nodes of the text."""

_TAG = "tag:yaml.org,2002:"
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""Unquoted texts that mean null."""


@attrs.define(eq=False)
class YamlNode:
    """Node of the tree; line and column count from 1."""

    line: int
    column: int


@attrs.define(eq=False)
class Scalar(YamlNode):
    """Scalar value as text."""

    text: str
    plain: bool
    """True if written without quotes; only such a text may be a number, a boolean or null."""

    @property
    def is_null(self) -> bool:
        """True if the scalar is null: `~`, `null`, or empty."""
        return self.plain and self.text in NULLS


@attrs.define(eq=False)
class Listing(YamlNode):
    """List of nodes."""

    items: list[YamlNode] = attrs.field(factory=list)


@attrs.define(eq=False)
class Mapping(YamlNode):
    """Mapping with text keys, in the order of the text; merged keys come last."""

    entries: dict[str, YamlNode] = attrs.field(factory=dict)
    marks: dict[str, Any] = attrs.field(factory=dict)
    """Positions of the keys as marks of the parser; converted on demand, because few are ever used."""

    def key(self, name: str) -> YamlNode:
        """Return the position of a key."""
        mark = self.marks[name]
        return YamlNode(mark.line + 1, mark.column + 1)


def decode(data: bytes) -> str:
    """Decode a file: UTF-8, or UTF-16 with a byte order mark. Raises `ConfigError`."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        byte = f"byte 0x{data[error.start]:02x}"
        raise ConfigError(
            [_at(before, f"this is not {encoding[:6].upper().rstrip('-')} text: {byte}")]
        ) from None


def compose(text: str, pace: Callable[[], None] | None = None) -> tuple[YamlNode | None, list[Problem]]:
    """Return the first document of `text` (None if there is none) and its problems.

    `pace` is called for each event of the parser. Raises `ConfigError` if the text is not valid YAML.
    """
    _check_characters(text)
    loader = _Loader(text)
    composer = _Composer(loader.get_event if pace is None else _paced(loader.get_event, pace))
    try:
        return composer.compose(), composer.problems
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(text, error)]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", f"this is not valid YAML: {_first_line(str(error))}")]) from None
    finally:
        loader.dispose()


def _paced(get_event: Callable[[], Any], pace: Callable[[], None]) -> Callable[[], Any]:
    def paced() -> Any:
        pace()
        return get_event()

    return paced


def compose_all(text: str) -> list[YamlNode]:
    """Return all documents of `text` that are not empty. Raises `ConfigError` if one is not valid YAML."""
    _check_characters(text)
    loader = _Loader(text)
    try:
        return list(_Composer(loader.get_event).documents())
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(text, error)]) from None
    finally:
        loader.dispose()


def second_document(text: str, pace: Callable[[], None] | None = None) -> YamlNode | None:
    """Return the position of the document after the first one; None if there is none that can be read.

    `pace` is called for each event of the parser.
    """
    if not any(line.startswith(("---", "...")) for line in text.splitlines()[1:]):
        return None
    loader = _Loader(text)
    next_event = loader.get_event if pace is None else _paced(loader.get_event, pace)
    starts = 0
    try:
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            starts += isinstance(event, yaml.DocumentStartEvent)
            if starts == 2 and not isinstance(event, yaml.DocumentStartEvent):
                is_empty = isinstance(event, yaml.ScalarEvent) and not event.value
                return None if is_empty else YamlNode(event.start_mark.line + 1, event.start_mark.column + 1)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return YamlNode(mark.line + 1, mark.column + 1) if mark and starts else None
    finally:
        loader.dispose()
    return None


def show(node: YamlNode) -> str:
    """Return the description of a node in messages."""
    if isinstance(node, Scalar):
        return "nothing" if node.is_null else quote(node.text)
    return "a list" if isinstance(node, Listing) else "a mapping"


def quote(text: str) -> str:
    """Return a user's text for a message, quoted and limited to 80 characters."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


# -- composing ----------------------------------------------------------------------------------------


_SPECIAL = NULLS | {"<<"}
"""Keys that are not plain texts: null and the merge key."""


@attrs.define(eq=False)
class _Anchored:
    """Node with an anchor, the target of aliases."""

    node: YamlNode
    weight: int = 1
    """Number of nodes in the subtree, with aliases expanded."""
    height: int = 1
    is_open: bool = False
    """True if the node is a collection whose end was not parsed yet."""


class _Composer:
    """Builder of the tree from parser events; recursive, which `MAX_DEPTH` bounds."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self.problems: list[Problem] = []
        self._next = next_event
        self._takes: dict[type, Callable[[Any], YamlNode]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.SequenceStartEvent: self._listing,
            yaml.AliasEvent: self._alias,
        }
        self._anchors: dict[str, _Anchored] = {}
        self._depth = 0
        """Number of open collections."""
        self._nodes = 0
        self._aliased = 0
        """Number of nodes added by aliases."""
        self._before = 0
        """Sum of `_nodes` and `_aliased` at the start of the innermost open collection."""
        self._height = 1
        """Height of the subtree built last."""

    def compose(self) -> YamlNode | None:
        root = None
        while not isinstance(event := self._next(), (yaml.DocumentEndEvent, yaml.StreamEndEvent)):
            take = self._takes.get(event.__class__)
            if take is not None:
                root = take(event)
        return root

    def documents(self) -> Iterator[YamlNode]:
        """Yield the documents that are not empty."""
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            take = self._takes.get(event.__class__)
            if take is not None:
                root = take(event)
                if not (isinstance(root, Scalar) and root.is_null):
                    yield root
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}

    def _scalar(self, event: Any) -> Scalar:
        mark = event.start_mark
        plain = not event.style if event.tag is None else _is_plain(event)
        scalar = Scalar(mark.line + 1, mark.column + 1, event.value, plain)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(scalar)
        self._nodes += 1
        self._height = 1
        return scalar

    def _listing(self, event: Any) -> Listing:
        mark, takes, next_event = event.start_mark, self._takes, self._next
        items: list[YamlNode] = []
        listing = Listing(mark.line + 1, mark.column + 1, items)
        around, anchored, height = self._before, self._open(event, listing), 0
        while (event := next_event()).__class__ is not yaml.SequenceEndEvent:
            items.append(takes[event.__class__](event))
            if self._height > height:
                height = self._height
        self._close(anchored, around, height + 1)
        return listing

    def _mapping(self, event: Any) -> Mapping:
        text: Any = yaml.ScalarEvent
        mark, takes, next_event = event.start_mark, self._takes, self._next
        entries: dict[str, YamlNode] = {}
        mapping = Mapping(mark.line + 1, mark.column + 1, entries, {})
        marks, merged = mapping.marks, None
        around, anchored, height = self._before, self._open(event, mapping), 0
        while (event := next_event()).__class__ is not yaml.MappingEndEvent:
            name = event.value if event.__class__ is text else ""
            if name in _SPECIAL or name in entries or event.tag is not None or event.anchor:
                merged = self._odd_pair(mapping, event, merged)
                height = max(height, self._height)
                continue
            marks[name] = event.start_mark
            event = next_event()
            if event.__class__ is text and event.tag is None and not event.anchor:
                mark = event.start_mark
                entries[name] = Scalar(mark.line + 1, mark.column + 1, event.value, not event.style)
                self._nodes += 2
                height = height or 1
            else:
                self._nodes += 1
                entries[name] = takes[event.__class__](event)
                height = max(height, self._height)
        if merged is not None:
            self._merge(mapping, merged)
        self._close(anchored, around, height + 1)
        return mapping

    def _odd_pair(self, mapping: Mapping, event: Any, merged: YamlNode | None) -> YamlNode | None:
        """Read a pair with an invalid, duplicate or merge key; return the value to merge, if any."""
        key = self._takes[event.__class__](event)
        height = self._height
        refused = not isinstance(key, Scalar) or key.is_null
        if refused:
            self._problem(key, f"expected a text as a key, got {show(key)}")
        event = self._next()
        value = self._takes[event.__class__](event)
        self._height = max(height, self._height)
        if refused or not isinstance(key, Scalar):
            return merged
        if key.text == "<<" and key.plain:
            if merged is not None:
                self._problem(key, "the key '<<' is given twice: merge a list, <<: [*first, *second]")
            return value
        if key.text in mapping.entries:
            first = mapping.key(key.text).line
            self._problem(key, f"the key {quote(key.text)} is given twice, first in line {first}")
        else:
            mapping.entries[key.text] = value
            mapping.marks[key.text] = yaml.Mark("", 0, key.line - 1, key.column - 1, None, 0)
        return merged

    def _open(self, event: Any, node: Listing | Mapping) -> _Anchored | None:
        if self._depth >= MAX_DEPTH:
            _fail(event.start_mark, _TOO_DEEP)
        self._depth += 1
        self._before = self._nodes + self._aliased
        if not event.anchor:
            return None
        anchored = self._anchors[event.anchor] = _Anchored(node, is_open=True)
        return anchored

    def _close(self, anchored: _Anchored | None, around: int, height: int) -> None:
        if anchored is not None:
            anchored.weight = 1 + self._nodes + self._aliased - self._before
            anchored.height, anchored.is_open = height, False
        self._depth -= 1
        self._before = around
        self._nodes += 1
        self._height = height

    def _alias(self, event: Any) -> YamlNode:
        mark, named = event.start_mark, self._anchors.get(event.anchor)
        if named is None:
            _fail(mark, f"the alias *{event.anchor} is not defined: there is no &{event.anchor} before it")
        if named.is_open:
            _fail(mark, f"the alias *{event.anchor} is inside the value that it refers to, which is a cycle")
        if self._depth + named.height > MAX_DEPTH:
            _fail(mark, _TOO_DEEP)
        self._nodes += 1
        self._aliased += named.weight - 1
        if self._aliased + 1 - self._before > MAX_ALIASED:
            _fail(mark, f"aliases make this text too large: they may add at most {MAX_ALIASED} values")
        self._height = named.height
        return named.node

    def _merge(self, mapping: Mapping, value: YamlNode) -> None:
        for source in value.items if isinstance(value, Listing) else [value]:
            if not isinstance(source, Mapping):
                self._problem(source, f"'<<' merges a mapping or a list of mappings, got {show(source)}")
                continue
            for key, inherited in source.entries.items():
                if key not in mapping.entries:
                    mapping.entries[key] = inherited
                    mapping.marks[key] = source.marks[key]

    def _problem(self, node: YamlNode, message: str) -> None:
        self.problems.append(Problem("", message, node.line, node.column))


def _is_plain(event: Any) -> bool:
    """Return True if a scalar with a tag may be a number, a boolean or null."""
    if not event.tag.startswith(_TAG):
        return not event.style
    kind = event.tag[len(_TAG) :]
    if kind == "binary":
        _fail(event.start_mark, "the tag !!binary is not supported: write the text as it is")
    return kind != "str" and (not event.style or kind in ("int", "float", "bool", "null"))


# -- explaining ---------------------------------------------------------------------------------------

_COLON = "a ': ' is not allowed here: check the indentation, or put the text in quotes"
_TOO_DEEP = f"mappings and lists nest too deeply here: at most {MAX_DEPTH} levels"
_PLAINLY = {
    "mapping values are not allowed here": _COLON,
    "mapping values are not allowed in this context": _COLON,
    "did not find expected key": "expected a key here: check the indentation",
    "could not find expected ':'": "expected a ':' after a key here: check the indentation",
    "found unexpected end of stream": "the closing quote is missing",
    "did not find expected '-' indicator": "expected a list entry '- ' here: check the indentation",
    # Newer versions of the C library have a limit of their own, far above ours.
    "exceeded maximum nesting depth": _TOO_DEEP,
    "found incompatible YAML document": "this version of YAML is not supported: remove the %YAML line",
}


def _explain(text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    what = error.problem or error.context or "it cannot be read"
    if what.startswith("found character") and what.endswith("cannot start any token"):
        lines = text.splitlines()
        character = lines[line - 1][column - 1 : column] if 0 < line <= len(lines) else ""
        what = (
            "a tab cannot indent: use spaces"
            if character == "\t"
            else f"a text cannot start with {character!r}: put it in quotes"
        )
    return Problem("", f"this is not valid YAML: {_PLAINLY.get(what, what)}", line, column)


def _check_characters(text: str) -> None:
    # Fast path for nearly all texts: these string methods are much faster than the regular expression.
    if text.isascii() and text.replace("\n", "").isprintable():
        return
    strange = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if strange:
        character = f"character U+{ord(strange[0]):04X} is not allowed in YAML"
        raise ConfigError([_at(text[: strange.start()], character)])


def _fail(mark: Any, message: str) -> NoReturn:
    raise ConfigError([Problem("", message, mark.line + 1, mark.column + 1)])


def _at(before: str, message: str) -> Problem:
    lines = before.split("\n")
    return Problem("", message, len(lines), len(lines[-1]) + 1)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
