"""Codecs from tables, which state the protobuf field and the conversion of each attribute of a message class.

    RELEASE = codec(AllocationRelease, wire.AllocationRelease, termination_type=enum(TERMINATIONS, UNKNOWN))

A table has entries for exceptions only. Any other attribute has the field of the same name, apart from case
and underscores, and a conversion by the field's type. So a new attribute with a field of its name needs no
entry.

Each table becomes two functions when it is made, as attrs makes `__init__`. They consist of assignments, and
are as fast as functions written by hand. Therefore the conversions of a table are pieces of source.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeVar

import attrs
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from yunikorn.resources import NOTHING, Resource
from yunikorn_service.wire.codec import Codec, fill_all, fill_one
from yunikorn_service.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn_service.wire.protocol import is_list, is_map

Plain = TypeVar("Plain")
Wire = TypeVar("Wire", bound=Message)


# -- amounts ----------------------------------------------------------------------------------------------
#
# Amounts repeat, since thousands of asks share a handful of sizes. Both directions cache the most recent
# amounts, which makes a batch of asks cheap. Both layouts encode an amount in the same bytes.

REMEMBERED = 4096
LONGEST = 512
"""Maximum encoded bytes of a cached amount: longer amounts are rare, and might be sent to fill the memory."""


def from_amount(message: Message) -> Resource:
    """Decode an amount; a missing or empty one is `NOTHING`."""
    serialized = message.SerializeToString()
    if not serialized:
        return NOTHING
    return _remembered(serialized) if len(serialized) <= LONGEST else _parse(serialized)


def _parse(serialized: bytes) -> Resource:
    resources = v0_11.Resource.FromString(serialized).resources
    return Resource({name: resources[name].value for name in resources})


_remembered = lru_cache(REMEMBERED)(_parse)


def fill_amount(amount: Mapping[str, int], message: Message) -> None:
    """Encode an amount; raise `ValueError` for a value that is not a 64-bit integer."""
    if amount:
        serialized = _written(amount) if type(amount) is Resource else _write(amount)
        message.MergeFromString(serialized)


def _write(amount: Mapping[str, int]) -> bytes:
    message = v0_11.Resource()
    resources = message.resources
    for name, value in amount.items():
        resources[name].value = value
    return message.SerializeToString(deterministic=True)


@lru_cache(REMEMBERED)
def _written(amount: Resource) -> bytes:
    return _write(amount)


# -- rows of a table --------------------------------------------------------------------------------------


@attrs.frozen
class Row:
    """Conversion between an attribute and a field.

    The pieces of source use these names in braces: `e` for the message in process and `a` for its attribute,
    `m` for the protobuf message and `f` for its field, `field` for the field's name, `attribute` for the
    attribute's name, and the keys of `using`.
    """

    field: str = ""
    """Name of the field; by default the attribute's name, apart from case and underscores."""
    decode: str | None = "{f}"
    """Expression for the attribute; None for the attribute's default."""
    encode: str = "{f} = {a}"
    """Statements that fill the field; empty for none."""
    check: str = ""
    """Statements before all others, which raise `MalformedMessage` for what the layout cannot express."""
    using: Mapping[str, object] = attrs.field(factory=dict)


ABSENT = Row(decode=None, encode="")
"""Row of an attribute without a field: left out, and decoded as the attribute's default."""
_MAP = Row(
    decode="dict(found) if (found := {f}) else {{}}",
    encode="into = {f}\nfor key, value in {a}.items():\n    into[key] = value",
)
_LIST = Row(decode="list({f})", encode="{f}.extend({a})")
_AMOUNT = Row(
    decode="{read}({f})", encode="{fill}({a}, {f})", using={"read": from_amount, "fill": fill_amount}
)


def many(entry: Codec[Any, Any], field: str = "") -> Row:
    """Return the row of a list of messages."""
    return Row(
        field,
        "[{read}(one) for one in {f}]",
        "{all}('{attribute}', {a}, {fill}, {f})",
        using={"read": entry.from_wire, "all": fill_all, "fill": entry.fill},
    )


def single(entry: Codec[Any, Any]) -> Row:
    """Return the row of one small message, whose errors are those of the attribute as a whole."""
    return Row(
        decode="{read}({f})",
        encode="{fill}({a}, {f})",
        using={"read": entry.from_wire, "fill": entry.fill},
    )


def group(entry: Codec[Any, Any], *content: str) -> Row:
    """Return the row of one message, which is only sent if one of its attributes `content` has a value."""
    return attrs.evolve(
        single(entry),
        encode=_guarded(
            " or ".join(f"{{a}}.{name}" for name in content), "{one}('{attribute}', {a}, {fill}, {f})"
        ),
        using={"read": entry.from_wire, "one": fill_one, "fill": entry.fill},
    )


def optional(row: Row) -> Row:
    """Return the row of a message that may be None; an empty message is sent."""
    return attrs.evolve(
        row,
        decode=f"{row.decode} if {{m}}.HasField('{{field}}') else None",
        encode=_guarded(
            "{a} is not None", "into = {f}\ninto.SetInParent()\n" + row.encode.replace("{f}", "into")
        ),
    )


