"""Quantities of Kubernetes without loss, as selectors compare them and claims consume them.

The syntax is that of `Quantity` in the Kubernetes API reference. A quantity is a whole number of billionths;
smaller fractions are rounded away from zero. Selectors can ask whether a quantity is an integer, and the
answer of Kubernetes depends on how the text was written (`1.5Ki` is none); so a quantity has a decimal scale.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

NANO = -9
BILLION = 10**9
LONGEST = 100
"""Number of characters of the longest quantity that is read."""
LARGEST_EXPONENT = 60
"""Largest decimal exponent that is read."""
DECIMAL, EXPONENT, BINARY = "", "e", "i"
"""Kinds of suffixes: `k`, `e3` and `Ki`."""

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIXES = ("", *_BINARY)
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)


class InvalidQuantity(ValueError):
    """A text that is no quantity, or one that is out of range."""


class ExactQuantity(NamedTuple):
    """A quantity in billionths, with its way of writing."""

    nanos: int
    scale: int | None = 0
    """Decimal exponent of the number that Kubernetes keeps; None for a number without a fixed size."""
    suffix: str = DECIMAL
    """Kind of its suffix."""

    def as_integer(self) -> int | None:
        """Return the integer that Kubernetes sees, or None."""
        if self.scale is None or self.scale < 0:
            return None
        value, rest = divmod(self.nanos, BILLION)
        return value if not rest and _INT64_MIN <= value <= _INT64_MAX else None

    def as_float(self) -> float:
        """Return the nearest number with a fraction."""
        return self.nanos / BILLION

    def rounded_up(self) -> int:
        """Return the smallest whole number that is not smaller."""
        return -(-self.nanos // BILLION)

    def plus(self, other: ExactQuantity, sign: int = 1) -> ExactQuantity:
        """Return the sum, or the difference for a `sign` of -1."""
        nanos = self.nanos + sign * other.nanos
        suffix = self.suffix if self.nanos else other.suffix
        if self.scale is None or other.scale is None:
            return ExactQuantity(nanos, None, suffix)
        if not other.nanos:
            return self._replace(suffix=suffix)
        scale = min(self.scale, other.scale) if self.nanos else other.scale
        if not _INT64_MIN <= nanos // 10 ** (scale - NANO) <= _INT64_MAX:
            return ExactQuantity(nanos, None, suffix)
        return ExactQuantity(nanos, scale, suffix)

    def __str__(self) -> str:
        """Return the canonical text."""
        return quantity_text(self.nanos, self.suffix)


def quantity_text(nanos: int, suffix: str = DECIMAL) -> str:
    """Return the canonical text of a quantity: the largest unit that leaves a whole number."""
    if not nanos:
        return "0"
    whole, rest = divmod(abs(nanos), BILLION)
    sign = "-" if nanos < 0 else ""
    if suffix == BINARY and not rest and whole >= 1024:
        power = 0
        while power < len(_BINARY_SUFFIXES) - 1 and whole % 1024 == 0:
            whole, power = whole // 1024, power + 1
        return f"{sign}{whole}{_BINARY_SUFFIXES[power]}"
    number, exponent = abs(nanos), NANO
    while number % 1000 == 0:
        number, exponent = number // 1000, exponent + 3
    if suffix == EXPONENT or exponent not in _DECIMAL_SUFFIXES:
        return f"{sign}{number}e{exponent}" if exponent else f"{sign}{number}"
    return f"{sign}{number}{_DECIMAL_SUFFIXES[exponent]}"


@lru_cache(maxsize=4096)  # Devices of one model have equal texts.
def read_quantity(text: str) -> ExactQuantity:
    """Return the quantity of a text. Raises `InvalidQuantity`."""
    match = _QUANTITY.match(text) if len(text) <= LONGEST else None
    if match is None or not text:
        raise InvalidQuantity(f"{text[:LONGEST]!r} is not a quantity")
    sign, whole, fraction, suffix, exponent = match.groups()
    whole, fraction = whole.lstrip("0") or "0", fraction or ""
    if suffix in _BINARY:
        return _binary(sign, whole, fraction, _BINARY[suffix])
    power = int(exponent) if exponent else _DECIMAL[suffix or ""]
    if abs(power) > LARGEST_EXPONENT:
        raise InvalidQuantity(f"{text!r} is not a quantity that can be compared: the exponent is too large")
    kind = EXPONENT if exponent else DECIMAL
    scale = power - len(fraction)
    digits = int(whole + fraction)
    if len(whole) + len(fraction) <= 18 and scale >= NANO:
        nanos = digits * 10 ** (scale - NANO)
        return ExactQuantity(-nanos if sign == "-" else nanos, scale, kind)
    nanos = _scaled_up(digits, scale - NANO)
    return ExactQuantity(-nanos if sign == "-" else nanos, None, kind)


def _binary(sign: str, whole: str, fraction: str, power: int) -> ExactQuantity:
    is_short = not fraction and 15 - len(whole) - power * 3 // 10 - 1 >= 0
    if is_short and (value := int(whole) << power) <= _INT64_MAX:
        return ExactQuantity((-value if sign == "-" else value) * BILLION, 0, BINARY)
    nanos = _scaled_up(int(whole + fraction) << power, -len(fraction) - NANO)
    nanos = min(nanos, _INT64_MAX * BILLION)
    return ExactQuantity(-nanos if sign == "-" else nanos, None, BINARY if nanos >= BILLION else DECIMAL)


def _scaled_up(number: int, power: int) -> int:
    """Return a number times a power of ten, rounded up."""
    if power >= 0:
        return int(number * 10**power)
    return int(-(-number // 10**-power))
