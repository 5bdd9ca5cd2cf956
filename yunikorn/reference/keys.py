"""Descriptions of a configuration key and of a mapping with keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from yunikorn.framework.kinds import Kind
from yunikorn.reference.values import TEXT, Value

UNSAID = object()
"""Marker for a field without default."""


@attrs.frozen
class Key:
    """Key of the configuration, with type, meaning and default."""

    name: str
    meaning: str
    """Meaning in Markdown; links are relative to `docs/`."""
    holds: Value = TEXT
    example: str = ""
    """Example of a value, in YAML."""
    field: str = ""
    """Field of the section's class that the key sets; the default is taken from there."""
    default: str | None = None
    """Text of the default, if the class has no usable one."""
    inside: str = ""
    """Mapping inside the section that contains the key, such as `resources` for `max`."""
    section: str = ""
    """Name of the section that describes the value, or each entry of a list."""
    many: bool = False
    """True if the value is a list."""
    plugins: Kind | None = None
    """Kind of plugin that the value names or lists."""
    required: bool = False
    ours: bool = False
    """True if YuniKorn 1.9 does not have the key; see `docs/decisions/0004`."""

    @property
    def path(self) -> str:
        """Path of the key from the section."""
        return f"{self.inside}.{self.name}" if self.inside else self.name


@attrs.frozen
class KeySection:
    """Mapping of the configuration, with all its keys."""

    name: str
    title: str
    intro: str
    cls: type[Any]
    """Class of the checked configuration that the mapping is converted to."""
    keys: tuple[Key, ...]
    notes: str = ""
    """Constraints beyond single values, in Markdown."""
    example: str = ""
    """Example of a complete configuration."""
    open_to: str = ""
    """Meaning of other keys; empty if no other keys are allowed."""
    options_of: Kind | None = None
    """Kind of plugin that the mapping configures; its options are further keys."""
    chosen_by: str = ""
    """Key with the name of the plugin."""

    def defaults(self) -> dict[str, Any]:
        """Return the defaults of `cls`, by field."""
        found: dict[str, Any] = {}
        for field in attrs.fields(self.cls):
            default = field.default
            if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
                default = default.factory()
            if default is not attrs.NOTHING:
                found[field.name] = default
        return found

    def default_of(self, key: Key) -> str:
        """Return the default of `key` in configuration notation."""
        if key.required:
            return "required"
        if key.default is not None:
            return key.default
        value = self.defaults().get(key.field, UNSAID)
        if value is UNSAID or value is None or value == "" or not (value or isinstance(value, (int, bool))):
            return "none"
        return f"`{key.holds.spell(value)}`"

    def inner(self) -> Iterator[str]:
        """Yield the mappings inside the section that contain keys, each once."""
        yield from dict.fromkeys(key.inside for key in self.keys if key.inside)