def sparse(row: Row) -> Row:
    """Return a row that sets the field for a true value only, which is faster where most values are empty."""
    return attrs.evolve(row, encode=_guarded("{a}", row.encode))


def write_only(row: Row) -> Row:
    """Return a row that is encoded, and decoded as the attribute's default."""
    return attrs.evolve(row, decode=None)


def enum(kinds: Mapping[int, object] | type[IntEnum], unknown: object = None) -> Row:
    """Return the row of an enum by the kind of each number; `unknown` is the kind of other numbers.

    A class means that the numbers are its values; a number that is no value is encoded as well.
    """
    by_value = isinstance(kinds, type)
    by_number = {kind.value: kind for kind in kinds} if isinstance(kinds, type) else kinds
    using = {
        "kinds": by_number,
        "kind": by_number.get,
        "unknown": unknown,
        "numbers": {kind: number for number, kind in by_number.items()},
    }
    return Row(
        decode="{kinds}[{f}]" if unknown is None else "{kind}({f}, {unknown})",
        encode="{f} = {a}" if by_value else "{f} = {numbers}[{a}]",
        using=using,
    )


def enums(kinds: type[IntEnum]) -> Row:
    """Return the row of a list of enums, whose numbers are their values; other numbers are left out."""
    return Row(
        decode="[{kinds}[one] for one in {f} if one in {kinds}]",
        encode="{f}.extend({a})",
        using={"kinds": {kind.value: kind for kind in kinds}},
    )


def _guarded(condition: str, statements: str) -> str:
    return f"if {condition}:\n{textwrap.indent(statements, '    ')}"


# -- from tables to codecs ----------------------------------------------------------------------------------


def codec(
    kind: type[Plain],
    wire: type[Wire],
    *,
    partial: bool = False,
    rarely: Collection[str] = (),
    **rows: Row | str,
) -> Codec[Plain, Wire]:
    """Return the codec of a message class by a table: the row, or the name of the field, of each attribute.

    `partial` makes attributes without an entry absent. The attributes in `rarely` are `sparse`. Raises
    `TypeError` for a table that does not fit the classes.
    """
    empty = wire()
    decode: list[str] = []
    checks: list[str] = []
    encode: list[str] = []
    namespace: dict[str, Any] = {"kind": kind}
    for attribute in attrs.fields(kind):  # type: ignore[arg-type]
        name = attribute.name
        given = rows.pop(name, ABSENT if partial else "")
        row = _row(given, attribute, empty)
        if name in rarely:
            row = sparse(row)
        words = {key: f"{name}_{key}" for key in row.using}
        namespace.update((words[key], value) for key, value in row.using.items())
        words |= {"e": "e", "a": f"e.{name}", "m": "m", "f": f"m.{row.field}"}
        words |= {"field": row.field, "attribute": name}
        decode.append((row.decode or "").format_map(words))
        checks.append(row.check.format_map(words))
        encode.append(row.encode.format_map(words))
    if rows:
        raise TypeError(f"{kind.__name__} has no {', '.join(rows)}")
    body = textwrap.indent("\n".join(filter(None, [*checks, *encode, "pass"])), "    ")
    source = f"def decode(m):\n    return kind({', '.join(decode)})\ndef fill(e, m):\n{body}\n"
    exec(compile(source, f"<codec of {kind.__name__}>", "exec"), namespace)
    return Codec(wire, namespace["decode"], namespace["fill"])


def _row(given: Row | str, attribute: attrs.Attribute[Any], empty: Message) -> Row:
    """Return the complete row of an attribute: with a field, and an expression for a default."""
    row = given if isinstance(given, Row) else None
    if row is None or row.encode:
        field = _field(str(given) if row is None else row.field, attribute.name, empty)
        row = attrs.evolve(row or _by_type(field, attribute, empty), field=field.name)
    if row.decode is not None:
        return row
    default: Any = attribute.default
    if default is attrs.NOTHING:
        raise TypeError(f"{attribute.name} has neither a field nor a default")
    made = isinstance(default, attrs.Factory)  # type: ignore[arg-type]
    using = {**row.using, "default": default.factory if made else default}
    return attrs.evolve(row, decode="{default}()" if made else "{default}", using=using)


def _field(name: str, attribute: str, empty: Message) -> FieldDescriptor:
    descriptor: Descriptor = empty.DESCRIPTOR  # type: ignore[assignment]
    wanted = attribute.replace("_", "").lower()
    for field in descriptor.fields:
        if field.name == name if name else field.name.replace("_", "").lower() == wanted:
            return field
    raise TypeError(f"{descriptor.name} has no field {name or f'for {attribute}'}")


def _by_type(field: FieldDescriptor, attribute: attrs.Attribute[Any], empty: Message) -> Row:
    if is_map(field):
        return _MAP
    other = field.message_type or field.enum_type
    if other is not None:
        if other.name != "Resource":
            raise TypeError(f"{attribute.name} needs a row, since its field is a {other.name}")
        return optional(_AMOUNT) if attribute.default is None else sparse(_AMOUNT)
    return _LIST if is_list(field, empty) else Row()
