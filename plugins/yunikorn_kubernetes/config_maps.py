"""The two ConfigMaps of Apache YuniKorn: names, precedence of their entries, and compressed entries.

`yunikorn-defaults` comes from the installation, `yunikorn-configs` from the administrator, whose keys take
precedence. An entry of `binaryData` whose key ends in `.gz` is decompressed. Keys ending in `.yaml` are queue
configurations, of which the policy group chooses one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

import attrs

from yunikorn.errors import Problem

DEFAULTS = "yunikorn-defaults"
CONFIGS = "yunikorn-configs"
NAMES = (DEFAULTS, CONFIGS)
"""Names of the ConfigMaps; entries of later ones take precedence."""
YAML = ".yaml"
COMPRESSED = ".gz"
LARGEST = 32 << 20
"""Number of bytes of the largest decompressed entry."""
POLICY_GROUP = "service.policyGroup"
"""Key whose value, followed by `.yaml`, is the key of the queue configuration in use."""
DEFAULT_GROUP = "queues"


class ConfigMapData(Protocol):
    """Entries of one ConfigMap."""

    @property
    def data(self) -> Mapping[str, str] | None:
        """Texts by key."""
        ...

    @property
    def binary_data(self) -> Mapping[str, bytes] | None:
        """Decoded contents of `binaryData` by key."""
        ...


@attrs.frozen
class Entry:
    """Value of a key, and the ConfigMap that it is from."""

    text: str
    source: str


def merge(maps: Mapping[str, ConfigMapData | None]) -> tuple[dict[str, Entry], list[Problem], list[str]]:
    """Return the entries of ConfigMaps by name, the problems of compressed entries, and warnings.

    A ConfigMap that is missing or None has no entries. Of a key that is both in `data` and, compressed, in
    `binaryData`, the latter counts.
    """
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    warnings: list[str] = []
    for name in NAMES:
        config_map = maps.get(name)
        if config_map is None:
            continue
        data = config_map.data or {}
        entries.update({key: Entry(text, name) for key, text in data.items()})
        for key, content in (config_map.binary_data or {}).items():
            if not key.endswith(COMPRESSED):
                warnings.append(
                    f"{name}: {key} is ignored: only keys that end in {COMPRESSED} are read there"
                )
                continue
            plain = key.removesuffix(COMPRESSED)
            if plain in data:
                warnings.append(f"{name}: {plain} is ignored, because {key} is there, too")
            try:
                entries[plain] = Entry(decompress(content), name)
            except ValueError as error:
                problems.append(Problem(f"{name}: {key}", str(error)))
    return entries, problems, warnings


def decompress(content: bytes) -> str:
    """Return the text of a gzip file. Raises `ValueError`."""
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = reader.decompress(content, LARGEST)
    except zlib.error as error:
        raise ValueError(f"not a gzip file ({error}): compress it with gzip") from None
    if reader.unconsumed_tail:
        raise ValueError(f"larger than {LARGEST >> 20} MiB when decompressed: shorten it")
    if not reader.eof or reader.unused_data:
        raise ValueError("not one complete gzip file: compress it again with gzip")
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 when decompressed ({error}): save it as UTF-8") from None
