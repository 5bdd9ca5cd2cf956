"""A key of the configuration, and the mapping that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from yunikorn.kinds import Kind
from yunikorn.reference.values import TEXT, Value

UNSAID = object()
"""Tells that there is no default to speak of."""


@attrs.frozen
class Key:
    """A key: what it holds, what it means, and what holds where it is missing."""

    name: str
    meaning: str
    """In Markdown; links are relative to `docs/`."""
    holds: Value = TEXT
    example: str = ""
    """A value as it may stand in a file."""
    field: str = ""
    """The field of the section's class that it sets, from which its default is taken."""
    default: str | None = None
    """The default in words, where the class does not tell it."""
    inside: str = ""
    """The mapping below the section in which it stands: `max` inside `resources`."""
    section: str = ""
    """The name of the section that describes the value, or each of its entries."""
    many: bool = False
    """Whether it holds a list of them."""
    plugins: Kind | None = None
    """The kind of plugin that it names, or lists."""
    required: bool = False
    ours: bool = False
    """Whether YuniKorn 1.9 does not know it (decision 4)."""

    @property
    def path(self) -> str:
        """Its name from the section on."""
        return f"{self.inside}.{self.name}" if self.inside else self.name


@attrs.frozen
class KeySection:
    """A mapping of the configuration, and all keys that it may have."""

    name: str
    title: str
    intro: str
    cls: type[Any]
    """The checked class that it becomes."""
    keys: tuple[Key, ...]
    notes: str = ""
    """What must hold beyond single values, in Markdown."""
    example: str = ""
    """A whole configuration."""
    open_to: str = ""
    """What keys beside these mean; empty when there are none."""
    options_of: Kind | None = None
    """The kind of plugin that the mapping is about: its options are further keys."""
    chosen_by: str = ""
    """The key that holds the plugin's name."""

    def defaults(self) -> dict[str, Any]:
        """The class's own defaults, by field."""
        found: dict[str, Any] = {}
        for field in attrs.fields(self.cls):
            default = field.default
            if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
                default = default.factory()
            if default is not attrs.NOTHING:
                found[field.name] = default
        return found

    def default_of(self, key: Key) -> str:
        """What holds where the key is missing, as a configuration would write it."""
        if key.required:
            return "required"
        if key.default is not None:
            return key.default
        value = self.defaults().get(key.field, UNSAID)
        if value is UNSAID or value is None or value == "" or not (value or isinstance(value, (int, bool))):
            return "none"
        return f"`{key.holds.spell(value)}`"

    def inner(self) -> Iterator[str]:
        """The mappings below it that some of its keys stand in, each once."""
        yield from dict.fromkeys(key.inside for key in self.keys if key.inside)
