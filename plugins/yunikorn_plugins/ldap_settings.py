"""Settings of the resolver `ldap`, from options and from the files of a mounted secret, and names of groups.

The files are those of YuniKorn 1.9: one for each setting, called `Host`, `Port`, `BaseDN` and so on. The
password is only read while a connection is made, so that a changed file needs no reload.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import attrs

LARGEST_FILE = 65_536
"""Maximum size of a file with a setting, in bytes."""
PLACEHOLDER = "%s"
"""Text in a filter that the user's name replaces."""
MEMBER_OF = "memberOf"
TRUE = frozenset({"1", "t", "true"})
FALSE = frozenset({"0", "f", "false"})
ATTRIBUTES_WITH_DN = frozenset(
    {"memberof", "ismemberof", "groupmembership", "msds-memberoftransitive", "nsrole"}
)
"""Attributes, in lower case, whose values are distinguished names of groups. Values of others are names."""

_TYPE = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)*)\s*=\s*")
_HEX = re.compile(r"[0-9A-Fa-f]{2}")


@attrs.frozen
class LdapSettings:
    """Settings for the connections to a directory and for its searches."""

    host: str
    port: int
    base: str
    """Distinguished name below which is searched."""
    filter: str
    """Search filter; `%s` stands for the escaped name of the user."""
    attribute: str
    """Attribute that has the groups."""
    bind_user: str
    password_file: Path
    ssl: bool
    starttls: bool
    insecure: bool
    """True if certificates are not checked."""
    ca: Path | None
    timeout: float
    """Seconds for one look-up."""

    @property
    def address(self) -> str:
        """Address of the server, for messages."""
        return f"{'ldaps' if self.ssl else 'ldap'}://{self.host}:{self.port}"

    def password(self) -> str:
        """Return the password, read now. Raises `OSError`, or `ValueError` without the text of the file."""
        password = read_file(self.password_file)
        if not password:
            raise ValueError(f"{self.password_file} is empty: a password is required")
        return password


def read_settings(
    folder: Path,
    given: Mapping[str, str | int | bool | None],
    *,
    starttls: bool = False,
    ca: Path | None = None,
    timeout: float,
) -> LdapSettings:
    """Return the settings that are `given`, by the names of the files, and the others from the files.

    Raises `ValueError` with all problems.
    """
    problems: list[str] = []

    def text(name: str, default: str | None = None) -> str:
        value = given.get(name)
        if value is not None:
            return str(value)
        found: str | None
        try:
            found = read_file(folder / name).strip()
        except FileNotFoundError:
            found = default
        except (OSError, ValueError) as error:
            problems.append(str(error))
            return ""
        if not found:
            option = f", and the option '{name.lower()}' is not set" if name in given else ""
            problems.append(f"there is no setting in the file {folder / name}{option}")
        return found or ""

    def flag(name: str) -> bool:
        written = text(name, "false").lower()
        if written not in TRUE | FALSE:
            problems.append(f"{name} must be true or false, not {written[:50]!r}")
        return written in TRUE

    ssl, insecure = flag("SSL"), flag("Insecure")
    port = text("Port", "636" if ssl else "389")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
        problems.append(f"Port must be a number from 1 to 65535, not {port[:50]!r}")
        port = "0"
    host, base, pattern = text("Host"), text("BaseDN"), text("Filter")
    if pattern and PLACEHOLDER not in pattern.replace("%%", ""):
        problems.append(f"Filter must contain %s, for the name of the user; it is {pattern[:200]!r}")
    if ssl and starttls:
        problems.append("use either SSL, for a port with TLS, or starttls")
    made = LdapSettings(
        host,
        int(port),
        base,
        pattern,
        text("GroupAttr", MEMBER_OF),
        text("BindUser"),
        folder / "BindPassword",
        ssl,
        starttls,
        insecure,
        ca,
        timeout,
    )
    try:
        made.password()
    except (OSError, ValueError) as error:
        problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))
    return made


def read_file(path: Path) -> str:
    """Return the text of a file without the line break at its end.

    Raises `OSError`, or `ValueError` if it is too large or no UTF-8 text; the message has no part of it.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{path} has more than {LARGEST_FILE} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    return text.removesuffix("\n").removesuffix("\r")


def group_of(attribute: str, value: str) -> str:
    """Return the name of the group in a value: the first part of a distinguished name, or the whole value."""
    if attribute.lower() not in ATTRIBUTES_WITH_DN:
        return value.strip()
    begin = _TYPE.match(value)
    return value.strip() if begin is None else _first_part(value[begin.end() :])


def _first_part(text: str) -> str:
    """Return the text up to the first separator, without escapes (RFC 4514); hex pairs are UTF-8."""
    found = bytearray()
    kept = 0
    position = 0
    while position < len(text) and text[position] not in ",+;":
        step = text[position]
        if step == "\\" and position + 1 < len(text):
            pair = text[position + 1 : position + 3]
            if _HEX.fullmatch(pair):
                found += bytes.fromhex(pair)
                position += 3
            else:
                found += text[position + 1].encode("utf-8", "replace")
                position += 2
            kept = len(found)
            continue
        found += step.encode("utf-8", "replace")
        position += 1
        if step != " ":
            kept = len(found)
    return found[:kept].decode("utf-8", "replace")
