"""The JSON Schema for editors: valid configurations match, invalid ones do not, and keys are described."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from yunikorn.api import Application, AppSortPolicy, EventSink, Node, NodeSortPolicy, hookimpl
from yunikorn.config.load import check_config
from yunikorn.framework.registry import Registry
from yunikorn_lab.schema.json_schema import json_schema, option_schema

CHECKOUT = Path(__file__).parent.parent.parent
BUILTIN = Registry.load(third_party=False)
SCHEMA = json_schema(BUILTIN)
VALIDATOR = Draft7Validator(SCHEMA)

RICH = """\
partitions:
  - name: default
    placementrules:
      - name: User
        create: true
        filter: {type: deny, users: ["^test-"], groups: [guests]}
        parent: [{name: tag, value: namespace, create: true}]
      - name: fixed
        value: root.batch
    limits:
      - {limit: all, users: ["*"], maxresources: {memory: 250G, vcore: 1500m}}
    preemption: {enabled: yes, quotapreemptionenabled: false, shrunknodes: on}
    nodesortpolicy: {type: fair, resourceweights: {vcore: 4.0, memory: 1}}
    nodesortpolicies:
      - {name: packed, type: binpacking}
    usergroupresolver: {type: os}
    predicates: [node-selector, {name: taints, attribute: stains}]
    periods: {completing: 5s, reservation: never}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            adminacl: " operators"
            maxapplications: 10
            resources:
              guaranteed: {memory: 100Gi, vcore: 40}
              max: {memory: 400Gi, vcore: 160, nvidia.com/gpu: 4}
            properties:
              application.sort.policy: fair
              application.sort.priority: Disabled
              priority.offset: -5
              node.sort.policy: packed
              preemption.delay: 1m30s
              anything.else: 12
            limits:
              - {groups: [students, "*"], maxapplications: 2}
          - name: users
            parent: true
            childtemplate:
              maxapplications: 5
              resources: {max: {memory: 20Gi}}
              properties: {application.sort.policy: fifo}
events: {sinks: [log, {name: jsonl, path: events.jsonl}]}
plugins: {disable: ["app-sort:stateaware"]}
priorityclasses: {urgent: 1000, batch: -10}
samehierarchy: false
"""


def fits(text: str) -> list[str]:
    """Return the errors that the schema reports for a text."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


