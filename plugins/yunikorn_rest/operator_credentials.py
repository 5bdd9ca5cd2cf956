"""Credentials of operators: tokens and client certificates, with a role each, from a YAML file.

The file has no secrets: of a token it has the SHA-256 hash. A token consists of 256 random bits, so a plain
hash is enough; a slow one protects only passwords that people choose. No message contains a value of the
file, because a token that was pasted there by mistake would get into the log.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

import attrs

from yunikorn.config.acl import is_group_name
from yunikorn.config.document import Listing, Scalar, YamlNode, compose, decode
from yunikorn.config.document import Mapping as MappingNode
from yunikorn.errors import ConfigError, Problem, UsageError
from yunikorn.text import suggest

MARK = "yunikorn_"
"""Beginning of every token, by which scanners for leaked secrets recognize it."""
HASH = "sha256:"
LONGEST_TOKEN = 200
LARGEST = 4 << 20
"""Maximum size of a file in bytes."""
_HASH = re.compile(r"sha256:([0-9a-fA-F]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_KEYS = ("name", "role", "groups", "token", "certificate")


class Role(enum.Enum):
    """Role of a credential; each includes those before."""

    VIEW = "view"
    OPERATE = "operate"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Return True if the role permits everything that the other one permits."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


@attrs.frozen
class Credential:
    """An operator, as a token or a certificate names them."""

    name: str
    role: Role
    groups: tuple[str, ...] = ()
    digest: bytes = attrs.field(default=b"", repr=False)
    """SHA-256 of the token; empty for a certificate."""
    certificate: str = ""
    """Common name of the certificate's subject; empty for a token."""


class OperatorCredentials:
    """Credentials of a file."""

    def __init__(self, entries: Iterable[Credential]) -> None:
        self.entries = tuple(entries)
        self._by_digest = {one.digest: one for one in self.entries if one.digest}
        self._by_certificate = {one.certificate: one for one in self.entries if one.certificate}

    def of_token(self, token: str) -> Credential | None:
        """Return the credential of a token, or None."""
        if len(token) > LONGEST_TOKEN:
            return None
        digest = digest_of(token)
        found = self._by_digest.get(digest)
        # The look-up depends on a hash that a client cannot choose; the comparison takes constant time.
        return found if found is not None and hmac.compare_digest(found.digest, digest) else None

    def of_certificate(self, common_name: str) -> Credential | None:
        """Return the credential of a verified certificate, or None."""
        return self._by_certificate.get(common_name)


def digest_of(token: str) -> bytes:
    """Return the SHA-256 hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def hash_of(token: str) -> str:
    """Return the hash of a token as the file has it."""
    return HASH + digest_of(token).hex()


def read_credentials(file: Path, *, certificates: bool) -> OperatorCredentials:
    """Read a file of credentials; raises `UsageError` with all problems and their lines.

    Entries with a certificate are refused unless `certificates` is True: without TLS and an authority, no
    client shows one.
    """
    try:
        if file.stat().st_size > LARGEST:
            raise UsageError(f"--rest-credentials {file}: is larger than {LARGEST >> 20} MiB")
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--rest-credentials {file}: cannot be read: {error.strerror or error}") from error
    try:
        return parse_credentials(decode(data), certificates=certificates)
    except ConfigError as error:
        raise UsageError("\n".join(f"--rest-credentials {file}: {one}" for one in error.problems)) from error


def parse_credentials(text: str, *, certificates: bool = True) -> OperatorCredentials:
    """Read credentials from a text; raises `ConfigError` with all problems."""
    try:
        node, problems = compose(text)
    except ConfigError as error:
        raise ConfigError(_without_values(error.problems)) from None
    problems = _without_values(problems)
    if not isinstance(node, Listing):
        place = node or YamlNode(1, 1)
        text = "expected a list of entries with `name`, `role` and `token`; `yunikorn token` prints one"
        raise ConfigError([*problems, _problem("", place, text)])
    reader = _Reader(certificates, problems)
    found = [reader.entry(index, item) for index, item in enumerate(node.items)]
    if not found:
        problems.append(_problem("", node, "there is no entry: `yunikorn token NAME --role ROLE` prints one"))
    if problems:
        raise ConfigError(sorted(problems, key=lambda one: (one.line, one.column)))
    return OperatorCredentials(one for one in found if one is not None)


def _without_values(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems of the parser without the names that they quote, which may be misplaced tokens."""
    return [one._replace(message=_VALUES.sub("...", one.message)) for one in problems]


_VALUES = re.compile(r"'[^']*'|[*&]\S+")


def _problem(path: str, node: YamlNode, message: str) -> Problem:
    return Problem(path, message, node.line, node.column)


