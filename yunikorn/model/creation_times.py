"""Creation of requests as resource managers report it, which is the same before and after a recovery."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.clock import SECOND

CREATION_TAG = "creationTime"
"""Tag of a request or allocation with the time of its creation in Unix seconds."""
TIME_DIGITS = 18


def created_at(tags: Mapping[str, str], default: int) -> int:
    """Return the creation time (ns) of a request with these tags; `default` if they have none."""
    text = tags.get(CREATION_TAG, "") if tags else ""
    return int(text) * SECOND if text.isdecimal() and len(text) <= TIME_DIGITS else default
