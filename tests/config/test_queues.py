"""The queue tree: structure, names, ACLs, templates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.config.acl import EVERYBODY
from yunikorn.config.load import Outcome
from yunikorn.config.queues_yaml import PartitionConfig, QueueConfig, TemplateConfig
from yunikorn.resources import Resource

Check = Callable[[str], Outcome]
Partition = Callable[[str], PartitionConfig]
Queues = Callable[[str], dict[str, QueueConfig]]


def paths(partition: PartitionConfig) -> list[str]:
    return [path for path, _ in partition.root.walk()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("queues: []", ["root"]),
        ("queues: [~]", ["root"]),
        ("queues: [{name: root}]", ["root"]),
        ("queues: [{name: ROOT}]", ["root"]),
        ("queues: [{name: root, queues: [{name: a}]}]", ["root", "root.a"]),
        ("queues: [{name: a}]", ["root", "root.a"]),
        ("queues: [{name: a}, {name: B}]", ["root", "root.a", "root.b"]),
        ("queues: [{name: root}, {name: a}]", ["root", "root.root", "root.a"]),
        ("queues: [{name: root, queues: ~}]", ["root"]),
    ],
)
def test_a_root_is_put_above_queues_without_one(partition: Partition, text: str, expected: list[str]) -> None:
    made = partition(text)
    assert paths(made) == expected
    assert made.root.parent


@pytest.mark.parametrize("text", ["queues:", "queues: ~", "limits: []"])
def test_a_partition_needs_a_list_of_queues(check: Check, text: str) -> None:
    (problem,) = check(f"partitions:\n- {text}").problems
    assert problem.path == "partitions[0].queues"
    assert "required" in problem.message


@pytest.mark.parametrize(
    "name",
    ["a", "A1", "a" * 64, "a_b", "a:b", "a#b", "a/b", "a@b", "a-b", "1", "-", "no"],
)
def test_valid_queue_names(queues: Queues, name: str) -> None:
    assert f"root.{name.lower()}" in queues(f"- name: '{name}'")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("''", "got ''"),
        ("a.b", "dots separate levels"),
        ("a b", "got 'a b'"),
        ("ä", "got 'ä'"),
        ("a" * 65, "1 to 64"),
        ("a$", "got 'a$'"),
        ("'@recovery@'", "reserved for a queue"),
        ("'@RECOVERY@'", "reserved for a queue"),
        ("~", "required"),
        ("[a]", "expected a text, got a list"),
    ],
)
def test_invalid_queue_names(check_queues: Check, name: str, hint: str) -> None:
    problems = check_queues(f"- name: {name}").problems
    assert {problem.path for problem in problems} == {"partitions[0].queues[0].queues[0].name"}
    assert hint in problems[0].message


def test_missing_name_is_reported_at_the_position_of_its_queue(check_queues: Check) -> None:
    (problem,) = check_queues("- name: a\n- maxapplications: 1").problems
    assert (problem.path, problem.line, problem.column) == (
        "partitions[0].queues[0].queues[1].name",
        7,
        9,
    )


def test_yaml_keywords_are_valid_names(queues: Queues) -> None:
    assert list(queues("[{name: no}, {name: 12}, {name: 0x1F}]")) == [
        "root",
        "root.no",
        "root.12",
        "root.0x1f",
    ]


def test_sibling_names_are_unique_ignoring_case(check_queues: Check) -> None:
    (problem,) = check_queues("- name: a\n- name: b\n  queues: [{name: a}]\n- name: A").problems
    assert problem.path == "partitions[0].queues[0].queues[2].name"
    assert "root.a is defined twice, first in line 6" in problem.message


def test_queue_is_a_parent_by_its_children_or_by_key(queues: Queues) -> None:
    made = queues("[{name: a}, {name: b, parent: true}, {name: c, parent: false, queues: [{name: d}]}]")
    assert {path: queue.parent for path, queue in made.items()} == {
        "root": True,
        "root.a": False,
        "root.b": True,
        "root.c": True,
        "root.c.d": False,
    }


@pytest.mark.parametrize("key", ["guaranteed", "max"])
@pytest.mark.parametrize("value", ["{memory: 1}", "{}"])
def test_root_has_no_resources_of_its_own(check_partition: Check, key: str, value: str) -> None:
    (problem,) = check_partition(f"queues: [{{name: root, resources: {{{key}: {value}}}}}]").problems
    assert problem.path == f"partitions[0].queues[0].resources.{key}"


@pytest.mark.parametrize("resources", ["{}", "~", "{max: ~}", "{guaranteed: }"])
def test_root_accepts_empty_resources(partition: Partition, resources: str) -> None:
    assert partition(f"queues: [{{name: root, resources: {resources}}}]").root.max is None


def test_queue_with_all_keys(queues: Queues) -> None:
    queue = queues(
        """
        - name: Prod
          maxapplications: 12
          resources:
            guaranteed: {memory: 1Gi, vcore: 500m}
            max: {memory: 2Gi, vcore: 2, nvidia.com/gpu: 0}
          properties: {a: 1, b: no, c: ~}
          adminacl: " ops"
          submitacl: "*"
        """
    )["root.prod"]
    assert queue.max_applications == 12
    assert queue.guaranteed == Resource(memory=2**30, vcore=500)
    assert queue.max == Resource({"memory": 2**31, "vcore": 2000, "nvidia.com/gpu": 0})
    assert queue.properties == {"a": "1", "b": "no", "c": ""}
    assert queue.admin_acl.allows("x", ["ops"])
    assert queue.submit_acl == EVERYBODY


def test_resources_of_zeros_are_ignored_with_a_warning(check_queues: Check, queues: Queues) -> None:
    text = "- {name: a, resources: {max: {memory: 0}, guaranteed: {vcore: 0}}}"
    assert (queues(text)["root.a"].max, queues(text)["root.a"].guaranteed) == (None, None)
    assert [warning.path for warning in check_queues(text).warnings] == [
        "partitions[0].queues[0].queues[0].resources.max",
        "partitions[0].queues[0].queues[0].resources.guaranteed",
    ]


@pytest.mark.parametrize(
    ("queue", "path", "message"),
    [
        ("{name: a, maxApplications: 1}", "maxApplications", "did you mean 'maxapplications'?"),
        ("{name: a, resources: {min: {}}}", "resources.min", "known: guaranteed, max"),
        ("{name: a, resources: 5}", "resources", "expected a mapping, got '5'"),
        ("{name: a, resources: {max: [1]}}", "resources.max", "expected a mapping, got a list"),
        ("{name: a, resources: {max: {memory: }}}", "resources.max.memory", "the quantity is missing"),
        ("{name: a, resources: {max: {memory: 1x}}}", "resources.max.memory", "unknown suffix 'x'"),
        (
            "{name: a, resources: {max: {memory: {}}}}",
            "resources.max.memory",
            "expected a text, got a mapping",
        ),
        ("{name: a, resources: {guaranteed: {gpu: 500m}}}", "resources.guaranteed.gpu", "vcore only"),
        ("{name: a, properties: [a]}", "properties", "expected a mapping, got a list"),
        ("{name: a, properties: {x: [a]}}", "properties.x", "expected a text, got a list"),
        ("{name: a, submitacl: a b c}", "submitacl", "got 3 lists"),
        ("{name: a, adminacl: [a]}", "adminacl", "expected a text, got a list"),
        ("{name: a, queues: {name: b}}", "queues", "expected a list, got a mapping"),
        ("{name: a, queues: [b]}", "queues[0]", "expected a mapping, got 'b'"),
        ("{name: a, queues: [~, b]}", "queues[1]", "expected a mapping, got 'b'"),
        ("{name: a, limits: 1}", "limits", "expected a list, got '1'"),
        ("{name: a, parent: maybe}", "parent", "expected true or false, got 'maybe'"),
        ("{name: a, childtemplate: {queues: []}}", "childtemplate.queues", "unknown key"),
        ("{name: a, childtemplate: []}", "childtemplate", "expected a mapping"),
        (
            "{name: a, parent: true, childtemplate: {resources: {max: {memory: 1.5}}}}",
            "childtemplate.resources.max.memory",
            "no fraction",
        ),
    ],
)
def test_invalid_queues(check_queues: Check, queue: str, path: str, message: str) -> None:
    (problem,) = check_queues(f"- {queue}").problems
    assert problem.path == f"partitions[0].queues[0].queues[0].{path}"
    assert message in problem.message
    assert problem.line == 6


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in ("true", "True", "TRUE", "yes", "Yes", "on", "ON", "y", '"yes"')]
    + [(text, False) for text in ("false", "False", "no", "off", "N", "'off'", "~", "")],
)
def test_valid_booleans(queues: Queues, text: str, value: bool) -> None:
    assert queues(f"- {{name: a, parent: {text}}}")["root.a"].parent is value


@pytest.mark.parametrize("text", ["'true'", '"false"', "yEs", "1", "0", "tRue", "[true]"])
def test_invalid_booleans(check_queues: Check, text: str) -> None:
    (problem,) = check_queues(f"- {{name: a, parent: {text}}}").problems
    assert "expected true or false" in problem.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("7", 7),
        ("+7", 7),
        ("1_000", 1000),
        ("1e3", 1000),
        ("7.0", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("0b11", 3),
        ("18446744073709551615", 2**64 - 1),
        ("~", 0),
    ],
)
def test_valid_counts(queues: Queues, text: str, value: int) -> None:
    assert queues(f"- {{name: a, maxapplications: {text}}}")["root.a"].max_applications == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1", "from 0 to"),
        ("18446744073709551616", "from 0 to"),
        ("9" * 5000, "from 0 to"),
        ("1e400", "expected a whole number"),
        ("1.5", "expected a whole number"),
        (".inf", "expected a whole number"),
        ("ten", "expected a whole number"),
        ("'7'", "remove the quotes"),
        ("017", "leading zeros mean octal"),
        ("[1]", "got a list"),
    ],
)
def test_invalid_counts(check_queues: Check, text: str, message: str) -> None:
    (problem,) = check_queues(f"- {{name: a, maxapplications: {text}}}").problems
    assert message in problem.message
    assert len(problem.message) < 200


def test_ineffective_acl_names_are_a_warning(check_queues: Check) -> None:
    outcome = check_queues("- {name: a, submitacl: 'alice,ns:sa'}")
    assert outcome.valid
    assert [warning.path for warning in outcome.warnings] == ["partitions[0].queues[0].queues[0].submitacl"]


@pytest.mark.parametrize("acl", ["a  b", " a b ", "   ", " a b"])
def test_surplus_blanks_in_an_acl_are_accepted(check_queues: Check, acl: str) -> None:
    assert check_queues(f"- {{name: a, submitacl: '{acl}'}}").problems == ()


# -- templates ----------------------------------------------------------------------------------------


def test_a_child_template(queues: Queues) -> None:
    template = queues(
        """
        - name: a
          parent: true
          childtemplate:
            maxapplications: 5
            properties: {x: y, empty: '', '': z}
            resources:
              guaranteed: {memory: 1G}
              max: {memory: 0}
        """
    )["root.a"].child_template
    assert template == TemplateConfig(5, {"x": "y"}, Resource(memory=10**9), None)


@pytest.mark.parametrize(
    "template", ["{}", "{maxapplications: 0}", "{properties: {x: ''}}", "{resources: {max: {memory: ''}}}"]
)
def test_empty_template_is_none(queues: Queues, template: str) -> None:
    assert queues(f"- {{name: a, parent: true, childtemplate: {template}}}")["root.a"].child_template is None


def test_template_of_zeros_is_kept(queues: Queues) -> None:
    made = queues("- {name: a, parent: true, childtemplate: {resources: {max: {memory: 0}}}}")
    assert made["root.a"].child_template == TemplateConfig()


def test_a_template_may_be_larger_than_its_queue(check_queues: Check) -> None:
    text = (
        "{name: a, parent: true, maxapplications: 1, resources: {max: {memory: 1}}, childtemplate: TEMPLATE}"
    )
    template = "{maxapplications: 2, resources: {max: {memory: 2}}}"
    assert check_queues("- " + text.replace("TEMPLATE", template)).problems == ()


def test_the_template_of_a_leaf_has_no_effect(check_queues: Check, queues: Queues) -> None:
    text = "- {name: a, childtemplate: {maxapplications: 1}}"
    assert queues(text)["root.a"].child_template is None
    assert "no effect" in check_queues(text).warnings[0].message