def documented() -> Iterator[Any]:
    """Return every whole configuration in the checkout: example files, and blocks of the documentation."""
    for file in sorted(CHECKOUT.glob("examples/**/queues*.yaml")):
        yield pytest.param(file.read_text("utf-8"), id=file.relative_to(CHECKOUT).as_posix())
    for page in sorted(CHECKOUT.glob("docs/**/*.md")):
        blocks = re.findall(r"^```yaml.*?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            if "partitions:" in block:
                yield pytest.param(block, id=f"{page.relative_to(CHECKOUT).as_posix()}-{number}")


@pytest.mark.parametrize("text", list(documented()))
def test_valid_configurations_of_the_checkout_match_the_schema(text: str) -> None:
    outcome = check_config(text, BUILTIN)
    if not outcome.problems and not outcome.warnings:
        assert fits(text) == []


def test_schema_is_valid_and_matches_a_rich_configuration() -> None:
    Draft7Validator.check_schema(SCHEMA)
    outcome = check_config(RICH, BUILTIN)
    assert (outcome.problems, outcome.warnings) == ((), ())
    assert fits(RICH) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("samehierarchy:", "samehierachy:"),
        ("samehierarchy: false", 'samehierarchy: "false"'),
        ("maxapplications: 10", "maxapplications: -1"),
        ("maxapplications: 10", "maxapplications: 1.5"),
        ("maxapplications: 10", 'maxapplications: "10"'),
        ("memory: 400Gi", "memory: 400GB"),
        ("memory: 400Gi", "memory: 400m"),
        ("memory: 400Gi", "memory: -1"),
        ("name: batch\n", "name: batch.day\n"),
        ("name: batch\n", "nam: batch\n"),
        ("create: true", 'create: "true"'),
        ("create: true", "create: maybe"),
        ("type: deny", "type: refuse"),
        ("name: User", "name: usr"),
        ("        value: root.batch\n", ""),
        ("        value: root.batch\n", "        valeu: root.batch\n"),
        ("type: fair", "type: fare"),
        ("vcore: 4.0", "vcore: -4.0"),
        ("nodesortpolicy: {type: fair, ", "nodesortpolicy: {type: fair, weights: {}, "),
        ("{name: packed, type: binpacking}", "{type: binpacking}"),
        ("attribute: stains", "attributes: stains"),
        ("completing: 5s", "completing: 5 s"),
        ("completing: 5s", "completing: never"),
        ("{name: jsonl, path: events.jsonl}", "jsonl2"),
        ("{name: jsonl, path: events.jsonl}", "{name: jsonl}"),
        ("urgent: 1000", "urgent: 10000000000"),
        ("app-sort:stateaware", "app-sort:stateawear"),
        ("application.sort.policy: fair", "application.sort.policy: Fair"),
        ("application.sort.priority: Disabled", "application.sort.priority: never"),
        ("preemption.delay: 1m30s", "preemption.delay: 90"),
        ("priority.offset: -5", "priority.offset: much"),
        ('users: ["*"]', "users: [9lives]"),
        ('groups: [students, "*"]', "groups: students"),
        ("        submitacl: '*'", "        submitacl: [ann]"),
        ('adminacl: " operators"', 'adminacl: "ann operators others"'),
        ("    queues:\n      - name: root", "    queus:\n      - name: root"),
        ("shrunknodes: on", "shrunknode: on"),
        ("parent: true\n", "parent: 1\n"),
        ("type: os", "type: os2"),
    ],
)
def test_schema_and_validate_find_the_same_errors(right: str, wrong: str) -> None:
    right = right.replace("'*'", '"*"')
    assert RICH.count(right) >= 1
    text = RICH.replace(right, wrong, 1)
    outcome = check_config(text, BUILTIN)
    assert outcome.problems or outcome.warnings
    assert fits(text)


# -- valid configurations match ----------------------------------------------------------------------------

