"""Records of a history as CSV, JSON and Parquet."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from yunikorn.errors import UsageError, printable
from yunikorn_commands.extras import importing_extra
from yunikorn_history.commands.record_columns import Record, RecordColumn

ROWS = 10_000
"""Number of rows of a group in a Parquet file."""
DIGITS = 38
"""Digits of sums of service in a Parquet file, which may exceed 64 bits."""


def write_csv(columns: Sequence[RecordColumn], records: Iterable[Record], stream: TextIO) -> None:
    """Write CSV with a line of names; what a terminal would obey is escaped there."""
    shown = printable if stream.isatty() else str
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([one.name for one in columns])
    for record in records:
        writer.writerow([shown(one.text(record)) for one in columns])


def write_json(
    columns: Sequence[RecordColumn] | None, records: Iterable[Record], stream: TextIO, *, lines: bool
) -> None:
    """Write a JSON list, or one object a line; `columns` are None for all fields."""
    before = "" if lines else "["
    for record in records:
        chosen = record if columns is None else {one.name: one.value(record) for one in columns}
        stream.write(before + json.dumps(chosen) + ("\n" if lines else ""))
        before = "" if lines else ",\n"
    if not lines:
        stream.write("[]\n" if before == "[" else "]\n")


def write_parquet(columns: Sequence[RecordColumn], records: Iterable[Record], path: Path) -> None:
    """Write a Parquet file; raises `UsageError` where the extra `parquet` is missing."""
    with importing_extra("parquet", "for --format parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    types, stamp = _types(pa), pa.timestamp("ms", "UTC")
    kinds = {one: stamp if one.is_time else types.get(one.kind) for one in columns}
    schema = pa.schema([(one.name, kind or pa.string()) for one, kind in kinds.items()])
    left = iter(records)
    with pq.ParquetWriter(path, schema) as writer:
        while group := list(islice(left, ROWS)):
            values = {
                one.name: [_cell(one, one.value(record), kind is not None) for record in group]
                for one, kind in kinds.items()
            }
            writer.write_table(pa.Table.from_pydict(values, schema))


def _types(pa: Any) -> dict[Any, Any]:
    """Return the types of Parquet by those of fields; all others are JSON text."""
    text = pa.string()
    # Sums of service may exceed 64 bits.
    amounts = pa.map_(text, pa.decimal128(DIGITS))
    return {
        int: pa.int64(),
        int | None: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        Mapping[str, int]: amounts,
        Mapping[str, float]: pa.map_(text, pa.float64()),
        Mapping[str, str]: pa.map_(text, text),
        tuple[str, ...]: pa.list_(text),
    }


def _cell(column: RecordColumn, value: Any, typed: bool) -> Any:
    if isinstance(value, dict) and typed:
        whole = column.kind == Mapping[str, int]
        return [(name, Decimal(one) if whole else one) for name, one in value.items()]
    return json.dumps(value) if isinstance(value, (dict, list)) and not typed else value


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Provide the path of a file that takes the place of another one at the end, if there is no error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"--output {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
