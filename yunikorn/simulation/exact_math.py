"""Logarithm and exponential function with bit-identical results on every machine.

The functions of the C library differ between platforms in the last digit. These functions use only operations
that IEEE 754 rounds uniquely: addition, multiplication, division and square root.
"""

from __future__ import annotations

from math import frexp, ldexp

LN2_HIGH = 2977044471 / 2**32
"""First 32 bits of ln 2; the product with a small whole number is exact."""
LN2_LOW = 1.9082149292705877e-10
"""The rest of ln 2, beyond `LN2_HIGH`."""


def ln(value: float) -> float:
    """Return the natural logarithm of a positive number; the error is below 3e-16, relative or absolute."""
    if not value > 0:
        raise ValueError(f"only numbers above 0 have a logarithm, got {value}")
    part, power = frexp(value)
    if part < 0.7071067811865476:
        part, power = 2 * part, power - 1
    ratio = (part - 1) / (part + 1)
    square = ratio * ratio
    # Series of the inverse hyperbolic tangent: ratio is at most 0.172, so 12 terms are enough.
    total = 0.0
    for odd in (23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3):
        total = (total + 1 / odd) * square
    return power * LN2_HIGH + (power * LN2_LOW + (2 * ratio + 2 * ratio * total))


def exp(value: float) -> float:
    """Return e to the power of a number from -700 to 700; the relative error is below 1e-15."""
    if not -700 <= value <= 700:
        raise ValueError(f"e to the power of {value} is too large or too small")
    power = int(value / LN2_HIGH + (0.5 if value >= 0 else -0.5))
    rest = (value - power * LN2_HIGH) - power * LN2_LOW
    # Taylor series: rest is at most 0.35, so 15 terms are enough.
    total = 1.0
    for divisor in range(15, 0, -1):
        total = 1 + total * rest / divisor
    return ldexp(total, power)


def power(base: float, exponent: float) -> float:
    """Return a positive `base` to the power of `exponent`."""
    return exp(exponent * ln(base))
