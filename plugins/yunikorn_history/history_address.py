"""Check of the place of a history, a file or a PostgreSQL database, without a database library.

Configurations and options are checked where no database can be opened, too.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from yunikorn.errors import printable

GRAMMAR = "a history is a FILE or postgresql://USER@HOST/DATABASE"
_URL = re.compile(
    r"postgresql://(?:[^:/]*(?P<password>:[^@]*)?@)?(?:\[[^/?]+\]|[^/:?]+)?(?::\d*)?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?"
)


def is_url(text: str) -> bool:
    """Return True for an address, and False for the path of a file."""
    scheme, colon, _rest = text.partition(":")
    return bool(colon) and "/" not in scheme and len(scheme) > 1  # a scheme of one letter is a drive


def check_location(text: str) -> None:
    """Raise `ValueError` for a text that is no path of a file, and no address without a password."""
    if not is_url(text):
        if not text.strip() or "\0" in text:
            raise ValueError(f"{text!r}: expected the path of a file: {GRAMMAR}")
        return
    scheme, _, rest = text.partition(":")
    # A password may be before @, or among the parameters.
    shown = printable(f"{scheme}://{rest.lstrip('/').rpartition('@')[2].partition('?')[0]}")
    if scheme != "postgresql" or not rest.startswith("//"):
        raise ValueError(
            f"{shown}: not the address of a database: {GRAMMAR}; write ./{scheme}:... for a file"
        )
    found = _URL.fullmatch(text)
    if found is None:
        raise ValueError(f"{shown}: not a URL: {GRAMMAR}")
    if found["password"] or "password" in parse_qs(found["query"] or "", keep_blank_values=True):
        raise ValueError(
            f"{shown}: remove the password, which other users of this machine could see, and set PGPASSWORD,"
            " or write it to ~/.pgpass"
        )
    database = found["database"]
    if not database or database.strip("/") != database:
        raise ValueError(f"{shown}: names no database: {GRAMMAR}")
