"""Template of an application id: the part that is the same each time that the work runs.

UUIDs are left out. The rest is split at `-`, `_`, `.`, `:` and `/`. A part is left out if it has only digits,
if it has digits within at least five characters (a hash, a uid, a date with letters), or if it is a random
suffix of Kubernetes (the last one, of five characters without vowels). Letters with up to four digits at
their end, as in `train12`, lose the digits. So `etl-daily-2026-11-27-x7k2p` and `etl-daily-2026-11-28-9dq4z`
both have `etl-daily`. An id of which nothing remains has no template.
"""

from __future__ import annotations

import re

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PARTS = re.compile(r"[-_.:/]+")
_NUMBERED = re.compile(r"(\D+)\d{1,4}")
_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
SHORTEST_HASH = 5


def template_of(app_id: str) -> str:
    """Return the template of an application id; empty if there is none."""
    parts = _PARTS.split(_UUID.sub("", app_id))
    if len(parts) > 1 and _SUFFIX.fullmatch(parts[-1]):
        parts.pop()
    return "-".join(filter(None, map(_constant, parts)))


def _constant(part: str) -> str:
    if not any(map(str.isdigit, part)):
        return part
    numbered = _NUMBERED.fullmatch(part)
    if numbered is not None:
        return numbered[1]
    return "" if len(part) >= SHORTEST_HASH else re.sub(r"\d+", "", part)
