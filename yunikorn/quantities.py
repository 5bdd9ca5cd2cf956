"""Quantities of resources as text, such as `10`, `4Gi` or `500m`.

A quantity is a whole number with an optional suffix. The type `vcore` is converted to milli-vcores: `2` is
2,000 and `500m` is 500. All other types are not converted; `memory` is in bytes by convention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from yunikorn.errors import QuantityError
from yunikorn.resources import INT64_MAX

VCORE, MEMORY = "vcore", "memory"
SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_BLANKS = " \t\n\r\f\v"
_QUANTITY = re.compile(r"([0-9]+)[ \t\n\r\f\v]*([A-Za-z]*)\Z")


@lru_cache(maxsize=4096)  # Quantities repeat within a large tree, and from one configuration to the next.
def parse_quantity(name: str, text: str) -> int:
    """Return the amount of the resource type `name` that `text` denotes. Raises `QuantityError`."""
    match = _QUANTITY.match(text.strip(_BLANKS))
    if match is None:
        raise QuantityError(_what_is_wrong(text))
    # A longer number cannot fit, and int() refuses very long texts.
    digits, suffix = match[1].lstrip("0")[:20], match[2]
    number = int(digits or "0")
    if suffix == "m" and name == VCORE:
        amount = number
    else:
        amount = number * _factor(name, suffix) * (1000 if name == VCORE else 1)
    if amount > INT64_MAX:
        raise QuantityError(f"{text.strip(_BLANKS)!r} is too large: at most {INT64_MAX} fits")
    return amount


def in_words(amount: Mapping[str, int]) -> str:
    """Return an amount in configuration syntax: `memory 4Gi, vcore 2`, `vcore 1500m`; `nothing` if empty."""
    words = [spell_amount(name, value) for name, value in sorted(amount.items())]
    return ", ".join(words) or "nothing"


def spell_amount(name: str, value: int) -> str:
    """Return an amount of a resource type in a message, such as `memory 4Gi`."""
    return f"{name} {spell_quantity(name, value)}"


def spell_quantity(name: str, value: int) -> str:
    """Return the text of an amount of a resource type in a configuration, such as `4Gi` or `1500m`."""
    if name == VCORE:
        return f"{value}m" if value % 1000 else str(value // 1000)
    if name == "memory":
        for suffix in ("Gi", "Mi", "Ki"):
            if value and value % SUFFIXES[suffix] == 0:
                return f"{value // SUFFIXES[suffix]}{suffix}"
    return str(value)


def _factor(name: str, suffix: str) -> int:
    factor = SUFFIXES.get(suffix)
    if factor is not None:
        return factor
    if suffix == "m":
        raise QuantityError(f"the suffix 'm' (thousandths) is for {VCORE} only, not for {name}")
    known = ", ".join(filter(None, SUFFIXES))
    raise QuantityError(f"unknown suffix '{suffix}'; known: {known}, and m for {VCORE}")


def _what_is_wrong(text: str) -> str:
    body = text.strip(_BLANKS)
    expected = "expected a whole number with an optional suffix, such as 10, 4Gi or 500m"
    if not body:
        return f"the quantity is missing: {expected}"
    if body[0] in "+-":
        return f"a quantity has no sign, got {body!r}: {expected}"
    if re.match(r"[0-9]*\.[0-9]", body):
        return f"a quantity has no fraction, got {body!r}: {expected}"
    return f"{expected}, got {body!r}"


def ordered(names: Iterable[str]) -> list[str]:
    """Return resource types in the order of columns: vcore, memory, then by name."""
    return sorted(set(names), key=lambda name: (name != VCORE, name != MEMORY, name))
