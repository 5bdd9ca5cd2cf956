"""Keys of queues.yaml as metadata of attrs classes; reader, JSON Schema and reference page follow from them.

Meaning and example of each key, which the last two show, are in `yunikorn_lab/schema/key_texts.py`.

`key` declares an attribute that a key sets. A `ConfigSection` is a mapping of the text with the keys of a
class. A `Draft` is such a mapping as read, with the position of each value, from which the checked class is
built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from yunikorn.config.values import Value
from yunikorn.config.yaml_reading import YamlTable
from yunikorn.framework.kinds import PluginKind

T = TypeVar("T")
OPTION = ".OPTION"
"""End of a key that stands for all options of the policy that another key names."""
_METADATA = "key"
_Reader = tuple[str, str, Any, Any]
"""Name of a key, its attribute, and the readers of a present and of a missing key."""


@attrs.frozen(eq=False)
class ConfigKey:
    """Key of the configuration, with type and default."""

    value: Value
    name: str = ""
    """Key in the text; by default the name of the attribute without underscores."""
    inside: str = ""
    """Mapping inside the section that contains the key, such as `resources` for `max`."""
    after: str = ""
    """Path of the key that messages name before a key that sets no attribute; empty for the first."""
    ours: bool = False
    """True if YuniKorn 1.9 does not have the key; see `docs/decisions/0004`."""
    field: str = ""
    """Attribute that the key sets; empty if the section itself reads the key."""
    initial: Any = attrs.field(factory=lambda: attrs.NOTHING)
    """Default of the attribute; `attrs.NOTHING` if there is none."""

    @property
    def path(self) -> str:
        """Path of the key from the section."""
        return f"{self.inside}.{self.name}" if self.inside else self.name

    @property
    def outer(self) -> str:
        """Key of the section itself that is, or contains, this key."""
        return self.inside or self.name


def key(value: Value, default: T, **rest: Any) -> T:
    """Return an attribute that a key sets; `rest` has further attributes of the `ConfigKey`."""
    return attrs.field(default=default, metadata={_METADATA: ConfigKey(value, **rest)})


def keys_of(cls: type[Any]) -> list[ConfigKey]:
    """Return the keys that set the attributes of a class, in the order of the attributes."""
    found: list[ConfigKey] = []
    for field in attrs.fields(cls):
        about, default = field.metadata.get(_METADATA), _default_of(field)
        if isinstance(about, ConfigKey):
            name = about.name or field.name.replace("_", "")
            found.append(attrs.evolve(about, name=name, field=field.name, initial=default))
        elif about is not None:
            name = field.name.replace("_", "")
            found += [attrs.evolve(each, inside=name, field="") for each in keys_of(about)]
    return found


def mappings_of(owner: Any) -> list[tuple[str, Any]]:
    """Return the attributes that `keys_inside` declares, with the name of the mapping and the value."""
    return [
        (field.name.replace("_", ""), getattr(owner, field.name))
        for field in attrs.fields(type(owner))
        if isinstance(field.metadata.get(_METADATA), type)
    ]


def _default_of(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def keys_inside(cls: type[Any], default: T) -> T:
    """Return an attribute whose class has the keys of the mapping of the same name."""
    return attrs.field(default=default, metadata={_METADATA: cls})


# -- sections -----------------------------------------------------------------------------------------


@attrs.define(eq=False, slots=False)
class ConfigSection:
    """Mapping of the configuration, with all its keys."""

    name: str
    cls: type[Any]
    """Class of the checked configuration that the mapping is converted to."""
    beside: tuple[ConfigKey, ...] = ()
    """Keys that set no attribute, each `after` another key, or first."""
    hints: Mapping[str, str] = attrs.field(factory=dict)
    """Additional texts for some unknown keys."""
    options_of: PluginKind | None = None
    """Kind of plugin that the mapping configures; its options are further keys."""
    chosen_by: str = ""
    """Key with the name of the plugin."""

    @cached_property
    def keys(self) -> tuple[ConfigKey, ...]:
        """All keys, in the order of messages."""
        order = keys_of(self.cls)
        for key in self.beside:
            paths = [each.path for each in order]
            order.insert(paths.index(key.after) + 1 if key.after else 0, key)
        return tuple(order)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Keys of the mapping itself, in the order of messages."""
        return tuple(dict.fromkeys(key.outer for key in self.keys))

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Keys of the mapping itself that YuniKorn 1.9 does not have."""
        theirs = {key.outer for key in self.keys if not key.ours}
        return tuple(name for name in self.known if name not in theirs)

    def names_inside(self, name: str) -> list[str]:
        """Return the keys of a mapping inside the section."""
        return [key.name for key in self.keys if key.inside == name]

    # -- reading --------------------------------------------------------------------------------------

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Defaults of the attributes that the constructor takes; an empty text for those without default."""
        found = {}
        for field in attrs.fields(self.cls):
            if field.init:
                default = _default_of(field)
                found[field.name] = "" if default is attrs.NOTHING else default
        return found

    @cached_property
    def builds(self) -> list[tuple[str, Callable[[Any], Any] | None, Any]]:
        """Attributes in order, each with the conversion from the read value, and with the default."""
        found = {key.field: key.value.build for key in self.keys}
        return [(name, found.get(name), default) for name, default in self.defaults.items()]

    @cached_property
    def _readers(self) -> list[tuple[str, list[str], list[_Reader]]]:
        """Readers of the keys, with the mapping inside the section that has the keys, and its known keys."""
        read = [key for key in self.keys if key.field and key.value.read]
        return [
            (
                inside,
                self.names_inside(inside),
                [
                    (one.name, one.field, one.value.read, one.value.absent)
                    for one in read
                    if one.inside == inside
                ],
            )
            for inside in dict.fromkeys(["", *(key.inside for key in read)])
        ]

    def check_keys(self, table: YamlTable) -> None:
        """Report unknown keys, and note those that YuniKorn 1.9 does not have."""
        table.only(self.known, self.hints)
        for name in self.own:
            if name in table:
                note = "YuniKorn 1.9 does not have this key and refuses the file"
                table.findings.note(table.key_spot(name), note)

    def given(self, table: YamlTable, found: dict[str, Any]) -> dict[str, Any]:
        """Add the keys that are present to `found`, by attribute; those without a reader are left out."""
        for inside, known, readers in self._readers:
            holder = table.table(inside, known) if inside else table
            if holder is None:
                nothing = None
                for _, field, _, absent in readers:
                    if absent:
                        found[field] = nothing = nothing or absent(table, "")
                continue
            entries = holder.node.entries
            for name, field, read, absent in readers:
                if name in entries and holder.get(name) is not None:
                    found[field] = read(holder, name)
                elif absent:
                    found[field] = absent(holder, name)
        return found

    def read(self, table: YamlTable) -> dict[str, Any]:
        """Read all keys by attribute; missing keys, and those without a reader, have their defaults."""
        if not self.options_of:
            self.check_keys(table)
        return self.given(table, self.defaults.copy())


class Draft(Generic[T]):
    """Mapping as read, with one attribute per key, and with its position in the text."""

    section: ClassVar[ConfigSection]
    table: YamlTable

    def __init__(self, table: YamlTable, values: Mapping[str, Any] | None = None) -> None:
        self.__dict__ = self.section.read(table) if values is None else {**values}
        self.table = table

    def build(self) -> T:
        """Return the checked object; all problems of the text must be solved."""
        read = self.__dict__
        made: T = self.section.cls(
            *[
                value if (value := read[name]) is default or build is None else build(value)
                for name, build, default in self.section.builds
            ]
        )
        return made
