"""JSON Schema of queues.yaml, for completion, descriptions and validation in editors.

Every file without findings of `yunikorn validate` matches the schema. The reverse does not hold, because
constraints on the whole file are not part of the schema. The schema includes the plugins of a registry, with
their options. It uses draft 7, which has the best support in editors.

Reference page of queues.yaml in Markdown: `reference_page.md` with the tables of keys and options.
"""

from __future__ import annotations

import re
import types
import typing
from collections import abc
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_origin

import attrs
import yaml

from yunikorn.config.keys import OPTION, ConfigKey, ConfigSection
from yunikorn.config.partition_configs import NO_RESOLVER
from yunikorn.config.plugin_refs import REQUIRED
from yunikorn.config.queues_yaml import (
    DEFAULT_ORDER,
    DEFAULT_RESERVATIONS,
    NAMED_NODE_ORDER,
    RESOLVER_CACHE,
    SECTIONS,
    WEIGHTED,
)
from yunikorn.containment import safe_repr
from yunikorn.framework.kinds import DOOR, KINDS, RESERVATION, RESOLVER, TOPOLOGY, PluginKind
from yunikorn.framework.offers import Offer, Option
from yunikorn.framework.options import FALSE, TRUE
from yunikorn.framework.registry import Registry
from yunikorn_lab.schema.key_texts import OTHER_KEYS, DescribedKey, described
from yunikorn_lab.schema.value_forms import BOOLEAN, TEXT, Schema, any_of, form_of, in_any_case, pattern

DRAFT = "http://json-schema.org/draft-07/schema#"
DISABLED = "plugins.disable"
NOTHING: Schema = {"type": "null"}


def json_schema(registry: Registry) -> Schema:
    """Return the schema of a queues.yaml that may name the plugins of `framework.registry`."""
    whole, *others = SECTIONS
    return {
        "$schema": DRAFT,
        "title": "queues.yaml of YuniKorn for Python",
        **_nullable(_section(whole, registry)),
        "definitions": {section.name: _section(section, registry) for section in others},
    }


_WEIGHTED: Schema = {
    "if": {"properties": {"type": {"const": WEIGHTED}}, "required": ["type"]},
    "then": {
        "propertyNames": {"enum": [name for name in NAMED_NODE_ORDER.known if name != "resourceweights"]},
        "required": ["scores"],
    },
}


def _section(section: ConfigSection, registry: Registry) -> Schema:
    texts = {one.key: one for one in described(section)}
    options = [key for key in texts if key.name.endswith(OPTION)]
    keys = [key for key in texts if key not in options]
    properties = {key.name: _key(texts[key], registry) for key in keys if not key.inside}
    for inner in dict.fromkeys(key.inside for key in keys if key.inside):
        below = {key.name: _key(texts[key], registry) for key in keys if key.inside == inner}
        properties[inner] = _nullable({"type": "object", "properties": below, "additionalProperties": False})
    for key in options:
        policy = next(each for each in keys if each.name == key.name.removesuffix(OPTION))
        properties |= _text_options(policy, registry)
    found: Schema = {"type": "object", "properties": properties}
    if section.options_of:
        offers = _referable(registry, section.options_of)
        known = tuple(properties)
        _add_options(properties, offers)
        found["allOf"] = [
            _if(section.chosen_by, _names(offer.kind, [offer]), offer, known) for offer in offers
        ]
        if "scores" in properties:
            found["allOf"].append(_WEIGHTED)
    takes_any = section.name in OTHER_KEYS and not section.options_of
    found["additionalProperties"] = _nullable(TEXT.schema) if takes_any else False
    required = [key.name for key in keys if texts[key].required]
    return {**found, "required": required} if required else found


# -- one key ------------------------------------------------------------------------------------------------


def _key(one: DescribedKey, registry: Registry) -> Schema:
    schema = _value(one.key, registry)
    said: Schema = {"description": _description(one), "examples": [yaml.safe_load(one.text.example)]}
    # Draft 7 ignores all keywords beside $ref, so a reference is wrapped in anyOf.
    return {**said, **(schema if one.required else _nullable(schema))}


def _description(one: DescribedKey) -> str:
    text = _plain_text(one.text.meaning)
    default = _plain_text(one.default).strip("`")
    default = "" if default in ("required", "none") else f" Default: {default}."
    ours = " Not available in YuniKorn 1.9." if one.key.ours else ""
    return f"{text[:1].upper()}{text[1:]}.{default}{ours}"


_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def _plain_text(markdown: str) -> str:
    """Return the text without links and without the escapes of tables."""
    return _LINK.sub(r"\1", markdown).replace("``", "`").replace("\\|", "|")