POOL: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        7,
        2**70,
        1.5,
        "",
        " ",
        "*",
        "fair",
        "fifo",
        "default",
        "root",
        "root.batch",
    ),
    *("yes", "no", "5s", "0", "never", "10", "4Gi", "500m", "ann", "ann dev", "allow", "stopped", "enabled"),
    *(
        [],
        {},
        ["ann"],
        ["*"],
        {"name": "user"},
        [{"name": "x"}],
        {"vcore": 1},
        {"type": "binpacking"},
        "provided",
    ),
]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every value in a tree."""
    if path:
        yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in inner:
        yield from places(value, (*path, step))


WHOLE = yaml.safe_load(RICH)
EVERYWHERE = list(places(WHOLE))


@given(
    st.lists(
        st.tuples(st.sampled_from(EVERYWHERE), st.sampled_from([*POOL, "remove"])), min_size=1, max_size=2
    )
)
def test_every_valid_configuration_matches_the_schema(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    data = copy.deepcopy(WHOLE)
    for path, value in changes:
        holder = data
        try:
            for step in path[:-1]:
                holder = holder[step]
            if value == "remove":
                del holder[path[-1]]
            else:
                holder[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change removed the place
    text = yaml.safe_dump(data)
    outcome = check_config(text, BUILTIN)
    if not outcome.problems and not outcome.warnings:
        assert fits(text) == [], text


# -- third-party plugins -----------------------------------------------------------------------------------


@attrs.frozen
class Part:
    """An option with options."""

    size: int
    label: str = ""


@attrs.frozen
class Elaborate(EventSink):
    """A sink with an option of every type."""

    name = "elaborate"
    text: str
    number: int = 3
    share: float = 0.5
    flag: bool = False
    several: tuple[str, ...] = ()
    weights: dict[str, float] = attrs.field(factory=dict)
    part: Part | None = None

    def send(self, batch: object) -> None:
        """Drop the events."""


@attrs.frozen
class Oldest(AppSortPolicy):
    """By age."""

    name = "oldest"
    groups: list[str] = attrs.field(factory=list)

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted


@attrs.frozen
class Coldest(NodeSortPolicy):
    """By temperature."""

    name = "coldest"
    attribute: str

    def score(self, node: Node) -> float:
        """Return the temperature."""
        return float(node.attributes[self.attribute])


@pytest.fixture(scope="module")
def extended() -> Draft7Validator:
    """The schema with further plugins installed."""
    module: Any = ModuleType("more")
    for hook, cls in (
        ("yunikorn_event_sinks", Elaborate),
        ("yunikorn_app_sort_policies", Oldest),
        ("yunikorn_node_sort_policies", Coldest),
    ):
        exec(f"def {hook}():\n    return [cls]", scope := {"cls": cls})
        setattr(module, hook, hookimpl(scope[hook]))
    registry = Registry.load(third_party=False)
    assert registry.register(module, "more"), registry.broken
    return Draft7Validator(json_schema(registry))


def sinks(*entries: Any) -> dict[str, Any]:
    """Return a configuration with these sinks."""
    return {"events": {"sinks": list(entries)}}


@pytest.mark.parametrize(
    "options",
    [
        {"text": "a"},
        {"text": 1, "number": "7", "share": 1, "flag": "Yes"},
        {"text": "a", "several": ["x", 1], "weights": {"a": 1.5}, "part": {"size": 1}},
        {"text": "a", "part": None},
    ],
)
def test_plugin_options_are_checked_by_type(options: dict[str, Any], extended: Draft7Validator) -> None:
    assert list(extended.iter_errors(sinks({"name": "elaborate", **options}))) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"text": "a", "number": "seven"},
        {"text": "a", "number": 1.5},
        {"text": "a", "flag": "perhaps"},
        {"text": "a", "several": "x"},
        {"text": "a", "weights": ["a"]},
        {"text": "a", "part": {"size": "x"}},
        {"text": "a", "part": {"label": "x"}},
        {"text": "a", "part": {"size": 1, "colour": "x"}},
        {"text": "a", "level": "INFO"},
        {"text": None},
    ],
)
def test_invalid_options_are_marked(options: dict[str, Any], extended: Draft7Validator) -> None:
    assert list(extended.iter_errors(sinks({"name": "elaborate", **options})))


def test_third_party_policies_are_completed_in_properties_and_node_orders(extended: Draft7Validator) -> None:
    properties = extended.schema["definitions"]["properties"]["properties"]  # type: ignore[index]
    assert "oldest" in str(properties["application.sort.policy"])
    assert properties["application.sort.policy.groups"]["description"].startswith(
        "Option of oldest: list[str]"
    )
    root = {"name": "root", "properties": {"application.sort.policy": "oldest"}}
    partition: dict[str, Any] = {
        "queues": [root],
        "nodesortpolicy": {"type": "coldest", "attribute": "inlet"},
    }
    assert list(extended.iter_errors({"partitions": [partition]})) == []
    partition["nodesortpolicy"] = {"type": "coldest"}
    assert list(extended.iter_errors({"partitions": [partition]}))


def test_undocumented_type_accepts_anything() -> None:
    assert option_schema(complex) == {}


def test_every_key_is_explained() -> None:
    def keys(schema: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(schema, dict):
            for name, inner in schema.get("properties", {}).items():
                yield name, inner
                yield from keys(inner)

    sections = [SCHEMA, *SCHEMA["definitions"].values()]
    silent = {name for section in sections for name, inner in keys(section) if "description" not in inner}
    assert silent <= {"events", "plugins", "preemption", "resources", "filter"}
