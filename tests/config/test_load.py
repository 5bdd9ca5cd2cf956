"""Whole configurations: their parsed form, and all errors in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.config.load import DEFAULT_TEXT, Outcome, check_config, checksum_of, load_config
from yunikorn.config.queues_yaml import PluginRef, SchedulerConfig
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry

Check = Callable[[str], Outcome]
MINIMAL = "partitions: [{name: default, queues: []}]\n"


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing\n", "~", "null", "---\n", "{}", "partitions:", "partitions: []"]
)
def test_an_empty_text_has_no_partitions(config: Callable[[str], SchedulerConfig], text: str) -> None:
    assert config(text).partitions == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [("[]", "got a list"), ("hello", "got 'hello'"), ("- partitions", "got a list"), ("5", "got '5'")],
)
def test_text_must_be_a_mapping(check: Check, text: str, message: str) -> None:
    (problem,) = check(text).problems
    assert problem.message == f"expected a mapping with the key 'partitions', {message}"
    assert (problem.line, problem.column) == (1, 1)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("partition: []", "partition", "did you mean 'partitions'?"),
        ("Partitions: []", "Partitions", "did you mean 'partitions'?"),
        ("partitions: {}", "partitions", "expected a list, got a mapping"),
        ("partitions: [default]", "partitions[0]", "expected a mapping, got 'default'"),
        ("checksum: [a]", "checksum", "expected a text"),
        ("samehierarchy: maybe", "samehierarchy", "expected true or false"),
        ("events: [log]", "events", "expected a mapping"),
        ("events: {sink: []}", "events.sink", "did you mean 'sinks'?"),
        ("events: {sinks: log}", "events.sinks", "write [log]"),
        ("events: {sinks: [logg]}", "events.sinks[0]", "did you mean 'log'?"),
        ("events: {sinks: [{name: jsonl}]}", "events.sinks[0].path", "required"),
        ("plugins: {enable: []}", "plugins.enable", "known: disable"),
        ("plugins: {disable: [fifoo]}", "plugins.disable[0]", "did you mean 'fifo'?"),
        ("plugins: {disable: fifo}", "plugins.disable", "write [fifo]"),
        ("priorityclasses: [a]", "priorityclasses", "expected a mapping"),
        ("priorityclasses: {a: high}", "priorityclasses.a", "expected a whole number"),
        ("priorityclasses: {a: 2147483648}", "priorityclasses.a", "from -2147483648 to 2147483647"),
        ("priorityclasses: {a: }", "priorityclasses.a", "has no priority"),
        ("partitions: []\npartitions: []", "", "given twice, first in line 1"),
    ],
)
def test_invalid_top_level_keys(check: Check, text: str, path: str, message: str) -> None:
    (problem,) = check(text).problems
    assert problem.path == path
    assert message in problem.message
    assert problem.line > 0


def test_complete_configuration(config: Callable[[str], SchedulerConfig]) -> None:
    made = config(
        """
        checksum: abc
        events: {sinks: [log, {name: jsonl, path: events.jsonl}]}
        plugins: {disable: [tag, app-sort:stateaware]}
        priorityclasses: {high: 100, low: -100}
        samehierarchy: true
        partitions: [{name: default, queues: []}, {name: gpu, queues: []}]
        """
    )
    assert [partition.name for partition in made.partitions] == ["default", "gpu"]
    assert made.sinks == (PluginRef("log"), PluginRef("jsonl", {"path": "events.jsonl"}))
    assert made.disabled == ("tag", "app-sort:stateaware")
    assert made.priority_classes == {"high": 100, "low": -100}
    assert made.same_hierarchy is True


def test_disabled_plugins_cannot_be_named(check: Check) -> None:
    text = "plugins: {disable: [tag]}\npartitions: [{queues: [], placementrules: [{name: tag, value: x}]}]"
    (problem,) = check(text).problems
    assert problem.path == "partitions[0].placementrules[0].name"
    assert "is disabled by plugins.disable" in problem.message


@pytest.mark.parametrize("name", ["provided", "node-sort:fair", "queue-sort:fair", "fifo"])
def test_required_defaults_cannot_be_disabled(check: Check, name: str) -> None:
    (problem,) = check(f"plugins: {{disable: ['{name}']}}\n{MINIMAL}").problems
    assert "is disabled by plugins.disable" in problem.message
    assert problem.line == 2


def test_all_problems_are_reported_in_the_order_of_the_text(check: Check) -> None:
    outcome = check(
        """
        partitions:
          - name: default
            nodesortpolicy: {type: best}
            placementrules:
              - name: usr
              - name: fixed
                value: root.none
            queues:
              - name: root
                queues:
                  - name: a.b
                    resources:
                      guaranteed: {memory: 2G}
                      max: {memory: 1G, vcore: 1mm}
                  - name: c
                    limits:
                      - users: ["*", bob]
                        maxapplications: 0
          - name: DEFAULT
            colour: red
        """
    )
    assert [(problem.path, problem.line) for problem in outcome.problems] == [
        ("partitions[0].nodesortpolicy.type", 4),
        ("partitions[0].placementrules[0].name", 6),
        ("partitions[0].placementrules[1].value", 8),
        ("partitions[0].queues[0].queues[0].name", 12),
        ("partitions[0].queues[0].queues[0].resources.guaranteed.memory", 14),
        ("partitions[0].queues[0].queues[0].resources.max.vcore", 15),
        ("partitions[0].queues[0].queues[1].limits[0]", 18),
        ("partitions[0].queues[0].queues[1].limits[0].users[1]", 18),
        ("partitions[1].queues", 20),
        ("partitions[1].name", 20),
        ("partitions[1].colour", 21),
    ]


def test_problem_behind_an_alias_is_reported_for_every_use(check: Check) -> None:
    text = """
        partitions:
          - queues:
              - {name: a, resources: &r {max: {memory: 1x}}}
              - {name: b, resources: *r}
    """
    assert [(problem.path, problem.line) for problem in check(text).problems] == [
        ("partitions[0].queues[0].resources.max.memory", 4),
        ("partitions[0].queues[1].resources.max.memory", 4),
    ]


def test_unprintable_characters_are_escaped(check: Check) -> None:
    (problem,) = check('{"\\e[31m": 1}').problems
    assert problem.path == "\\x1b[31m"
    (problem,) = check('plugins: {disable: ["a\\nb"]}').problems
    assert "'a\\nb'" in problem.message


def test_merged_keys_are_used(config: Callable[[str], SchedulerConfig]) -> None:
    made = config(
        """
        partitions:
          - queues:
              - &a {name: a, maxapplications: 5, submitacl: "*"}
              - {<<: *a, name: b}
        """
    )
    assert [queue.max_applications for queue in made.partitions[0].root.queues] == [5, 5]


def nested(levels: int) -> str:
    tree = "{name: leaf}"
    for _ in range(levels):
        tree = f"{{name: q, queues: [{tree}]}}"
    return f"partitions: [{{queues: [{tree}]}}]"


def test_deep_trees_work_up_to_a_limit(check: Check, config: Callable[[str], SchedulerConfig]) -> None:
    assert len(list(config(nested(120)).partitions[0].root.walk())) == 122
    (problem,) = check(nested(10_000)).problems
    assert "nest too deeply" in problem.message


# -- loading, checksums, defaults ---------------------------------------------------------------------


def test_loading_raises_with_all_problems(registry: Registry) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config("partitions: [{nam: x}]", registry)
    assert len(refused.value.problems) == 2
    assert "partitions[0].nam (line 1, column 15): unknown key, did you mean 'name'?" in str(refused.value)


def test_loading_bytes_and_text_is_the_same(registry: Registry) -> None:
    assert load_config(MINIMAL.encode(), registry) == load_config(MINIMAL, registry)


def test_undecodable_bytes_are_one_problem(registry: Registry) -> None:
    (problem,) = check_config(b"partitions: \xff", registry).problems
    assert "not UTF-8 text" in problem.message


def test_checksum_excludes_the_checksum_line() -> None:
    assert checksum_of(MINIMAL) == hashlib.sha256(MINIMAL.encode()).hexdigest().upper()
    own = f"checksum: {checksum_of(MINIMAL)}"
    assert checksum_of(own + MINIMAL) == checksum_of(MINIMAL)
    assert checksum_of(own + MINIMAL + own) == checksum_of(MINIMAL)
    assert checksum_of("checksum: short\n" + MINIMAL) == checksum_of("\n" + MINIMAL)
    assert checksum_of(MINIMAL + "# a comment") != checksum_of(MINIMAL)


def test_the_checksum_is_in_the_configuration(config: Callable[[str], SchedulerConfig]) -> None:
    assert config(MINIMAL).checksum == checksum_of(MINIMAL)
    assert config(MINIMAL).text == MINIMAL


def test_the_default_configuration_is_valid(config: Callable[[str], SchedulerConfig]) -> None:
    (partition,) = config(DEFAULT_TEXT).partitions
    assert partition.name == "default"
    assert [(rule.name, rule.value, rule.create) for rule in partition.placement_rules] == [
        ("tag", "namespace", True)
    ]
    assert partition.root.submit_acl.everybody


# -- stricter than YuniKorn 1.9 ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("events: {}", "events"),
        ("plugins: {}", "plugins"),
        ("priorityclasses: {}", "priorityclasses"),
        ("samehierarchy: false", "samehierarchy"),
        ("partitions: [{queues: [], predicates: []}]", "partitions[0].predicates"),
        ("partitions: [{queues: [], nodesortpolicies: []}]", "partitions[0].nodesortpolicies"),
        ("partitions: [{queues: [{name: Root}]}]", "partitions[0].queues[0].name"),
        (
            "partitions: [{queues: [{name: a, properties: {queue.sort.policy: fair}}]}]",
            "partitions[0].queues[0].properties.queue.sort.policy",
        ),
        ("partitions: [{queues: [{name: a, submitacl: ' a b'}]}]", "partitions[0].queues[0].submitacl"),
    ],
)
def test_own_keys_are_problems_in_strict_mode(check: Check, text: str, path: str) -> None:
    outcome = check(text)
    assert outcome.valid
    assert [note.path for note in outcome.notes] == [path]
    assert not outcome.strictly().valid
    assert outcome.strictly().problems == outcome.notes


def test_file_of_1_9_is_valid_in_strict_mode(check: Check) -> None:
    outcome = check(MINIMAL)
    assert outcome.strictly() is outcome


# -- random input --------------------------------------------------------------------------------------

KEYS = st.sampled_from(
    [
        "partitions",
        "name",
        "queues",
        "resources",
        "guaranteed",
        "max",
        "memory",
        "vcore",
        "properties",
        "limits",
        "users",
        "groups",
        "parent",
        "maxresources",
        "maxapplications",
        "placementrules",
        "create",
        "filter",
        "type",
        "value",
        "childtemplate",
        "submitacl",
        "nodesortpolicy",
        "nodesortpolicies",
        "resourceweights",
        "events",
        "sinks",
        "plugins",
        "disable",
        "application.sort.policy",
        "application.sort.policy.x",
        "queue.sort.policy",
        "usergroupresolver",
        "predicates",
        "priorityclasses",
        "samehierarchy",
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**65),
    st.floats(),
    st.sampled_from(
        ["root", "a", "b.c", "*", "fair", "fifo", "fixed", "user", "tag", "1G", "10m", "allow", "root.a", "-"]
    ),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)


@given(TREES)
def test_any_tree_is_a_configuration_or_has_problems(tree: Any) -> None:
    outcome = check_config(yaml.safe_dump(tree), REGISTRY)
    assert outcome.valid is not bool(outcome.problems)
    assert all(problem.line > 0 and problem.message for problem in outcome.problems)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_any_partition_is_one_or_has_problems(tree: Any) -> None:
    outcome = check_config(yaml.safe_dump({"partitions": [{"name": "x", **tree}]}), REGISTRY)
    assert outcome.valid is not bool(outcome.problems)
    assert all(problem.path or "given twice" in problem.message for problem in outcome.problems)


REGISTRY = Registry.load(third_party=False)
