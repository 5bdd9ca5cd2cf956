"""Functions of selectors: their types, what they do, and what they cost.

Selectors in Kubernetes may call more functions (of URLs, addresses, dates, formats). Here they are refused
when an expression is compiled, see docs/decisions/0212-selectors-and-devices.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from yunikorn_kubernetes.devices.cel import cel_types as t
from yunikorn_kubernetes.devices.cel.cel_syntax import INT64, Uint
from yunikorn_kubernetes.devices.cel.cel_types import CelType, list_of, map_of, optional_of
from yunikorn_kubernetes.devices.cel.cel_values import (
    ABSENT,
    CelMap,
    EvaluationError,
    Optional,
    TypeValue,
    Value,
    check_size,
    contains,
    no_overload,
    size_of,
    whole,
)
from yunikorn_kubernetes.devices.cel.exact_quantity import (
    BILLION,
    EXPONENT,
    ExactQuantity,
    InvalidQuantity,
    read_quantity,
)
from yunikorn_kubernetes.devices.cel.semantic_version import InvalidVersion, SemanticVersion, read_version

Implementation = Callable[..., Value]
Cost = Callable[[tuple[Value, ...], Value], int]


class Overload(NamedTuple):
    """Types of the arguments and of the result; the target of a member function is the first argument."""

    is_member: bool
    arguments: tuple[CelType, ...]
    result: CelType


class Function(NamedTuple):
    """A function with all its overloads."""

    overloads: tuple[Overload, ...]
    call: Implementation
    cost: Cost


# -- costs, by the model of the reference ----------------------------------------------------------------


def one_step(arguments: tuple[Value, ...], result: Value) -> int:
    """Return the cost of most functions."""
    return 1


def traversal(size: int, times: int = 1) -> int:
    """Return the cost of reading a text of this size."""
    return math.ceil(size * times * 0.1)


def _read(arguments: tuple[Value, ...], result: Value) -> int:
    return traversal(size_of(arguments[0]))


def _read_twice(arguments: tuple[Value, ...], result: Value) -> int:
    return traversal(size_of(arguments[0]), 2)


def _written_twice(arguments: tuple[Value, ...], result: Value) -> int:
    return traversal(size_of(result), 2)


def _search(arguments: tuple[Value, ...], result: Value) -> int:
    return traversal(size_of(arguments[0])) * traversal(size_of(arguments[1]))


def _match(arguments: tuple[Value, ...], result: Value) -> int:
    return traversal(1 + size_of(arguments[0])) * math.ceil(size_of(arguments[1]) * 0.25)


def _product(arguments: tuple[Value, ...], result: Value) -> int:
    return 1 + size_of(arguments[0]) * size_of(arguments[1])


# -- texts -----------------------------------------------------------------------------------------------


def _texts(name: str, call: Callable[..., Value], *kinds: type) -> Implementation:
    """Return a function that is only defined for arguments of these types."""
    wanted = tuple(kinds)

    def checked(*arguments: Value) -> Value:
        if tuple(map(type, arguments)) != wanted[: len(arguments)]:
            raise no_overload(name)
        return call(*arguments)

    return checked


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> Any:
    """Return a compiled pattern, matched in linear time. Raises `EvaluationError`."""
    # Imported here because the library slows down the start.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise EvaluationError(f"invalid pattern {pattern!r}: {error}") from None


def _within(at: int, text: str) -> int:
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")
    return at


def _index_of(text: str, wanted: str, offset: int = 0) -> int:
    if not wanted:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(wanted, offset)


def _last_index_of(text: str, wanted: str, offset: int | None = None) -> int:
    if not wanted:
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(wanted)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.rfind(wanted, 0, offset + len(wanted)) if offset < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range: {start} to {end}")
    return text[_within(start, text) : len(text) if end is None else _within(end, text)]


def _split(text: str, separator: str, count: int = -1) -> list[Value]:
    if count == 0:
        return []
    if not separator:
        pieces = list(text)
        return pieces if count < 0 else [*pieces[: count - 1], *filter(None, ["".join(pieces[count - 1 :])])]
    return list(text.split(separator, max(-1, count - 1) if count > 0 else -1))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    check_size(len(text) + text.count(old) * len(new))
    return text.replace(old, new, max(count, -1))


def _join(values: list[Value], separator: str = "") -> str:
    for one in values:
        if type(one) is not str:
            raise EvaluationError("only texts can be joined")
    check_size(sum(map(len, values)) + len(values) * len(separator))
    return separator.join(values)


def _find(text: str, pattern: str) -> str:
    found = compiled_pattern(pattern).search(text)
    return "" if found is None else str(found.group())


def _find_all(text: str, pattern: str, most: int = -1) -> list[Value]:
    found = [match.group() for match in compiled_pattern(pattern).finditer(text)]
    return found if most < 0 else found[:most]


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACE += "\u2028\u2029\u202f\u205f\u3000"


# -- conversions -----------------------------------------------------------------------------------------


_SIGNED = re.compile(r"[+-]?[0-9]+\Z")
_UNSIGNED = re.compile(r"[0-9]+\Z")
_TRUTHS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def _integer(value: Value, kind: type, name: str) -> int:
    if type(value) in (int, Uint):
        return whole(value, kind)
    if type(value) is float:
        if not (math.isfinite(value) and -INT64 < value < 2 * INT64):
            raise EvaluationError("integer overflow")
        return whole(int(value) if kind is int or value >= 0 else -1, kind)
    pattern = _SIGNED if kind is int else _UNSIGNED
    if type(value) is str and value.isascii() and len(value) <= 64 and pattern.match(value):
        return whole(int(value), kind)
    raise no_overload(name) if type(value) is not str else EvaluationError(f"{value!r} is no {name}")


def _double(value: Value) -> float:
    if type(value) in (int, Uint, float):
        return float(value)
    if type(value) is str and value.isascii() and "_" not in value and value == value.strip():
        try:
            return float(value)
        except ValueError:
            pass
    raise EvaluationError(f"{value!r} is no double") if type(value) is str else no_overload("double")


def _string(value: Value) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in (int, Uint):
        return str(int(value))
    if type(value) is float:
        return _shortest(value)
    if type(value) is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes") from None
    raise no_overload("string")


def _shortest(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for digits in range(17):
        text = f"{value:.{digits}e}"
        if float(text) == value:
            mantissa, _, exponent = text.partition("e")
            break
    power = int(exponent)
    if power < -4 or power >= 21:
        return f"{mantissa}e{power:+03d}"
    places = max(0, len(mantissa.lstrip("-").replace(".", "")) - 1 - power)
    return f"{value:.{places}f}"


def _bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in _TRUTHS:
        return _TRUTHS[value]
    raise no_overload("bool")


def _bytes(value: Value) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode()
    raise no_overload("bytes")


_TYPE_NAMES: Mapping[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: t.LIST,
    CelMap: t.MAP,
    Optional: t.OPTIONAL,
    TypeValue: t.TYPE,
    ExactQuantity: t.QUANTITY.name,
    SemanticVersion: t.SEMVER.name,
}
TYPE_VALUES: Mapping[str, CelType] = {
    name: CelType(t.TYPE)
    for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type", t.LIST, t.MAP, t.TYPE)
}
"""Names of types that are values in expressions."""


def _type(value: Value) -> TypeValue:
    return TypeValue(_TYPE_NAMES[type(value)])


def _size(value: Value) -> int:
    if type(value) not in (str, bytes, list, CelMap):
        raise no_overload("size")
    return len(value)


# -- quantities and versions -----------------------------------------------------------------------------


def _quantity(text: str) -> ExactQuantity:
    try:
        return read_quantity(text)
    except InvalidQuantity as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        read_quantity(text)
    except InvalidQuantity:
        return False
    return True


def _version(text: str, tolerant: bool = False) -> SemanticVersion:
    try:
        return read_version(text, tolerant=tolerant)
    except InvalidVersion as error:
        raise EvaluationError(str(error)) from None


def _is_version(text: str, tolerant: bool = False) -> bool:
    try:
        read_version(text, tolerant=tolerant)
    except InvalidVersion:
        return False
    return True


def _order_of(left: Value, right: Value) -> int:
    if type(left) is type(right) is ExactQuantity:
        return (left.nanos > right.nanos) - (left.nanos < right.nanos)
    if type(left) is type(right) is SemanticVersion:
        return left.compare(right)
    raise no_overload("compareTo")


def _as_integer(value: ExactQuantity) -> int:
    found = value.as_integer()
    if found is None:
        raise EvaluationError("cannot convert the quantity to an integer")
    return found


def _sum(sign: int) -> Implementation:
    def plus(left: Value, right: Value) -> ExactQuantity:
        if type(right) is int:
            right = ExactQuantity(right * BILLION, 0, EXPONENT)
        if type(left) is not ExactQuantity or type(right) is not ExactQuantity:
            raise no_overload("add" if sign > 0 else "sub")
        return left.plus(right, sign)

    return plus


# -- sets and optional values ----------------------------------------------------------------------------


def first(values: list[Value], wanted: Value) -> int:
    """Return the index of the first equal element, or -1."""
    return next((at for at, one in enumerate(values) if contains([one], wanted)), -1)


def last(values: list[Value], wanted: Value) -> int:
    """Return the index of the last equal element, or -1."""
    found = first(values[::-1], wanted)
    return found if found < 0 else len(values) - 1 - found


def _includes(values: list[Value], wanted: list[Value]) -> bool:
    return all(contains(values, one) for one in wanted)


def _or_else(optional: Optional, other: Value) -> Value:
    return optional.value if optional.is_present else other


def _value_of(optional: Optional) -> Value:
    if not optional.is_present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


# -- the table -------------------------------------------------------------------------------------------


def _free(result: CelType, *arguments: CelType) -> Overload:
    return Overload(False, arguments, result)


def _member(result: CelType, *arguments: CelType) -> Overload:
    return Overload(True, arguments, result)


def _of_texts(
    name: str, result: CelType, call: Callable[..., Value], cost: Cost, *more: tuple[CelType, ...]
) -> Function:
    """Return a member function of texts, with the further arguments of each overload."""
    longest = max(more, key=len)
    kinds = {t.STRING: str, t.INT: int}
    return Function(
        tuple(_member(result, t.STRING, *one) for one in more),
        _texts(name, call, str, *(kinds[one] for one in longest)),
        cost,
    )


def _of_texts_and_lists(name: str, of_texts: Callable[..., Value], of_lists: Implementation) -> Function:
    checked = _texts(name, of_texts, str, str, int)

    def call(searched: Value, *arguments: Value) -> Value:
        if type(searched) is list and len(arguments) == 1:
            return of_lists(searched, *arguments)
        return checked(searched, *arguments)

    return Function(
        (
            _member(t.INT, t.STRING, t.STRING),
            _member(t.INT, t.STRING, t.STRING, t.INT),
            _member(t.INT, _LISTS, t.A),
        ),
        call,
        _read,
    )


_LISTS, _MAPS = list_of(t.A), map_of(t.A, t.B)
_BOTH = (t.QUANTITY, t.SEMVER)

FUNCTIONS: Mapping[str, Function] = {
    "size": Function(
        tuple(make(t.INT, kind) for kind in (t.STRING, t.BYTES, _LISTS, _MAPS) for make in (_free, _member)),
        _size,
        one_step,
    ),
    # Conversions.
    "int": Function(
        tuple(_free(t.INT, one) for one in (t.INT, t.UINT, t.DOUBLE, t.STRING)),
        lambda value: _integer(value, int, "int"),
        one_step,
    ),
    "uint": Function(
        tuple(_free(t.UINT, one) for one in (t.UINT, t.DOUBLE, t.INT, t.STRING)),
        lambda value: _integer(value, Uint, "uint"),
        one_step,
    ),
    "double": Function(
        tuple(_free(t.DOUBLE, one) for one in (t.DOUBLE, t.INT, t.STRING, t.UINT)), _double, one_step
    ),
    "string": Function(
        tuple(_free(t.STRING, one) for one in (t.STRING, t.BOOL, t.BYTES, t.DOUBLE, t.INT, t.UINT)),
        _string,
        one_step,
    ),
    "bool": Function((_free(t.BOOL, t.BOOL), _free(t.BOOL, t.STRING)), _bool, one_step),
    "bytes": Function((_free(t.BYTES, t.BYTES), _free(t.BYTES, t.STRING)), _bytes, one_step),
    "dyn": Function((_free(t.DYN, t.A),), lambda value: value, one_step),
    "type": Function((_free(CelType(t.TYPE), t.A),), _type, one_step),
    # Texts.
    "matches": Function(
        tuple(make(t.BOOL, t.STRING, t.STRING) for make in (_free, _member)),
        _texts("matches", lambda text, pattern: bool(compiled_pattern(pattern).search(text)), str, str),
        _match,
    ),
    "startsWith": _of_texts("startsWith", t.BOOL, str.startswith, _read, (t.STRING,)),
    "endsWith": _of_texts("endsWith", t.BOOL, str.endswith, _read, (t.STRING,)),
    "contains": _of_texts("contains", t.BOOL, str.__contains__, _search, (t.STRING,)),
    "charAt": _of_texts(
        "charAt", t.STRING, lambda text, at: text[_within(at, text) :][:1], one_step, (t.INT,)
    ),
    "indexOf": _of_texts_and_lists("indexOf", _index_of, first),
    "lastIndexOf": _of_texts_and_lists("lastIndexOf", _last_index_of, last),
    "lowerAscii": _of_texts("lowerAscii", t.STRING, lambda text: text.translate(_LOWER), _read, ()),
    "upperAscii": _of_texts("upperAscii", t.STRING, lambda text: text.translate(_UPPER), _read, ()),
    "replace": _of_texts(
        "replace", t.STRING, _replace, _read_twice, (t.STRING, t.STRING), (t.STRING, t.STRING, t.INT)
    ),
    "split": _of_texts("split", list_of(t.STRING), _split, _read_twice, (t.STRING,), (t.STRING, t.INT)),
    "substring": _of_texts("substring", t.STRING, _substring, _read, (t.INT,), (t.INT, t.INT)),
    "trim": _of_texts("trim", t.STRING, lambda text: text.strip(_SPACE), _read, ()),
    "find": _of_texts("find", t.STRING, _find, _match, (t.STRING,)),
    "findAll": _of_texts("findAll", list_of(t.STRING), _find_all, _match, (t.STRING,), (t.STRING, t.INT)),
    "join": Function(
        (_member(t.STRING, list_of(t.STRING)), _member(t.STRING, list_of(t.STRING), t.STRING)),
        _texts("join", _join, list, str),
        _written_twice,
    ),
    # Quantities and versions.
    "quantity": Function((_free(t.QUANTITY, t.STRING),), _texts("quantity", _quantity, str), _read),
    "isQuantity": Function((_free(t.BOOL, t.STRING),), _texts("isQuantity", _is_quantity, str), _read),
    "semver": Function(
        (_free(t.SEMVER, t.STRING), _free(t.SEMVER, t.STRING, t.BOOL)),
        _texts("semver", _version, str, bool),
        _read,
    ),
    "isSemver": Function(
        (_free(t.BOOL, t.STRING), _free(t.BOOL, t.STRING, t.BOOL)),
        _texts("isSemver", _is_version, str, bool),
        _read,
    ),
    "compareTo": Function(tuple(_member(t.INT, one, one) for one in _BOTH), _order_of, one_step),
    "isGreaterThan": Function(
        tuple(_member(t.BOOL, one, one) for one in _BOTH), lambda *both: _order_of(*both) > 0, one_step
    ),
    "isLessThan": Function(
        tuple(_member(t.BOOL, one, one) for one in _BOTH), lambda *both: _order_of(*both) < 0, one_step
    ),
    "sign": Function(
        (_free(t.INT, t.QUANTITY),),
        _texts("sign", lambda one: (one.nanos > 0) - (one.nanos < 0), ExactQuantity),
        one_step,
    ),
    "asInteger": Function(
        (_member(t.INT, t.QUANTITY),), _texts("asInteger", _as_integer, ExactQuantity), one_step
    ),
    "isInteger": Function(
        (_member(t.BOOL, t.QUANTITY),),
        _texts("isInteger", lambda one: one.as_integer() is not None, ExactQuantity),
        one_step,
    ),
    "asApproximateFloat": Function(
        (_member(t.DOUBLE, t.QUANTITY),),
        _texts("asApproximateFloat", ExactQuantity.as_float, ExactQuantity),
        one_step,
    ),
    "add": Function(
        tuple(_member(t.QUANTITY, t.QUANTITY, one) for one in (t.QUANTITY, t.INT)), _sum(1), one_step
    ),
    "sub": Function(
        tuple(_member(t.QUANTITY, t.QUANTITY, one) for one in (t.QUANTITY, t.INT)), _sum(-1), one_step
    ),
    "major": Function(
        (_member(t.INT, t.SEMVER),), _texts("major", lambda one: one.major, SemanticVersion), one_step
    ),
    "minor": Function(
        (_member(t.INT, t.SEMVER),), _texts("minor", lambda one: one.minor, SemanticVersion), one_step
    ),
    "patch": Function(
        (_member(t.INT, t.SEMVER),), _texts("patch", lambda one: one.patch, SemanticVersion), one_step
    ),
    # Sets and optional values.
    "sets.contains": Function(
        (_free(t.BOOL, _LISTS, _LISTS),), _texts("sets.contains", _includes, list, list), _product
    ),
    "sets.equivalent": Function(
        (_free(t.BOOL, _LISTS, _LISTS),),
        _texts("sets.equivalent", lambda one, two: _includes(one, two) and _includes(two, one), list, list),
        _product,
    ),
    "sets.intersects": Function(
        (_free(t.BOOL, _LISTS, _LISTS),),
        _texts("sets.intersects", lambda one, two: any(contains(two, each) for each in one), list, list),
        _product,
    ),
    "optional.of": Function((_free(optional_of(t.A), t.A),), Optional, one_step),
    "optional.none": Function((_free(optional_of(t.A)),), lambda: ABSENT, one_step),
    "hasValue": Function(
        (_member(t.BOOL, optional_of(t.A)),),
        _texts("hasValue", lambda one: one.is_present, Optional),
        one_step,
    ),
    "value": Function((_member(t.A, optional_of(t.A)),), _texts("value", _value_of, Optional), one_step),
    "or": Function(
        (_member(optional_of(t.A), optional_of(t.A), optional_of(t.A)),),
        _texts("or", lambda one, two: one if one.is_present else two, Optional, Optional),
        one_step,
    ),
    "orValue": Function((_member(t.A, optional_of(t.A), t.A),), _or_else, one_step),
}
"""All functions by name; those of a namespace with its name in front."""
