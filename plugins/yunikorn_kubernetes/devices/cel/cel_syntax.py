"""Tokens and syntax trees of CEL, by the language definition at https://cel.dev."""

from __future__ import annotations

import re
from typing import NamedTuple

import attrs

LONGEST = 10 * 1024
"""Number of bytes of the longest expression, as in Kubernetes."""


class SelectorError(ValueError):
    """A selector that cannot be compiled, or has no result for a device."""


class InvalidExpression(ValueError):
    """An expression that cannot be compiled; the text says where and why."""

    def __init__(self, message: str, at: int = -1) -> None:
        """Create the error; `at` is the position in the expression."""
        super().__init__(f"at character {at + 1}: {message}" if at >= 0 else message)


class Uint(int):
    """Unsigned integer."""


# -- syntax trees ----------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Expression:
    """Part of an expression, with its position."""

    at: int


@attrs.frozen(eq=False)
class LiteralValue(Expression):
    """A value."""

    value: bool | int | float | str | bytes | None


@attrs.frozen(eq=False)
class Identifier(Expression):
    """A name."""

    name: str


@attrs.frozen(eq=False)
class Select(Expression):
    """A field of a value, `OPERAND.FIELD`."""

    operand: Expression
    field: str
    is_test: bool = False
    """True for the argument of `has`."""
    is_optional: bool = False
    """True for `OPERAND.?FIELD`."""


@attrs.frozen(eq=False)
class FunctionCall(Expression):
    """A function or operator with its arguments; a target comes before the name of a member function."""

    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


@attrs.frozen(eq=False)
class ListLiteral(Expression):
    """A list."""

    elements: tuple[Expression, ...]


@attrs.frozen(eq=False)
class MapLiteral(Expression):
    """A map."""

    entries: tuple[tuple[Expression, Expression], ...]


@attrs.frozen(eq=False)
class Loop(Expression):
    """A macro that visits the elements of a list, or the keys of a map."""

    macro: str
    """`all`, `exists`, `exists_one`, `map` or `filter`."""
    range: Expression
    variable: str
    condition: Expression | None
    """Condition on an element; None for a `map` without one."""
    result: Expression | None = None
    """Result of `map` for an element."""


@attrs.frozen(eq=False)
class Bind(Expression):
    """A name for a value, `cel.bind(NAME, VALUE, RESULT)`."""

    variable: str
    value: Expression
    result: Expression


def children(part: Expression) -> tuple[Expression, ...]:
    """Return the direct parts of an expression."""
    match part:
        case Select():
            return (part.operand,)
        case FunctionCall():
            return part.arguments if part.target is None else (part.target, *part.arguments)
        case ListLiteral():
            return part.elements
        case MapLiteral():
            return tuple(one for entry in part.entries for one in entry)
        case Loop():
            return tuple(one for one in (part.range, part.condition, part.result) if one is not None)
        case Bind():
            return part.value, part.result
    return ()


# -- tokens ----------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """A piece of an expression."""

    kind: str
    """`name`, `escaped`, `value`, `end`, or the text of an operator."""
    text: str
    at: int
    value: bool | int | float | str | bytes | None = None


_TOKEN = re.compile(
    r"""
    (?P<space>(?:[\t \r\n\f]+|//[^\n]*)+)
    |(?P<text>[bB]?[rR]?(?:\"\"\"|'''|"|'))
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_./ -]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[][(){}<>.,!?:+*/%-])
    """,
    re.VERBOSE,
)
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPE = re.compile(
    r"""\\(?:(?P<one>[abfnrtv"'\\?`])|(?P<octal>[0-3][0-7][0-7])|[xX](?P<byte>[0-9a-fA-F]{2})
    |u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<wrong>.?))""",
    re.VERBOSE | re.DOTALL,
)
_ONE = dict(zip("abfnrtv\"'\\?`", "\a\b\f\n\r\t\v\"'\\?`", strict=True))
INT64 = 2**63
UINT64 = 2**64


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of an expression. Raises `InvalidExpression`."""
    if len(source.encode("utf-8", "surrogatepass")) > LONGEST:
        raise InvalidExpression(f"the expression is longer than {LONGEST} bytes")
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise InvalidExpression(f"unexpected {source[at]!r}", at)
        kind, text = match.lastgroup or "", match.group()
        start, at = at, match.end()
        if kind == "text":
            value, at = _text(source, start, text)
            found.append(Token("value", source[start:at], start, value))
        elif kind == "float":
            found.append(Token("value", text, start, float(text)))
        elif kind == "unsigned":
            found.append(Token("value", text, start, _number(match, start)))
        elif kind == "name" and text in _CONSTANTS:
            found.append(Token("value", text, start, _CONSTANTS[text]))
        elif kind == "name":
            found.append(Token("in" if text == "in" else "name", text, start))
        elif kind == "escaped":
            found.append(Token("escaped", text[1:-1], start))
        elif kind == "operator":
            found.append(Token(text, text, start))
    found.append(Token("end", "", len(source)))
    return found


def _number(match: re.Match[str], at: int) -> int:
    digits = match["int"]
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    if match["unsigned"]:
        if number >= UINT64:
            raise InvalidExpression("the number does not fit into 64 bits", at)
        return Uint(number)
    # A minus sign is a token of its own, so the smallest number is one larger than the largest.
    if number > INT64:
        raise InvalidExpression("the number does not fit into 64 bits", at)
    return number


def _text(source: str, at: int, opening: str) -> tuple[str | bytes, int]:
    """Return the value of a text or of bytes, and the position behind it."""
    prefix = opening.rstrip("\"'").lower()
    quotes = opening[len(prefix) :]
    start = at + len(opening)
    end = start
    while not source.startswith(quotes, end):
        if end >= len(source) or (len(quotes) == 1 and source[end] in "\r\n"):
            raise InvalidExpression("a text has no end", at)
        end += 2 if source[end] == "\\" and "r" not in prefix else 1
    inner, is_bytes = source[start:end], "b" in prefix
    if "r" in prefix or "\\" not in inner:
        value: str | bytes = inner.encode() if is_bytes else inner
    elif is_bytes:
        value = b"".join(_pieces(inner, start, is_bytes=True))
    else:
        value = b"".join(_pieces(inner, start, is_bytes=False)).decode()
    return value, end + len(quotes)


def _pieces(inner: str, start: int, *, is_bytes: bool) -> list[bytes]:
    found, at = [], 0
    for match in _ESCAPE.finditer(inner):
        found.append(inner[at : match.start()].encode())
        at = match.end()
        if (one := match["one"]) is not None:
            found.append(_ONE[one].encode())
            continue
        code = int(match["octal"] or "0", 8) or int(
            match["byte"] or match["short"] or match["long"] or "0", 16
        )
        is_wide = match["short"] is not None or match["long"] is not None
        is_wrong = match["wrong"] is not None or 0xD800 <= code < 0xE000 or code > 0x10FFFF
        if is_wrong or (is_bytes and is_wide):
            raise InvalidExpression(f"invalid escape {match.group()!r}", start + match.start())
        found.append(bytes([code]) if is_bytes else chr(code).encode())
    found.append(inner[at:].encode())
    return found
