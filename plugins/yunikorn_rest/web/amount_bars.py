"""Amounts of resources for people: numbers with units, shares, and bars."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.quantities import MEMORY, VCORE, ordered

_BYTES = (MEMORY, "ephemeral-storage")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
FULL, HIGH = 100, 80
"""Use in percent from which a bar has the colour of a full or of a highly used resource."""


def number(value: float) -> str:
    """Return a number with at most three significant digits behind the point: `1,234`, `12.5`, `0.25`."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.{1 if abs(value) >= 10 else 2}f}".rstrip("0").rstrip(".")


def amount(name: str, value: int) -> str:
    """Return an amount with its unit: `1.5 vcores`, `96 GiB`; a number for other types than these."""
    factor, unit = unit_of(name, value)
    return _with_unit(number(value / factor), unit)


def pair(name: str, used: int, of: int) -> str:
    """Return two amounts with one unit: `14 / 24 vcores`."""
    factor, unit = unit_of(name, max(abs(used), abs(of)))
    return _with_unit(f"{number(used / factor)} / {number(of / factor)}", unit)


def listed(amounts: Mapping[str, int]) -> str:
    """Return all amounts in one line: `2 vcores, 4 GiB, 1 nvidia.com/gpu`; `nothing` without any."""
    found = [_named(name, amounts[name]) for name in ordered(amounts) if amounts[name]]
    return ", ".join(found) or "nothing"


def _named(name: str, value: int) -> str:
    text = amount(name, value)
    if name in (VCORE, MEMORY):
        return text
    return f"{text} {name}"


def unit_of(name: str, value: int) -> tuple[int, str]:
    """Return the factor and the name of the unit in which an amount is shown."""
    if name == VCORE:
        return 1000, "vcore" if abs(value) == 1000 else "vcores"
    if name not in _BYTES and not name.startswith("hugepages-"):
        return 1, ""
    power = 0
    while power + 1 < len(_UNITS) and abs(value) >= 1024 ** (power + 1):
        power += 1
    factor: int = 1024**power
    return factor, _UNITS[power]


def _with_unit(text: str, unit: str) -> str:
    # A no-break space, so that no line ends between a number and its unit.
    return f"{text}\u00a0{unit}" if unit else text


@attrs.frozen(kw_only=True)
class AmountBar:
    """Use of one resource type, with positions in percent of the whole bar."""

    name: str
    """Resource type."""
    text: str
    """Use and size, as `14 / 24 vcores`."""
    label: str
    """Everything that the bar shows, in words."""
    used: str
    """Width of the used part."""
    level: str
    """Class of the colour: `used`, `high` or `full`."""
    waiting: str = ""
    """Width of the part for waiting requests, behind the used part; empty without any."""
    guarantee: str = ""
    """Position of the mark of the guarantee; empty without one."""
    waiting_text: str = ""
    guarantee_text: str = ""


def bar(
    name: str, used: int, of: int | None, *, waiting: int = 0, guaranteed: int = 0, of_what: str = ""
) -> AmountBar:
    """Return the bar of a use `of` a size; without a size, the bar is as long as everything it shows."""
    size = of if of is not None else max(used + waiting, guaranteed)
    size = max(size, 1)
    percent = 100 * max(used, 0) / size
    text = amount(name, used) if of is None else pair(name, used, of)
    words = [f"{name}: {amount(name, used)} used"]
    if of is not None:
        words.append(f"of {amount(name, of)}{of_what} ({percent:.0f} %)")
    label = " ".join(words)
    if waiting:
        label += f", {amount(name, waiting)} waiting"
    if guaranteed:
        label += f", {amount(name, guaranteed)} guaranteed"
    return AmountBar(
        name=name,
        text=text,
        label=label,
        used=_percent(percent),
        level="used" if of is None or percent < HIGH else "high" if percent < FULL else "full",
        waiting=_percent(min(100 - min(percent, 100), 100 * waiting / size)) if waiting else "",
        guarantee=_percent(100 * guaranteed / size) if guaranteed else "",
        waiting_text=amount(name, waiting) if waiting else "",
        guarantee_text=amount(name, guaranteed) if guaranteed else "",
    )


def _percent(value: float) -> str:
    return f"{min(100.0, max(0.0, value)):.1f}%"
