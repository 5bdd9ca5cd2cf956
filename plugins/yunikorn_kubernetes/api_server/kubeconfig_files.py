"""Kubeconfig files: their entries, merged as by kubectl, and what an entry says about a connection."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from yunikorn.errors import YunikornError

NAMED = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""Lists of a file, and the member of their entries that has the content."""


class KubeconfigError(YunikornError):
    """Unusable kubeconfig file."""


@attrs.frozen
class KubeconfigEntry:
    """Cluster, user or context, with the folder of its file, to which its paths are relative."""

    folder: Path = Path()
    content: Mapping[str, Any] = attrs.Factory(dict)

    def text(self, name: str) -> str:
        """Return a member that is a text; empty if there is none."""
        found = self.content.get(name)
        return "" if found is None else str(found)

    def data(self, name: str) -> bytes | None:
        """Return the content of the member `NAME-data`, or of the file that `NAME` names; None without both.

        Raises `KubeconfigError`.
        """
        if given := self.text(f"{name}-data"):
            try:
                return base64.b64decode(given, validate=True)
            except (binascii.Error, ValueError) as error:
                raise KubeconfigError(f"cannot be used: {name}-data is no base64: {error}") from error
        path = self.text(name)
        if not path:
            return None
        try:
            return (self.folder / Path(path).expanduser()).read_bytes()
        except OSError as error:
            raise KubeconfigError(
                f"cannot be used: {name}: {self.folder / path}: {error.strerror or error}"
            ) from error


class Kubeconfig:
    """Entries of kubeconfig files; of entries with one name, that of the first file counts."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Read files. Raises `KubeconfigError`."""
        self.current = ""
        self._entries: dict[str, dict[str, KubeconfigEntry]] = {kind: {} for kind in NAMED}
        for file in files:
            self._add(file)

    def _add(self, file: Path) -> None:
        try:
            content = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise KubeconfigError(f"cannot be used: {file} is no YAML: {error}") from error
        except OSError as error:
            raise KubeconfigError(f"cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise KubeconfigError(f"cannot be used: {file} has no clusters, users and contexts")
        self.current = self.current or str(content.get("current-context") or "")
        for kind, member in NAMED.items():
            listed = content.get(kind) or []
            if not isinstance(listed, list):
                raise KubeconfigError(f"cannot be used: {file}: {kind} is no list")
            for one in listed:
                found = one.get(member) or {} if isinstance(one, dict) else None
                if not isinstance(found, dict):
                    raise KubeconfigError(f"cannot be used: {file}: {kind} has an entry without '{member}'")
                name = str(one.get("name") or "")
                self._entries[kind].setdefault(name, KubeconfigEntry(file.parent, found))

    def names(self, kind: str) -> list[str]:
        """Return the names of clusters, contexts or users."""
        return [*self._entries[kind]]

    def entry(self, kind: str, name: str) -> KubeconfigEntry:
        """Return an entry; raises `KubeconfigError` if there is none."""
        try:
            return self._entries[kind][name]
        except KeyError:
            raise KubeconfigError(f"has no {NAMED[kind]} '{name}'") from None
