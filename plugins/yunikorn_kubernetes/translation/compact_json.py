"""Compact JSON texts: equal values have the same text, and equal texts are one object."""

from __future__ import annotations

import json
from sys import intern
from typing import Any


def compact_json(value: Any) -> str:
    """Return JSON without spaces and with sorted keys; an empty text for an empty value."""
    return intern(json.dumps(value, sort_keys=True, separators=(",", ":"))) if value else ""
