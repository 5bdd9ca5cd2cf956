"""Resources in the text of a configuration, with the position of each type for later checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from yunikorn.config.document import Scalar
from yunikorn.config.yaml_reading import Spot, YamlTable
from yunikorn.errors import QuantityError
from yunikorn.quantities import parse_quantity
from yunikorn.resources import Resource

_NOTHING: Mapping[str, int] = {}


@attrs.define(eq=False)
class Amount:
    """Resource mapping as parsed, with its position in the text."""

    holder: YamlTable
    """Mapping that contains the resource, or lacks it."""
    key: str = ""
    """Key of the resource in `holder`; empty if `holder` cannot have a resource."""
    value: Mapping[str, int] = _NOTHING
    """Valid entries, including zeros."""
    given: bool = False
    faulty: bool = False
    """True if an entry, or the whole mapping, was refused."""
    table: YamlTable | None = None

    @property
    def spot(self) -> Spot:
        """Position of the resource, or of the mapping that lacks it."""
        return self.holder.spot(self.key) if self.key else self.holder.here()

    @property
    def names_types(self) -> bool:
        """True if the mapping exists and has an entry; `{}` sets nothing."""
        return self.table is not None and bool(self.table.node.entries)

    @property
    def texts(self) -> dict[str, str]:
        """Entries as written, without those that are no scalars."""
        entries = self.table.node.entries if self.table else {}
        return {
            name: "" if node.is_null else node.text
            for name, node in entries.items()
            if isinstance(node, Scalar)
        }

    def at(self, name: str) -> Spot:
        """Return the position of the resource type `name`."""
        return self.table.spot(name) if self.table else self.spot

    def setting(self) -> Resource | None:
        """Return the checked resource, or None if no entry is above 0."""
        # Negative quantities are refused by the parser.
        return Resource(self.value) if any(self.value.values()) else None

    def over(self, bound: Mapping[str, int]) -> Iterator[str]:
        """Yield the types that exceed `bound`; a type missing in `bound` is not bounded."""
        return (name for name, amount in self.value.items() if name in bound and amount > bound[name])


def read_amount(table: YamlTable, key: str, *, skip_empty: bool = False) -> Amount:
    """Read the resource under `key`; `skip_empty` ignores types without a quantity, as in templates."""
    amount = Amount(table, key)
    if table.get(key) is None:
        return amount
    amount.given = True
    amount.table = table.table(key)
    if amount.table is None:
        amount.faulty = True
        return amount
    texts, value = 0, {}
    for name, text in amount.table.each_text():
        texts += 1
        if skip_empty and not (name and text):
            table.findings.warning(amount.table.spot(name), "the entry has no quantity and is ignored")
            continue
        try:
            value[name] = parse_quantity(name, text)
        except QuantityError as error:
            amount.faulty = True
            table.findings.problem(amount.table.spot(name), str(error))
    amount.value = value
    # Entries that are not texts were reported by each_text and not counted.
    amount.faulty = amount.faulty or texts < len(amount.table.node.entries)
    return amount
