"""Placement rules, their filters and fixed paths (docs/decisions/0003 to 0006)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.config.filters import FilterConfig
from yunikorn.config.load import Outcome
from yunikorn.config.queues_yaml import PartitionConfig, RuleConfig

Check = Callable[[str], Outcome]
Partition = Callable[[str], PartitionConfig]

QUEUES = """
queues:
- name: root
  queues:
  - name: Leaf
  - name: empty
    parent: true
  - name: full
    queues:
    - name: leaf
"""


def rules(*texts: str) -> str:
    return "placementrules:\n" + "".join(f"- {text}\n" for text in texts) + QUEUES


def test_rule_with_all_keys(partition: Partition) -> None:
    made = partition(
        rules(
            "{name: Tag, value: namespace, create: true, filter: {type: deny, users: [bob], groups: [a, b]},"
            " parent: {name: USER, create: false}}",
            "{name: provided}",
        )
    )
    assert made.placement_rules == (
        RuleConfig(
            name="tag",
            create=True,
            filter=FilterConfig(False, ("bob",), ("a", "b")),
            parent=RuleConfig("user"),
            value="namespace",
        ),
        RuleConfig("provided"),
    )


def test_empty_rules_are_none(partition: Partition) -> None:
    assert partition(QUEUES).placement_rules == ()
    assert partition("placementrules: []" + QUEUES).placement_rules == ()


def test_a_list_of_one_parent_is_one_parent(partition: Partition, check_partition: Check) -> None:
    text = rules("{name: user, parent: [{name: tag, value: x}]}")
    assert partition(text).placement_rules[0].parent == RuleConfig("tag", value="x")
    (note,) = check_partition(text).notes
    assert note.path == "partitions[0].placementrules[0].parent"


def test_every_rule_may_have_a_value(partition: Partition) -> None:
    assert partition(rules("{name: user, value: x}")).placement_rules[0].value == "x"


@pytest.mark.parametrize(
    ("rule", "path", "message"),
    [
        ("{create: true}", "name", "required"),
        ("{name: usr}", "name", "no placement rule is called 'usr', did you mean 'user'?"),
        ("{name: recovery}", "name", "always the last rule"),
        (
            "{name: user, create: yes}",
            "create",
            "expected true or false, got 'yes' (YuniKorn 1.9 reads it as true)",
        ),
        ("{name: user, create: 'Off'}", "create", "got 'Off' (YuniKorn 1.9 reads it as false)"),
        ("{name: user, create: 'true'}", "create", "remove them"),
        ("{name: user, parent: []}", "parent", "a list of one"),
        ("{name: user, parent: [{name: user}, {name: user}]}", "parent", "a list of one"),
        ("{name: user, parent: fixed}", "parent", "expected a mapping, got 'fixed'"),
        ("{name: user, parent: {name: nope}}", "parent.name", "no placement rule is called 'nope'"),
        ("{name: user, parent: [{name: nope}]}", "parent[0].name", "no placement rule is called 'nope'"),
        ("{name: user, filtre: {}}", "filtre", "did you mean 'filter'?"),
        ("{name: user, queue: root}", "queue", "unknown key"),
        ("{name: fixed}", "value", "required"),
        ("{name: fixed, create: true}", "value", "required"),
        ("{name: fixed, value: ''}", "value", "required"),
        ("{name: tag, create: true}", "value", "required"),
        ("{name: user, filter: [bob]}", "filter", "expected a mapping, got a list"),
        ("{name: user, filter: {type: permit}}", "filter.type", "expected allow or deny, got 'permit'"),
        ("{name: user, filter: {user: [bob]}}", "filter.user", "did you mean 'users'?"),
        ("{name: user, filter: {users: bob}}", "filter.users", "write [bob]"),
    ],
)
def test_invalid_rules(check_partition: Check, rule: str, path: str, message: str) -> None:
    (problem,) = check_partition(rules("{name: provided}", rule)).problems
    assert problem.path == f"partitions[0].placementrules[1].{path}"
    assert message in problem.message
    assert problem.line == 5


# -- filters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["allow", "deny", "''", "Allow", "DENY", "~"])
def test_filter_types(partition: Partition, kind: str) -> None:
    made = partition(rules(f"{{name: user, filter: {{type: {kind}}}}}")).placement_rules[0].filter
    assert made == FilterConfig(kind.lower() != "deny")


def test_name_that_yunikorn_reads_as_an_expression_is_noted(check_partition: Check) -> None:
    (note,) = check_partition(rules("{name: user, filter: {users: [svc$]}}")).notes
    assert "YuniKorn 1.9 treats 'svc$' as a regular expression" in note.message
    assert note.path == "partitions[0].placementrules[0].filter.users[0]"
    several = check_partition(rules("{name: user, filter: {users: [svc$, ann], groups: [g$]}}"))
    assert not several.notes


def test_deny_in_capitals_is_accepted_and_noted(check_partition: Check) -> None:
    (note,) = check_partition(rules("{name: user, filter: {type: Deny, users: [bob]}}")).notes
    assert "treats 'Deny' as allow" in note.message


@pytest.mark.parametrize(
    "entry", ["username*regexp", "user@name@", "username$$", "bob", "svc$", "^a$", "dev.*"]
)
def test_valid_single_users(check_partition: Check, entry: str) -> None:
    assert check_partition(rules(f"{{name: user, filter: {{users: ['{entry}']}}}}")).problems == ()


@pytest.mark.parametrize("entry", ["", "username rejected", "rejected!name", "*", "(a", "a(?=b)", "a{1001}"])
def test_invalid_single_users(check_partition: Check, entry: str) -> None:
    (problem,) = check_partition(rules(f"{{name: user, filter: {{users: ['{entry}']}}}}")).problems
    assert problem.path == "partitions[0].placementrules[0].filter.users[0]"


@pytest.mark.parametrize("entry", ["group@name", "a b", "[z-a]"])
def test_invalid_single_groups(check_partition: Check, entry: str) -> None:
    (problem,) = check_partition(rules(f"{{name: user, filter: {{groups: ['{entry}']}}}}")).problems
    assert problem.path == "partitions[0].placementrules[0].filter.groups[0]"


def test_multiple_entries_are_not_checked_but_dropped_ones_are_reported(check_partition: Check) -> None:
    outcome = check_partition(rules("{name: user, filter: {users: [bob, dev*, 'a b'], groups: [x, a@b]}}"))
    assert outcome.problems == ()
    assert [(warning.path.rpartition("filter.")[2], warning.message) for warning in outcome.warnings] == [
        ("users[1]", "'dev*' is not a valid user name and is ignored: an expression must be the only entry"),
        ("users[2]", "'a b' is not a valid user name and is ignored"),
        ("groups[1]", "'a@b' is not a valid group name and is ignored"),
    ]


# -- fixed paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "{name: fixed, value: root.leaf}",
        "{name: fixed, value: leaf}",
        "{name: fixed, value: ROOT.Leaf}",
        "{name: Fixed, value: root.full.leaf}",
        "{name: fixed, value: full.leaf}",
        "{name: fixed, value: root.new, create: true}",
        "{name: fixed, value: root.empty.new.er, create: true}",
        "{name: fixed, value: leaf, parent: {name: fixed, value: root.full}}",
        "{name: fixed, value: new, create: true, parent: {name: fixed, value: root.new}}",
        "{name: user, parent: {name: fixed, value: root.empty}}",
        "{name: user, parent: {name: fixed, value: root}}",
        # Children make a parent, with or without the key `parent`.
        "{name: user, parent: {name: fixed, value: root.full}}",
        "{name: user, create: true, parent: {name: fixed, value: root.new}}",
        # A path that starts with another rule is known only when an application comes.
        "{name: fixed, value: anything, parent: {name: user}}",
        "{name: fixed, value: rootbeer, create: true}",
        "{name: tag, value: x, parent: {name: user, parent: {name: fixed, value: full}}}",
    ],
)
def test_valid_fixed_paths(check_partition: Check, rule: str) -> None:
    assert check_partition(rules(rule)).problems == ()


@pytest.mark.parametrize(
    ("rule", "path", "message"),
    [
        ("{name: fixed, value: root.new}", "value", "queue root.new does not exist"),
        ("{name: fixed, value: rootbeer}", "value", "queue root.rootbeer does not exist"),
        ("{name: fixed, value: root.empty.new}", "value", "queue root.empty.new does not exist"),
        ("{name: fixed, value: root.empty}", "value", "queue root.empty is a parent queue"),
        ("{name: fixed, value: root.full, create: true}", "value", "queue root.full is a parent queue"),
        ("{name: fixed, value: root}", "value", "queue root is a parent queue"),
        ("{name: fixed, value: root.leaf.x, create: true}", "value", "queue root.leaf is a leaf"),
        ("{name: fixed, value: 'bad name', create: true}", "value", "'bad name' in it"),
        ("{name: fixed, value: a..b, create: true}", "value", "an empty level in it"),
        ("{name: fixed, value: 'a.', create: true}", "value", "an empty level in it"),
        (
            "{name: user, create: true, parent: {name: fixed, value: root.leaf}}",
            "parent.value",
            "queue root.leaf is a leaf, but the rule creates queues below it",
        ),
        ("{name: user, parent: {name: fixed, value: root.new}}", "parent.value", "root.new does not exist"),
        (
            "{name: fixed, value: x, create: true, parent: {name: fixed, value: root.leaf}}",
            "value",
            "queue root.leaf is a leaf: there can be no queue 'x' below it",
        ),
        ("{name: fixed, value: root.leaf, parent: {name: user}}", "value", "'root.leaf' is a full path"),
        ("{name: fixed, value: Root, parent: {name: user}}", "value", "'Root' is a full path"),
        (
            "{name: user, parent: {name: fixed, value: root.leaf, parent: {name: tag, value: x}}}",
            "parent.value",
            "'root.leaf' is a full path",
        ),
    ],
)
def test_invalid_fixed_paths(check_partition: Check, rule: str, path: str, message: str) -> None:
    (problem,) = check_partition(rules(rule)).problems
    assert problem.path == f"partitions[0].placementrules[0].{path}"
    assert message in problem.message
