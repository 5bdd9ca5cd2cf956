"""Resources as a configuration writes them, with the place of each type for later checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from yunikorn.config.document import Scalar
from yunikorn.config.quantities import parse_quantity
from yunikorn.config.reading import Spot, Table
from yunikorn.errors import QuantityError
from yunikorn.resources import Resource


@attrs.define(eq=False)
class Amount:
    """A resource in the text."""

    holder: Table
    """What it stands in, or is missing in."""
    key: str = ""
    """Under which key; empty when it cannot be there either."""
    value: dict[str, int] = attrs.field(factory=dict)
    """What could be read of it, zeros included."""
    given: bool = False
    faulty: bool = False
    """Whether something of it was refused."""
    table: Table | None = None

    @property
    def spot(self) -> Spot:
        """Where it stands, or where it is missing."""
        return self.holder.spot(self.key) if self.key else self.holder.here()

    @property
    def names_types(self) -> bool:
        """Whether the mapping is there and has an entry; `{}` sets nothing."""
        return self.table is not None and bool(self.table.node.entries)

    @property
    def texts(self) -> dict[str, str]:
        """What could be read of it, as it is written."""
        entries = self.table.node.entries if self.table else {}
        return {
            name: "" if node.is_null else node.text
            for name, node in entries.items()
            if isinstance(node, Scalar)
        }

    def at(self, name: str) -> Spot:
        """Where the resource type `name` stands."""
        return self.table.spot(name) if self.table else self.spot

    def setting(self) -> Resource | None:
        """What the scheduler gets: nothing at all when no type is above 0 (facts §5.5)."""
        # Nothing that is read is below 0.
        return Resource(self.value) if any(self.value.values()) else None

    def over(self, bound: Mapping[str, int]) -> Iterator[str]:
        """The types that are larger here than in `bound`; a type that it lacks is not bounded."""
        return (name for name, amount in self.value.items() if name in bound and amount > bound[name])


def read_amount(table: Table, key: str, *, skip_empty: bool = False) -> Amount:
    """The resource under `key`; `skip_empty` ignores types without a quantity, as templates do."""
    amount = Amount(table, key)
    if table.get(key) is None:
        return amount
    amount.given = True
    amount.table = table.table(key)
    if amount.table is None:
        amount.faulty = True
        return amount
    texts = 0
    for name, text in amount.table.each_text():
        texts += 1
        if skip_empty and not (name and text):
            table.findings.warning(amount.table.spot(name), "it has no quantity and is ignored")
            continue
        try:
            amount.value[name] = parse_quantity(name, text)
        except QuantityError as error:
            amount.faulty = True
            table.findings.problem(amount.table.spot(name), str(error))
    # Entries that are no text were reported while they were read.
    amount.faulty = amount.faulty or texts < len(amount.table.node.entries)
    return amount


def smaller(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The smaller of both per type; a type that only one has is taken from it."""
    return {
        name: min(one.get(name, amount), other.get(name, amount)) for name, amount in {**one, **other}.items()
    }
