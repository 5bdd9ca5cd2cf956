"""The reference of the configuration is complete and true: every key, every field, every example."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import yaml

from yunikorn.config import limits, load, partitions, properties, queues, rules
from yunikorn.config.load import check_config
from yunikorn.config.periods import FIELDS
from yunikorn.config.schema import PluginRef
from yunikorn.framework.registry import Registry
from yunikorn.model.context import Timeouts
from yunikorn.reference.key_sections import SECTIONS
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.top_level import OF_THE_WHOLE_SCHEDULER, PERIODS, TOP

BY_NAME = {section.name: section for section in SECTIONS}
READ: dict[str, set[str]] = {
    "top": set(load.KEYS),
    "partition": set(partitions.KEYS),
    "periods": set(FIELDS),
    "queue": set(queues.KEYS),
    "properties": set(properties.KNOWN),
    "limit": set(limits.KEYS),
    "template": set(queues.TEMPLATE_KEYS),
    "rule": {*rules.KEYS, rules.VALUE},
    "node-sort": {"type", "resourceweights"},
    "named-node-sort": {"name", "type", "resourceweights"},
}
"""Keys that each reader accepts."""
NOT_WRITTEN = {"top": {"text"}, "periods": set(OF_THE_WHOLE_SCHEDULER)}
"""Fields that no key sets."""
EVERY_KEY = [
    (section, key) for section in SECTIONS for key in section.keys if not key.name.endswith("OPTION")
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_exactly_the_keys_that_are_read_are_described(section: KeySection) -> None:
    described = {key.inside or key.name for key in section.keys if not key.name.endswith(".OPTION")}
    assert described == READ[section.name]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_field_of_the_checked_classes_is_described(section: KeySection) -> None:
    fields = {field.name for field in attrs.fields(section.cls) if field.init}
    options = {"options"} if section.options_of else set()
    described = {key.field for key in section.keys if key.field} | options
    assert fields - NOT_WRITTEN.get(section.name, set()) == described


def test_documented_defaults_are_those_of_the_classes() -> None:
    (cleanup,) = (key for key in PERIODS.keys if key.name == "cleanup")
    assert (Timeouts().cleanup, PERIODS.default_of(cleanup)) == (10 * 10**9, "`10s`")
    assert {section.default_of(key) for section, key in EVERY_KEY if key.required} == {"required"}


def test_own_keys_are_marked() -> None:
    wanted = {*load.OWN_KEYS, *partitions.OWN_KEYS, partitions.SHRUNK_NODES}
    for name in ("top", "partition"):
        marked = {key.inside or key.name for key in BY_NAME[name].keys if key.ours}
        assert marked - {"preemption"} == wanted & READ[name]


def around(section: KeySection, value: dict[str, Any]) -> dict[str, Any]:
    """Return a whole configuration that has `value` where `section` describes it."""
    batch: dict[str, Any] = {"name": "batch"}
    root: dict[str, Any] = {"name": "root", "submitacl": "*", "queues": [batch, {"name": "default"}]}
    packed = [{"name": "packed", "type": "binpacking"}]
    partition: dict[str, Any] = {"name": "default", "queues": [root], "nodesortpolicies": packed}
    whole: dict[str, Any] = {"partitions": [partition]}
    match section.name:
        case "top":
            whole |= value
        case "partition":
            partition |= value
        case "periods":
            partition["periods"] = value
        case "queue":
            batch |= value
        case "properties":
            batch["properties"] = value
        case "limit":
            batch["limits"] = [{"users": ["x"], "maxapplications": 1, **value}]
        case "template":
            batch |= {"parent": True, "childtemplate": value}
        case "rule":
            partition["placementrules"] = [{"name": "provided", **value}]
        case "node-sort":
            partition["nodesortpolicy"] = value
        case "named-node-sort":
            partition["nodesortpolicies"] = (
                [*packed, {"name": "other", **value}] if "name" not in value else [value]
            )
    return whole


def entry(key: Key) -> dict[str, Any]:
    """Return the key with its example."""
    value = yaml.safe_load(key.example)
    return {key.inside: {key.name: value}} if key.inside else {key.name: value}


@pytest.mark.parametrize(
    ("section", "key"), EVERY_KEY, ids=[f"{section.name}-{key.path}" for section, key in EVERY_KEY]
)
def test_every_example_is_valid_in_its_context(section: KeySection, key: Key, registry: Registry) -> None:
    text = yaml.safe_dump(around(section, entry(key)), default_flow_style=False)
    if section.name == "queue" and key.name == "childtemplate":
        text = text.replace("childtemplate:", "parent: true\n      childtemplate:")
    outcome = check_config(text, registry)
    assert outcome.problems == (), text
    assert outcome.warnings == (), text


def test_top_level_description_comes_first() -> None:
    assert SECTIONS[0] is TOP
    assert {section.name for section in SECTIONS} == set(READ)
    assert BY_NAME["node-sort"].cls is PluginRef
