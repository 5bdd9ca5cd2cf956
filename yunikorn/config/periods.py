"""Reader of `periods`, the delays of the scheduler in a partition; YuniKorn 1.9 does not have this key."""

from __future__ import annotations

from yunikorn.config.durations import parse_duration
from yunikorn.config.reading import Table

KEY = "periods"
FIELDS = {
    "starting": "starting",
    "completing": "completing",
    "retention": "retention",
    "reservation": "reservation",
    "gangpatience": "gang_patience",
    "cleanup": "cleanup",
}
"""Fields of `yunikorn.model.context.Timeouts`, by key."""
NEVER = "never"
MAY_BE_NEVER = ("reservation",)


def read_periods(partition: Table) -> dict[str, int | None]:
    """Return the delays that are set, by field, in nanoseconds; None means never."""
    table = partition.table(KEY, FIELDS)
    found: dict[str, int | None] = {}
    for key, field in FIELDS.items():
        if table is None or key not in table:
            continue
        text = table.text(key)
        if text == NEVER and key in MAY_BE_NEVER:
            found[field] = None
            continue
        try:
            amount = parse_duration(text)
            if amount < 0:
                raise ValueError(f"a delay is 0 or more, got {text}")
        except ValueError as error:
            also = f", or {NEVER}" if key in MAY_BE_NEVER else ""
            table.findings.problem(table.spot(key), f"{error}{also}")
            continue
        found[field] = amount
    return found
