"""Ids of new rows, and of texts that occur in many rows."""

from __future__ import annotations

from yunikorn.resources import Resource
from yunikorn_history.history_tables import NAMES, SHAPES
from yunikorn_history.open_rows import json_text
from yunikorn_history.row_writer import OpenRows
from yunikorn_history.rows import Ids, RowBatch

REMEMBERED = 10_000
"""Number of amounts whose texts are remembered."""


class RowIds:
    """Ids of a recorder, which continue from those of a database."""

    def __init__(self, loaded: OpenRows) -> None:
        self._highest = dict(loaded.highest)
        self.names = Ids(NAMES.name, loaded.names, self._highest[NAMES.name] + 1)
        self.shapes = Ids(SHAPES.name, loaded.shapes, self._highest[SHAPES.name] + 1)
        self._by_resource: dict[Resource, int] = {}

    def new(self, table: str) -> int:
        """Return the next id of a row of a table."""
        number = self._highest[table] = self._highest[table] + 1
        return number

    def shape(self, resource: Resource) -> int:
        """Return the id of an amount."""
        found = self._by_resource.get(resource)
        if found is None:
            if len(self._by_resource) >= REMEMBERED:
                self._by_resource.clear()
            found = self._by_resource[resource] = self.shapes.of(json_text(resource))
        return found

    def repeat(self) -> None:
        """Add all texts to the next batch, for a database that has lost them."""
        self.names.repeat()
        self.shapes.repeat()

    def move_to(self, batch: RowBatch) -> None:
        """Add the rows of new texts to a batch."""
        self.names.move_to(batch)
        self.shapes.move_to(batch)