class _Reader:
    """Reader of entries, which collects all problems."""

    def __init__(self, certificates: bool, problems: list[Problem]) -> None:
        self._certificates, self._problems = certificates, problems
        self._seen: dict[tuple[str, object], YamlNode] = {}
        """Position of each name, token and certificate."""

    def entry(self, index: int, item: YamlNode) -> Credential | None:
        """Return an entry, or None if it has a problem."""
        path, before = f"[{index}]", len(self._problems)
        if not isinstance(item, MappingNode):
            self._report(path, item, "expected a mapping with `name`, `role` and `token`")
            return None
        for key in item.entries:
            if key not in _KEYS:
                hint = suggest(key, _KEYS)
                self._report(path, item.key(key), f"unknown key{hint}; known: {', '.join(_KEYS)}")
        name = self._name(path, item)
        role = self._role(path, item)
        groups = self._groups(path, item)
        digest, certificate = self._secret(path, item)
        if len(self._problems) > before or role is None:
            return None
        return Credential(name, role, groups, digest, certificate)

    def _name(self, path: str, item: MappingNode) -> str:
        name = self._text(path, item, "name")
        if name and not _NAME.fullmatch(name):
            text = "at most 64 letters, digits and the characters . _ @ -, beginning with a letter or digit"
            self._report(f"{path}.name", item.entries["name"], f"expected {text}")
        elif name is not None:
            self._once(path, item, "name", name)
        return name or ""

    def _role(self, path: str, item: MappingNode) -> Role | None:
        text = self._text(path, item, "role")
        if text is None:
            return None
        roles = [role.value for role in Role]
        if text not in roles:
            hint = suggest(text, roles)
            self._report(
                f"{path}.role", item.entries["role"], f"unknown role{hint}; known: {', '.join(roles)}"
            )
            return None
        return Role(text)

    def _groups(self, path: str, item: MappingNode) -> tuple[str, ...]:
        node = item.entries.get("groups")
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return ()
        if not isinstance(node, Listing):
            self._report(f"{path}.groups", node, "expected a list of names of groups")
            return ()
        found = []
        for index, inner in enumerate(node.items):
            if isinstance(inner, Scalar) and is_group_name(inner.text):
                found.append(inner.text)
            else:
                self._report(f"{path}.groups[{index}]", inner, "expected the name of a group")
        return tuple(found)

    def _secret(self, path: str, item: MappingNode) -> tuple[bytes, str]:
        """Return the hash of the token and the common name of the certificate, one of which is empty."""
        given = [key for key in ("token", "certificate") if key in item.entries]
        if len(given) != 1:
            what = "give either `token` or `certificate`"
            self._report(path, item, what if not given else f"{what}, not both: write two entries")
            return b"", ""
        text = self._text(path, item, given[0])
        if text is None:
            return b"", ""
        node = item.entries[given[0]]
        if given[0] == "certificate":
            if not self._certificates:
                needed = "certificates of clients need --tls-cert, --tls-key and --tls-client-ca"
                self._report(f"{path}.certificate", node, needed)
            self._once(path, item, "certificate", text)
            return b"", text
        hashed = _HASH.fullmatch(text)
        if hashed is None:
            self._report(
                f"{path}.token",
                node,
                f"expected the hash of a token, {HASH} and 64 hexadecimal digits, never the token itself;"
                " `yunikorn token` prints both",
            )
            return b"", ""
        digest = bytes.fromhex(hashed[1])
        self._once(path, item, "token", digest)
        return digest, ""

    def _text(self, path: str, item: MappingNode, key: str) -> str | None:
        """Return a text that is required and not empty; None if there is none."""
        node = item.entries.get(key)
        if node is None:
            self._report(path, item, f"`{key}` is missing")
        elif not isinstance(node, Scalar) or node.is_null or not node.text:
            self._report(f"{path}.{key}", node, "expected a text")
        else:
            return node.text
        return None

    def _once(self, path: str, item: MappingNode, key: str, value: object) -> None:
        node = item.entries[key]
        first = self._seen.setdefault((key, value), node)
        if first is not node:
            self._report(f"{path}.{key}", node, f"the same {key} is in line {first.line}")

    def _report(self, path: str, node: YamlNode, message: str) -> None:
        self._problems.append(_problem(path, node, message))


def weak_permissions(file: Path) -> str:
    """Return a warning if other users may write the file, or an empty text."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return ""
    if os.name != "posix" or not mode & (stat.S_IWGRP | stat.S_IWOTH):
        return ""
    who = "every user" if mode & stat.S_IWOTH else "its group"
    return f"--rest-credentials {file}: {who} may write the file, and so give themselves any role: chmod go-w"
