"""JSON Schema of queues.yaml, for completion, descriptions and validation in editors.

Every file without findings of `yunikorn validate` matches the schema. The reverse does not hold, because
constraints on the whole file are not part of the schema. The schema includes the plugins of a registry, with
their options. It uses draft 7, which has the best support in editors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from yunikorn.config.node_sorts import DEFAULT as DEFAULT_ORDER
from yunikorn.config.partitions import NO_RESOLVER
from yunikorn.framework.kinds import RESOLVER, Kind
from yunikorn.framework.offers import Offer, Option
from yunikorn.framework.registry import Registry
from yunikorn.reference.key_sections import SECTIONS
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.option_schemas import option_schema
from yunikorn.reference.values import TEXT, Schema, any_of, in_any_case, pattern
from yunikorn.text import plain_text

DRAFT = "http://json-schema.org/draft-07/schema#"
OPTION = ".OPTION"
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


def _section(section: KeySection, registry: Registry) -> Schema:
    direct = [key for key in section.keys if not key.inside and not key.name.endswith(OPTION)]
    properties = {key.name: _key(section, key, registry) for key in direct}
    for inner in section.inner():
        keys = [key for key in section.keys if key.inside == inner]
        below = {key.name: _key(section, key, registry) for key in keys}
        properties[inner] = _nullable({"type": "object", "properties": below, "additionalProperties": False})
    for key in section.keys:
        if key.name.endswith(OPTION):
            policy = next(each for each in direct if each.name == key.name.removesuffix(OPTION))
            properties |= _text_options(policy, registry)
    found: Schema = {"type": "object", "properties": properties}
    if section.options_of:
        offers = registry.offers(section.options_of)
        known = tuple(properties)
        _add_options(properties, offers)
        found["allOf"] = [_chosen(section, offer, known) for offer in offers]
    found["additionalProperties"] = _nullable(TEXT.schema) if _takes_any(section) else False
    required = [key.name for key in section.keys if key.required]
    return {**found, "required": required} if required else found


def _takes_any(section: KeySection) -> bool:
    return bool(section.open_to) and section.options_of is None


# -- one key ------------------------------------------------------------------------------------------------


def _key(section: KeySection, key: Key, registry: Registry) -> Schema:
    schema = _value(key, registry)
    described: Schema = {"description": _described(section, key)}
    if key.example:
        described["examples"] = [yaml.safe_load(key.example)]
    # Draft 7 ignores all keywords beside $ref, so a reference is wrapped in anyOf.
    return {**described, **(schema if key.required else _nullable(schema))}


def _described(section: KeySection, key: Key) -> str:
    text = plain_text(key.meaning)
    default = plain_text(section.default_of(key)).strip("`")
    ours = "" if not key.ours else " Not available in YuniKorn 1.9."
    if default in ("required", "none"):
        return f"{text[:1].upper()}{text[1:]}.{ours}"
    return f"{text[:1].upper()}{text[1:]}. Default: {default}.{ours}"


def _value(key: Key, registry: Registry) -> Schema:
    if key.section:
        one: Schema = {"$ref": f"#/definitions/{key.section}"}
        if key.section == "rule" and not key.many:
            return any_of(one, {"type": "array", "items": one, "minItems": 1, "maxItems": 1})
        return {"type": "array", "items": any_of(one, NOTHING)} if key.many else any_of(one)
    if key.path == DISABLED:
        return {"type": "array", "items": {"enum": [*registry.names_to_disable(), None]}}
    if key.plugins is None:
        return dict(key.holds.schema)
    offers = registry.offers(key.plugins)
    if key.many:
        entry = any_of(_names(key.plugins, offers), _mapping("name", key.plugins, offers), NOTHING)
        return {"type": "array", "items": entry}
    if key.plugins is RESOLVER:
        return _mapping("type", key.plugins, offers)
    return _names(key.plugins, offers)


def _nullable(schema: Mapping[str, Any]) -> Schema:
    """Return the schema extended by null, because a key without value counts as missing."""
    if isinstance(schema.get("type"), str) and "anyOf" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if set(schema) == {"anyOf"}:
        return {"anyOf": [*schema["anyOf"], NOTHING]}
    return {"anyOf": [schema, NOTHING]}


# -- plugins ------------------------------------------------------------------------------------------------


def _names(kind: Kind, offers: Sequence[Offer]) -> Schema:
    names: Schema = {"enum": [offer.name for offer in offers]}
    if not kind.ignore_case:
        return names
    return any_of(names, pattern("|".join(in_any_case(offer.name).replace(".", r"\.") for offer in offers)))


def _mapping(chosen_by: str, kind: Kind, offers: Sequence[Offer]) -> Schema:
    """Return the schema of a mapping that names a plugin and contains only its options."""
    names = _names(kind, offers)
    if kind is RESOLVER:
        names = any_of(names, {"enum": [*NO_RESOLVER, None]})
    properties: dict[str, Any] = {chosen_by: {"description": f"The name of the {kind.title}.", **names}}
    _add_options(properties, offers)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": [] if kind is RESOLVER else [chosen_by],
        "allOf": [_if(chosen_by, _names(kind, [offer]), offer, (chosen_by,)) for offer in offers],
    }


def _chosen(section: KeySection, offer: Offer, known: tuple[str, ...]) -> Schema:
    return _if(section.chosen_by, _names(offer.kind, [offer]), offer, known)


def _if(chosen_by: str, name: Schema, offer: Offer, known: Sequence[str]) -> Schema:
    """Return the condition that a mapping with this plugin has its options only, and all required ones."""
    chosen: Schema = {"properties": {chosen_by: name}}
    if chosen_by != "type" or offer.name != DEFAULT_ORDER:
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
            told = {"description": f"Option of {offer.name}: {_typed(option)}."}
            properties.setdefault(option.name, told)


def _text_options(policy: Key, registry: Registry) -> dict[str, Schema]:
    """Return `POLICY.OPTION` for every option of every policy that the property may name."""
    assert policy.plugins is not None
    found: dict[str, list[tuple[Offer, Option]]] = {}
    for offer in registry.offers(policy.plugins):
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
    return f"{option.type}, required" if option.required else f"{option.type}, default {option.default!r}"
