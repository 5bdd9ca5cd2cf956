"""A finished run in its folder, as a comparison reads it again: report with all series, decisions, inputs.

`results.json.gz` is the last file of a run that gets its name, and the first that the next run removes. A
folder that has this file is complete.

With the places of its inputs a comparison of finished runs can repeat a run. The provenance of a result has
no places, because they decide nothing. Places are relative to the folder, so that they stay right when inputs
and results are moved together.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import cattrs

from yunikorn.errors import UsageError
from yunikorn_commands.input_files import HeldInput, InputFile
from yunikorn_lab.reporting.decision_log import DecisionLog
from yunikorn_lab.reporting.full_report import FullReport, plain
from yunikorn_lab.reporting.provenance import NODES, WORKLOAD
from yunikorn_lab.simulation.out_folder import DECISIONS

RESULT = "results.json.gz"
"""Complete report and its provenance."""
LOG = "decisions.log.z"
"""Compressed decisions of a run of a comparison."""


def pack_result(result: FullReport) -> bytes:
    """Return the content of `results.json.gz`; equal results have equal contents."""
    text = json.dumps(plain(result), ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def read_result(folder: Path) -> FullReport:
    """Return the result in a folder; raises `UsageError` if there is none, or one of another version."""
    path = folder / RESULT
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
    except FileNotFoundError:
        raise UsageError(f"{folder}: has no {RESULT}, so it is not the folder of a finished run") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        return _converter().structure(content, FullReport)
    except (cattrs.BaseValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
        version = _version(content)
        raise UsageError(
            f"{path}: was written by yunikorn {version}, and this version reads another form: run it again"
        ) from error


def read_decisions(folder: Path) -> bytes:
    """Return the decisions in a folder in the form of a `DecisionLog`; raises `UsageError` without any."""
    try:
        return (folder / LOG).read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"{folder / LOG}: cannot be read: {error.strerror or error}") from error
    log = DecisionLog()
    try:
        with (folder / DECISIONS).open(encoding="utf-8") as lines:
            for line in lines:
                log.add_line(json.loads(line, parse_float=Decimal))
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{folder / DECISIONS}: cannot be read: {reason}") from error
    return log.pack()


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (int, float, str, bool):
        # Numbers keep the type that they were written with, so that a result is written again as it was.
        converter.register_structure_hook(kind, _plain)
    return converter


def _plain(value: Any, kind: Any) -> Any:
    expected = (int, float) if kind is float else kind
    if not isinstance(value, expected):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def _version(content: Any) -> str:
    try:
        return str(content["provenance"]["version"])[:40]
    except (KeyError, TypeError):
        return "of an unknown version"


PLACES = "inputs.json"
CONFIG = "configuration"
"""Key of the place of the configuration, next to `WORKLOAD` and `NODES`."""


@attrs.frozen
class InputPlaces:
    """Absolute places of the inputs of a run; None for a stream, and for nodes that need no file."""

    config: Path | None
    workload: Path | None
    nodes: Path | None = None

    def to_json(self, folder: Path) -> str:
        """Return JSON text with the places relative to a folder, and a final newline."""
        named = {CONFIG: self.config, WORKLOAD: self.workload, NODES: self.nodes}
        places = {name: None if path is None else _relative(path, folder) for name, path in named.items()}
        return json.dumps(places, indent=2, ensure_ascii=False) + "\n"


def place_of(file: InputFile) -> Path | None:
    """Return the absolute place of an input; None for a stream."""
    return None if isinstance(file, HeldInput) else file.resolve()


def read_places(folder: Path) -> InputPlaces | None:
    """Return the places in the folder of a run; None if it has none."""
    try:
        found = json.loads((folder / PLACES).read_text("utf-8"))
        return InputPlaces(*(_absolute(found[name], folder) for name in (CONFIG, WORKLOAD, NODES)))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder.resolve())).as_posix()
    except ValueError:
        return path.as_posix()  # on another drive


def _absolute(place: Any, folder: Path) -> Path | None:
    return None if place is None else Path(os.path.normpath(folder.resolve() / str(place)))
