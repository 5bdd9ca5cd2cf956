"""Columns whose usual texts are kept in a shorter form; other texts are kept as they are.

Rows, results and conditions have the texts themselves. `FetchedRows`, which reads JSON, unpacks them itself.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Dialect, Text

Packing = Callable[[Any], str | None]
"""Function of a text or None."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_BEGIN = re.compile(
    "[0-9a-f]{6,8}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){0,3}[0-9a-f]{0,4}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{5,12}"
)
MARK, _PADDING = "=", b"=="
"""First character of packed keys."""
_LETTERS = {
    **{"New": "N", "Accepted": "A", "Starting": "S", "Running": "R", "Completing": "C", "Completed": "D"},
    **{"Failing": "F", "Failed": "X", "Rejected": "J", "Resuming": "U", "Expired": "E", "Removed": "V"},
}
"""Letters of states, which histories have; a later version may add others."""
_STATES = {letter: state for state, letter in _LETTERS.items()}
_STEP = re.compile("([A-Z])(-?[0-9]+)")


def pack_key(key: str | None) -> str | None:
    """Return a UUID in 23 characters, the first one a mark; another key with the mark gets a second one."""
    if key and len(key) == 36 and _UUID.fullmatch(key):
        return MARK + b2a_base64(bytes.fromhex(key.replace("-", "")), newline=False)[:22].decode()
    return MARK + key if key and key.startswith(MARK) else key


def key_forms(key: str) -> set[str | None]:
    """Return the texts of a key in rows: rows of a converted history keep their UUIDs as they were."""
    return {pack_key(key), MARK + key if key.startswith(MARK) else key}


def begin_of_key(text: str) -> str:
    """Return the first characters of packed UUIDs that begin with a text of at least six digits; else none.

    A character has the bits of one and a half digits, so that the last digit may be left out.
    """
    if not _UUID_BEGIN.fullmatch(text.lower()):
        return ""
    digits = text.replace("-", "")
    return MARK + b2a_base64(bytes.fromhex(digits.ljust(32, "0"))).decode()[: len(digits) * 4 // 6]


def unpack_key(text: str | None) -> str | None:
    """Return the key that was packed."""
    if not text or text[0] != MARK:
        return text
    if text[1:2] == MARK:
        return text[1:]
    digits = a2b_base64(text[1:].encode() + _PADDING).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def pack_states(text: str | None) -> str | None:
    """Return JSON of `[[time, state, reason], ...]` as letters with the times since the one before."""
    parts: list[str] = []
    before = 0
    try:
        for time, state, reason in msgspec.json.decode(text or "[]"):
            if reason:
                return text
            parts.append(f"{_LETTERS[state]}{time - before}")
            before = time
    except (ValueError, TypeError, LookupError):  # a state that has no letter, or lone surrogates
        return text
    return "".join(parts) or text


def unpack_states(text: str | None) -> str | None:
    """Return the JSON that was packed."""
    if not text or text[0] not in _STATES:
        return text
    found: list[tuple[int, str, str]] = []
    time = 0
    for letter, duration in _STEP.findall(text):
        time += int(duration)
        found.append((time, _STATES[letter], ""))
    return msgspec.json.encode(found).decode()


class PackedText(Text):
    """Type of a column with packed texts."""

    inherit_cache = True

    def __init__(self, pack: Packing, unpack: Packing) -> None:
        """Create with a function that packs texts, and its inverse."""
        super().__init__()
        self.pack, self.unpack = pack, unpack

    def adapt(self, cls: Any, **kw: Any) -> Any:
        """Return an equal type, where a dialect would take one of its own."""
        return PackedText(self.pack, self.unpack)

    def bind_processor(self, dialect: Dialect) -> Any:
        """Pack the texts of conditions."""
        return self.pack

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Unpack the texts of results."""
        return self.unpack
