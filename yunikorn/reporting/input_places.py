"""Places of the inputs of a run, in its folder: with them a comparison of finished runs can repeat it.

The provenance of a result has no places, because they decide nothing. Places are relative to the folder, so
that they stay right when inputs and results are moved together.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs

from yunikorn.input_files import HeldInput, InputFile
from yunikorn.reporting.provenance import NODES, WORKLOAD

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
