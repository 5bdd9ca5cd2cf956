"""Rows for a history database, collected by the recorder and written by its writer.

A row is a tuple in the order of the columns of its table in `history_tables.py`. Writing replaces a row with
the same primary key, so that a batch may be written again when the answer to the first attempt was lost. A
row that changes, such as that of an allocation that ends, is written again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

Row = tuple[object, ...]

LONGEST_NAME = 4_000
"""Characters of a text in `names` or `shapes`; the rest of a longer one is cut."""
LONGEST_TEXT = 1 << 20
MOST_KNOWN = 200_000
"""Number of texts after which those that did not occur meanwhile are forgotten."""


def clean_text(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text that every database takes: without NUL and lone surrogates, and cut if it is long."""
    if len(text) > longest:
        text = f"{text[:longest]}... ({len(text):,} characters)"
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@attrs.define
class RowBatch:
    """Rows that are committed together."""

    rows: dict[str, list[Row]] = attrs.Factory(dict)
    """Rows by the name of their table, oldest first."""

    def add(self, table: str, row: Row) -> None:
        """Add a row; a later row with the same primary key takes its place."""
        self.rows.setdefault(table, []).append(row)

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))


class Ids:
    """Ids of texts in a table with the columns `id` and a text: `names` or `shapes`.

    A text that comes again after it was forgotten has two ids.
    """

    def __init__(self, table: str, known: Mapping[str, int], first: int = 1) -> None:
        """Begin with the texts that the database has; new ones get ids from `first` on."""
        self._table, self._known, self._next = table, dict[str, int](), first
        self._earlier = dict[str, int]()
        """Texts that did not occur since the latest `MOST_KNOWN` became known."""
        self._unused = dict(known)
        """Texts of the database that did not occur yet."""
        self._first, self._loaded = first, frozenset(known.values())
        self._new: list[Row] = []

    def of(self, text: str) -> int:
        """Return the id of a text; 0 for an empty one."""
        if not text:
            return 0
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._earlier, self._known, self._unused = self._known, {}, {}
            # Cleaned here, because the texts of an earlier process are known as the database has them.
            kept = clean_text(text, LONGEST_NAME)
            found = self._known.get(kept) or self._earlier.pop(kept, None) or self._unused.pop(kept, None)
            if found is None:
                found = self._next
                self._next += 1
                self._new.append((found, kept))
            self._known[kept] = found
        return found

    def forget(self, rows: Iterable[tuple[int, str]]) -> list[int]:
        """Forget and return those of these ids whose texts did not occur yet; used in any thread."""
        unused, loaded, first = self._unused, self._loaded, self._first
        # Removal from a dictionary is atomic: a text that occurs at the same time is found once.
        return [
            number
            for number, text in rows
            # What was not loaded never gets this id again.
            if (number < first and number not in loaded)
            or (unused.get(text) == number and unused.pop(text, None) is not None)
        ]

    def repeat(self) -> None:
        """Add the rows of all texts to the next batch, for a database that has lost them."""
        known = self._unused | self._earlier | self._known
        self._new = [(number, text) for text, number in known.items()]

    def move_to(self, batch: RowBatch) -> None:
        """Add the rows of new texts to a batch."""
        if self._new:
            batch.rows.setdefault(self._table, []).extend(self._new)
            self._new = []
