"""The description of the keys is complete and true: every attribute, every default, every example."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import yaml

from yunikorn.config.keys import OPTION, ConfigKey, ConfigSection
from yunikorn.config.load import check_config
from yunikorn.config.queues_yaml import SECTIONS
from yunikorn.framework.registry import Registry
from yunikorn.model.context import Timeouts
from yunikorn_commands.plugin_files import trusting
from yunikorn_lab.schema.key_texts import KEY_TEXTS, DescribedKey, described

BY_NAME = {section.name: section for section in SECTIONS}
NOT_WRITTEN = {"top": {"text"}, "rule": {"options"}, "score": {"options"}}
"""Attributes that no key of ours sets."""
EVERY_KEY = [
    (section, one) for section in SECTIONS for one in described(section) if OPTION not in one.key.name
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_field_of_the_checked_classes_is_described(section: ConfigSection) -> None:
    attributes = {field.name for field in attrs.fields(section.cls) if field.init}
    # A key inside another mapping may set an attribute of that mapping's own class.
    described = {key.field or key.inside for key in section.keys}
    assert attributes - NOT_WRITTEN.get(section.name, set()) == described - {""}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_page_lists_every_key_once(section: ConfigSection) -> None:
    assert sorted(KEY_TEXTS[section.name]) == sorted({key.path for key in section.keys})


def test_documented_defaults_are_those_of_the_classes() -> None:
    (cleanup,) = (one for one in described(BY_NAME["periods"]) if one.key.name == "cleanup")
    assert (Timeouts().cleanup, cleanup.default) == (10 * 10**9, "`10s`")
    assert {one.default for _, one in EVERY_KEY if one.required} == {"required"}


def test_own_keys_are_marked() -> None:
    assert BY_NAME["top"].own == ("events", "plugins", "history", "priorityclasses", "samehierarchy")
    assert BY_NAME["partition"].own == (
        *(
            "reservations",
            "predicates",
            "submitpolicies",
            "admission",
            "permits",
            "topology",
            "gangplacement",
            "estimators",
            "nodesortpolicies",
            "periods",
        ),
    )
    assert [key.path for key in BY_NAME["partition"].keys if key.ours and key.inside] == [
        "preemption.shrunknodes",
        "preemption.policy",
    ]


def around(section: ConfigSection, value: dict[str, Any]) -> dict[str, Any]:
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
            partition["nodesortpolicy"] = {"type": "weighted", **value} if "scores" in value else value
        case "score":
            scores = [{"name": "fair", **value}]
            partition["nodesortpolicy"] = {"type": "weighted", "scores": scores}
        case "named-node-sort":
            value = {"type": "weighted", **value} if "scores" in value else value
            partition["nodesortpolicies"] = (
                [*packed, {"name": "other", **value}] if "name" not in value else [value]
            )
    return whole


def entry(key: ConfigKey, example: str) -> dict[str, Any]:
    """Return the key with an example."""
    value = yaml.safe_load(example)
    return {key.inside: {key.name: value}} if key.inside else {key.name: value}


PLUGIN = """
from yunikorn.api import NodeSortPolicy, hookimpl

class Fair(NodeSortPolicy):
    name = "fair"

    def score(self, node):
        return 0.0

@hookimpl
def yunikorn_node_sort_policies():
    return [Fair]
"""
"""A plugin for the examples that need one."""


@pytest.mark.parametrize(
    ("section", "one"), EVERY_KEY, ids=[f"{section.name}-{one.key.path}" for section, one in EVERY_KEY]
)
def test_every_example_is_valid_in_its_context(
    section: ConfigSection, one: DescribedKey, registry: Registry, tmp_path: Path
) -> None:
    key = one.key
    if key.path == "plugins.load":
        (tmp_path / "mine.py").write_text(PLUGIN, "utf-8")
        registry = trusting(registry, tmp_path)
    elif key.path == "plugins.override":
        registry = Registry.load(third_party=False)
        names: dict[str, object] = {}
        exec(PLUGIN, names)
        assert registry.register(SimpleNamespace(**names), "mine", "my-plugins", "1.0")
    text = yaml.safe_dump(around(section, entry(key, one.text.example)), default_flow_style=False)
    if section.name == "queue" and key.name == "childtemplate":
        text = text.replace("childtemplate:", "parent: true\n      childtemplate:")
    outcome = check_config(text, registry)
    assert outcome.problems == (), text
    assert outcome.warnings == (), text