def _value(key: ConfigKey, registry: Registry) -> Schema:
    kind, many = key.value.plugins, key.value.many
    if key.value.section:
        one: Schema = {"$ref": f"#/definitions/{key.value.section}"}
        if key.value.section == "rule" and not many:
            return any_of(one, {"type": "array", "items": one, "minItems": 1, "maxItems": 1})
        return {"type": "array", "items": any_of(one, NOTHING)} if many else any_of(one)
    if key.path == DISABLED:
        return {"type": "array", "items": {"enum": [*registry.names_to_disable(), None]}}
    if kind is None:
        return dict(form_of(key.value).schema)
    offers = _referable(registry, kind)
    if many:
        return {
            "type": "array",
            "items": any_of(
                TEXT.schema if kind is TOPOLOGY else _names(kind, offers),
                _mapping("name", kind, offers),
                NOTHING,
            ),
        }
    if key.value.options:
        return any_of(_names(kind, offers), _mapping("name", kind, offers))
    if kind is RESOLVER:
        return _mapping("type", kind, offers)
    if kind is RESERVATION:
        return _mapping("policy", kind, offers)
    if kind is DOOR:
        return _door_options(key.name, offers)
    names = _names(kind, offers)
    return any_of(names, {"enum": list(kind.core_names)}) if key.name == "type" else names


def _nullable(schema: Mapping[str, Any]) -> Schema:
    """Return the schema extended by null, because a key without value counts as missing."""
    if isinstance(schema.get("type"), str) and "anyOf" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if set(schema) == {"anyOf"}:
        return {"anyOf": [*schema["anyOf"], NOTHING]}
    return {"anyOf": [schema, NOTHING]}


# -- plugins ------------------------------------------------------------------------------------------------


def _referable(registry: Registry, kind: PluginKind) -> list[Offer]:
    """Return the offers under the names that a configuration may use."""
    return [attrs.evolve(offer, name=registry.reference(offer)) for offer in registry.offers(kind)]


def _names(kind: PluginKind, offers: Sequence[Offer]) -> Schema:
    names: Schema = {"enum": [offer.name for offer in offers]}
    if not kind.ignore_case:
        return names
    return any_of(names, pattern("|".join(in_any_case(offer.name).replace(".", r"\.") for offer in offers)))


def _mapping(chosen_by: str, kind: PluginKind, offers: Sequence[Offer]) -> Schema:
    """Return the schema of a mapping that names a plugin and contains only its options."""
    names = _names(kind, offers)
    if kind is RESOLVER:
        names = any_of(names, {"enum": [*NO_RESOLVER, None]})
    optional = "False to go on without a plugin that cannot be used. Default: true."
    properties: dict[str, Any] = {
        chosen_by: {"description": f"The name of the {kind.title}.", **names},
        REQUIRED: {"description": optional, **_nullable(BOOLEAN.schema)},
    }
    known = [chosen_by, REQUIRED]
    if kind is RESOLVER:
        known.append("cache")
        properties["cache"] = {
            "description": "How long the groups of a user are remembered. Not available in YuniKorn 1.9.",
            **_nullable({"$ref": f"#/definitions/{RESOLVER_CACHE.name}"}),
        }
    _add_options(properties, offers)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": [] if kind in (RESOLVER, RESERVATION) else [chosen_by],
        "allOf": [_if(chosen_by, _names(kind, [offer]), offer, known) for offer in offers],
    }


