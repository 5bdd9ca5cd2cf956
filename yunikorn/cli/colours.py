"""Decision on escape sequences for colours and emphasis in the output of commands.

https://no-color.org and https://force-color.org describe the variables `NO_COLOR` and `FORCE_COLOR`. If both
are set and not empty, `NO_COLOR` wins. A dumb terminal, a pipe and a file get no escape sequences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO


def has_colours(stream: TextIO, environment: Mapping[str, str] | None = None) -> bool:
    """Return True if escape sequences may be written to a stream."""
    known = os.environ if environment is None else environment
    if known.get("NO_COLOR"):
        return False
    if known.get("FORCE_COLOR"):
        return True
    return known.get("TERM") not in ("dumb", "unknown") and stream.isatty()
