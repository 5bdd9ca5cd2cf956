"""Values of CEL: maps, optional values, and what equality, order and arithmetic mean for them.

Integers are Python's, within 64 bits; unsigned ones are `Uint`. Lists are lists. Numbers of different kinds
are comparable. Quantities and versions equal only their kind: on their left side, another type is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from yunikorn_kubernetes.devices.cel.cel_syntax import INT64, UINT64, Uint
from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity
from yunikorn_kubernetes.devices.cel.semantic_version import SemanticVersion

Value = Any
"""A value: None, bool, int, Uint, float, str, bytes, list, or one of the classes here and above."""
LARGEST = 2**20
"""Number of characters of the largest text, and of elements of the largest list."""
_NUMBERS = (int, Uint, float)


class EvaluationError(Exception):
    """An expression has no value; `||` and `&&` can do without a term that has none."""


class CostExceeded(Exception):
    """The evaluation takes more steps than allowed."""


class TypeValue(NamedTuple):
    """A type as a value."""

    name: str


class Optional(NamedTuple):
    """A value that may be absent."""

    value: Value
    is_present: bool = True


ABSENT = Optional(None, False)


class CelMap:
    """A map; numbers of different kinds are the same key, a truth value is none of them."""

    __slots__ = ("_entries", "_fallback")

    def __init__(self, entries: Mapping[Value, Value] | None = None, fallback: Value = None) -> None:
        """Create a map of texts, with the value of texts that it does not have, if there is one."""
        self._entries: dict[tuple[type, Value], Value] = {
            (str, key): value for key, value in (entries or {}).items()
        }
        self._fallback = fallback

    def put(self, key: Value, value: Value) -> None:
        """Add an entry."""
        self._entries[_key(key)] = value

    def find(self, key: Value) -> Optional:
        """Return the value of a key."""
        found = self._entries.get(_key(key), self)
        if found is not self:
            return Optional(found)
        return ABSENT if self._fallback is None else Optional(self._fallback)

    def __contains__(self, key: Value) -> bool:
        return _key(key) in self._entries

    def __iter__(self) -> Iterator[Value]:
        return (key for _, key in self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _key(key: Value) -> tuple[type, Value]:
    kind = type(key)
    if kind in _NUMBERS:
        return int, key
    if kind in (bool, str):
        return kind, key
    return type(None), repr(key)


def no_overload(name: str) -> EvaluationError:
    """Return the error of a function that is not defined for its arguments."""
    return EvaluationError(f"no such overload: {name}")


# -- equality and order ----------------------------------------------------------------------------------


def equal(left: Value, right: Value) -> bool:
    """Return True for equal values. Raises `EvaluationError` for types that cannot be compared."""
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and bool(left == right)
    if kind in (ExactQuantity, SemanticVersion):
        if other is not kind:
            raise no_overload("==")
        return bool(left.nanos == right.nanos if kind is ExactQuantity else left.compare(right) == 0)
    if other is not kind:
        return False
    if kind is list:
        return len(left) == len(right) and all(map(_seem_equal, left, right))
    if kind is CelMap:
        return len(left) == len(right) and all(_has_equal(right, key, left.find(key).value) for key in left)
    if kind is Optional:
        return left.is_present is right.is_present and (not left.is_present or equal(left.value, right.value))
    return bool(left == right)


def _seem_equal(left: Value, right: Value) -> bool:
    try:
        return equal(left, right)
    except EvaluationError:
        return True  # As in Kubernetes: inside of lists and maps, only a difference counts.


def _has_equal(other: CelMap, key: Value, value: Value) -> bool:
    found = other.find(key)
    return found.is_present and _seem_equal(value, found.value)


def contains(values: list[Value], wanted: Value) -> bool:
    """Return True if a value is an element of a list."""
    for one in values:
        try:
            if equal(wanted, one):
                return True
        except EvaluationError:
            continue
    return False


def compare(left: Value, right: Value, name: str) -> int:
    """Return -1, 0 or 1. Raises `EvaluationError` for types without an order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            raise EvaluationError("NaN values cannot be ordered")
    elif kind is not other or kind not in (str, bytes, bool):
        raise no_overload(name)
    return int(left > right) - int(left < right)


ORDER: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


# -- arithmetic ------------------------------------------------------------------------------------------


def whole(number: int, kind: type) -> int:
    """Return a result as an integer of a kind. Raises `EvaluationError` if it does not fit into 64 bits."""
    if kind is Uint:
        if not 0 <= number < UINT64:
            raise EvaluationError("unsigned integer overflow")
        return Uint(number)
    if not -INT64 <= number < INT64:
        raise EvaluationError("integer overflow")
    return int(number)


def check_size(size: int) -> None:
    """Raise `CostExceeded` for a text or list of this size, before it exists."""
    if size > LARGEST:
        raise CostExceeded(f"a text or list of more than {LARGEST} elements")


def arithmetic(name: str, left: Value, right: Value) -> Value:
    """Return the result of `+`, `-`, `*`, `/` or `%`. Raises `EvaluationError`."""
    kind = type(left)
    if kind is not type(right):
        raise no_overload(name)
    if kind is float and name != "%":
        return _of_doubles(name, left, right)
    if kind in (int, Uint):
        return _of_integers(name, int(left), int(right), kind)
    if name == "+" and kind in (str, bytes, list):
        check_size(len(left) + len(right))
        return left + right
    raise no_overload(name)


def _of_integers(name: str, left: int, right: int, kind: type) -> int:
    if name == "+":
        return whole(left + right, kind)
    if name == "-":
        return whole(left - right, kind)
    if name == "*":
        return whole(left * right, kind)
    if right == 0:
        raise EvaluationError("division by zero" if name == "/" else "modulus by zero")
    quotient = abs(left) // abs(right)
    quotient = -quotient if (left < 0) is not (right < 0) else quotient
    if name == "/":
        return whole(quotient, kind)
    whole(quotient, kind)  # Like division, this overflows.
    return whole(left - quotient * right, kind)


def _of_doubles(name: str, left: float, right: float) -> float:
    if name == "+":
        return left + right
    if name == "-":
        return left - right
    if name == "*":
        return left * right
    if right:
        return left / right
    if not left or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def negate(value: Value) -> Value:
    """Return the negative number. Raises `EvaluationError`."""
    if type(value) is int:
        return whole(-value, int)
    if type(value) is float:
        return -value
    raise no_overload("-")


# -- parts of values -------------------------------------------------------------------------------------


def item_of(value: Value, index: Value) -> Optional:
    """Return an element of a list or the value of a key. Raises `EvaluationError` for other values."""
    if type(value) is CelMap:
        return value.find(index)
    if type(value) is not list:
        raise EvaluationError(f"no such key: {index}")
    if type(index) not in _NUMBERS or (type(index) is float and not index.is_integer()):
        raise EvaluationError("a list is indexed by integers")
    at = int(index)
    return Optional(value[at]) if 0 <= at < len(value) else ABSENT


def size_of(value: Value) -> int:
    """Return the size of a value as it counts for costs."""
    if type(value) in (str, bytes, list, CelMap):
        return len(value)
    return size_of(value.value) if type(value) is Optional and value.is_present else 1