def _door_options(name: str, offers: Sequence[Offer]) -> Schema:
    """Return the schema of the options of a plugin."""
    found = [one for offer in offers if offer.name == name for one in offer.options]
    properties = {
        one.name: {"description": f"{one.help} ({_typed(one)})", **_nullable(option_schema(one.annotation))}
        for one in found
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _if(chosen_by: str, name: Schema, offer: Offer, known: Sequence[str]) -> Schema:
    """Return the condition that a mapping with this plugin has its options only, and all required ones."""
    chosen: Schema = {"properties": {chosen_by: name}}
    if (chosen_by, offer.name) not in (("type", DEFAULT_ORDER), ("policy", DEFAULT_RESERVATIONS)):
        chosen["required"] = [chosen_by]
    options = {option.name: option_schema(option.annotation) for option in offer.options}
    own = {name: schema for name, schema in options.items() if name not in known}
    then: Schema = {"propertyNames": {"enum": list(dict.fromkeys([*known, *options]))}, "properties": own}
    required = [option.name for option in offer.options if option.required]
    return {"if": chosen, "then": {**then, "required": required} if required else then}


def _add_options(properties: dict[str, Any], offers: Sequence[Offer]) -> None:
    """Add the options of all plugins as keys; `_if` restricts them to the plugin that is named."""
    for offer in offers:
        for option in offer.options:
            schema = {"description": f"Option of {offer.name}: {_typed(option)}."}
            properties.setdefault(option.name, schema)


def _text_options(policy: ConfigKey, registry: Registry) -> dict[str, Schema]:
    """Return `POLICY.OPTION` for every option of every policy that the property may name."""
    assert policy.value.plugins is not None
    found: dict[str, list[tuple[Offer, Option]]] = {}
    for offer in _referable(registry, policy.value.plugins):
        for option in offer.options:
            found.setdefault(f"{policy.name}.{option.name}", []).append((offer, option))
    return {
        name: {
            "description": " ".join(f"Option of {offer.name}: {_typed(option)}." for offer, option in each),
            **_nullable(TEXT.schema),
        }
        for name, each in found.items()
    }


def _typed(option: Option) -> str:
    return (
        f"{option.type}, required"
        if option.required
        else f"{option.type}, default {safe_repr(option.default)}"
    )


# -- options of plugins, by their types ----------------------------------------------------------------------

_SCALARS: dict[Any, Mapping[str, Any]] = {
    str: TEXT.schema,
    Path: TEXT.schema,
    int: any_of({"type": "integer"}, pattern("[+-]?[0-9]+")),
    float: any_of({"type": "number"}, {"type": "string"}),
    bool: any_of({"type": "boolean"}, pattern("|".join(map(in_any_case, sorted(TRUE | FALSE))))),
    type(None): {"type": "null"},
}
_LISTS = (list, tuple, set, frozenset, abc.Sequence, abc.Collection, abc.Iterable, abc.Set)


def option_schema(annotation: Any, *, comma_lists: bool = False) -> Schema:
    """Return the schema of an option of this type; it accepts any value if the type is not documented.

    With `comma_lists` a list or mapping may also be a text, as in queue properties.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return option_schema(arguments[0], comma_lists=comma_lists)
    if origin in (typing.Union, types.UnionType):
        return any_of(*(option_schema(each, comma_lists=comma_lists) for each in arguments))
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    if (origin or annotation) in _LISTS:
        entries = [option_schema(each) for each in arguments if each is not Ellipsis] or [{}]
        found: Schema = {"type": "array", "items": any_of(*entries) if len(entries) > 1 else entries[0]}
        return any_of(found, TEXT.schema) if comma_lists else found
    if (origin or annotation) in (dict, abc.Mapping):
        inner = option_schema(arguments[1]) if arguments else {}
        mapping: Schema = {"type": "object", "additionalProperties": inner}
        return any_of(mapping, TEXT.schema) if comma_lists else mapping
    if attrs.has(annotation):
        return _class_schema(annotation)
    return {}


def _class_schema(cls: type[Any]) -> Schema:
    fields = [field for field in attrs.fields(attrs.resolve_types(cls)) if field.init]
    found: Schema = {
        "type": "object",
        "properties": {field.alias or field.name: option_schema(field.type) for field in fields},
        "additionalProperties": False,
    }
    required = [field.alias or field.name for field in fields if field.default is attrs.NOTHING]
    return {**found, "required": required} if required else found


_TABLE = re.compile(r"^<!-- (?:keys: ([a-z-]+)|options) -->$", re.MULTILINE)


def markdown(registry: Registry) -> str:
    """Return the page, including the options of the plugins in `framework.registry`."""
    page = resources.files("yunikorn_lab.schema").joinpath("reference_page.md").read_text("utf-8")
    sections = {section.name: section for section in SECTIONS}

    def table(place: re.Match[str]) -> str:
        return "\n".join(_keys(sections[place[1]]) if place[1] else _options(registry))

    return _TABLE.sub(table, page)


def _keys(section: ConfigSection) -> Iterator[str]:
    yield "| key | type | default | meaning | example |"
    yield "|---|---|---|---|---|"
    for one in described(section):
        name = f"`{one.key.path}`" + (" **ours**" if one.key.ours else "")
        words, text = form_of(one.key.value).words, one.text
        yield f"| {name} | {words} | {one.default} | {text.meaning} | `{text.example}` |"
    if section.name in OTHER_KEYS:
        yield f"| any other | | | {OTHER_KEYS[section.name]} | |"


def _options(registry: Registry) -> Iterator[str]:
    yield "| plugin | kind | option | type | default |"
    yield "|---|---|---|---|---|"
    for kind in KINDS:
        for offer in registry.offers(kind):
            for option in offer.options:
                default = "required" if option.required else f"`{_default(option)}`"
                cell = option.type.replace("|", "\\|")
                yield f"| `{offer.name}` | `{kind.id}` | `{option.name}` | `{cell}` | {default} |"


def _default(option: Option) -> str:
    value = option.default
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return "[" + ", ".join(map(str, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if value != "" else '""'
