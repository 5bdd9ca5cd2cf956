"""Quantities of Kubernetes, such as `500m`, `1.5Gi` or `2e3`, as amounts of the scheduler.

The syntax is that of `Quantity` in the Kubernetes API reference: a decimal number, followed by a decimal
suffix (n, u, m, k, M, G, T, P, E), a binary suffix (Ki to Ei) or a decimal exponent. `cpu` becomes `vcore` in
thousandths. All other resource names stay, in whole units. Fractions are rounded away from zero, since a pod
must not get less than its request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from yunikorn.errors import QuantityError
from yunikorn.resources import INT64_MAX, INT64_MIN, Tally

CPU = "cpu"
VCORE = "vcore"
PODS = "pods"
LONGEST = 100
"""Number of characters of the longest quantity that is read."""

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPECTED = (
    "expected a number with an optional suffix (n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)"
    " or exponent, such as 500m, 1.5Gi or 2e3"
)
_FAR = LONGEST + 60
"""Exponent beyond which the digits of a quantity no longer matter."""


@lru_cache(maxsize=8192)  # Pods of one template have equal texts.
def parse(text: str, *, milli: bool = False) -> int:
    """Return a quantity in whole units, or in thousandths, rounded away from zero.

    Raises `QuantityError` for another syntax, and for an amount that does not fit into 64 bits.
    """
    match = _QUANTITY.match(text) if len(text) <= LONGEST else None
    digits = (match[2] + (match[3] or "")) if match else ""
    if match is None or not digits:
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        raise QuantityError(f"{shown!r} is not a quantity: {_EXPECTED}")
    sign, _, fraction, suffix, exponent = match.groups()
    power = _DECIMAL.get(suffix, 0) if suffix else _exponent(exponent)
    power += (3 if milli else 0) - len(fraction or "")
    number = int(digits) << _BINARY.get(suffix, 0)
    scaled, divisor = (number * 10**power, 1) if power >= 0 else (number, 10**-power)
    amount: int = -(-scaled // divisor)
    if amount > INT64_MAX:
        most = f"{INT64_MAX}m" if milli else INT64_MAX
        raise QuantityError(f"{text!r} is too large: at most {most} fits")
    return -amount if sign == "-" else amount


def _exponent(text: str | None) -> int:
    # A text of at most LONGEST characters with a larger exponent is 0, rounded up to 1, or too large anyway.
    return max(-_FAR, min(_FAR, int(text or "0")))


def amount_name(name: str) -> str:
    """Return the resource type of the scheduler for a resource name of Kubernetes."""
    return VCORE if name == CPU else name


def amount_of(name: str, text: str) -> int:
    """Return the amount of a Kubernetes resource in the unit of the scheduler. Raises `QuantityError`."""
    return parse(text, milli=name == CPU)


def amounts_of(quantities: Mapping[str, str], path: str) -> Tally:
    """Return the amounts of quantities by resource type.

    Raises `QuantityError` with all problems; `path` is the place of the mapping in the object.
    """
    found: Tally = {}
    problems = []
    for name, text in quantities.items():
        if name == VCORE and CPU in quantities:
            problems.append(f"{path}.{name}: means the same as {CPU}: remove one")
            continue
        try:
            found[amount_name(name)] = amount_of(name, text)
        except QuantityError as error:
            problems.append(f"{path}.{name}: {error}")
    if problems:
        raise QuantityError("; ".join(problems))
    return found


def check_range(amounts: Mapping[str, int], what: str) -> None:
    """Raise `QuantityError` unless every amount of a sum fits into 64 bits."""
    wrong = [name for name, value in sorted(amounts.items()) if not INT64_MIN <= value <= INT64_MAX]
    if wrong:
        raise QuantityError(f"{what}: the sum of {', '.join(wrong)} does not fit into 64 bits")
