"""Limits of users and groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.config.load import Outcome
from yunikorn.config.queues_yaml import LimitConfig, PartitionConfig, QueueConfig
from yunikorn.resources import Resource

Check = Callable[[str], Outcome]
BELOW = "partitions[0].queues[0].queues[0]"


def queue(*limits: str, rest: str = "") -> str:
    return f"- {{name: a, limits: [{', '.join(limits)}]{rest}}}"


@pytest.mark.parametrize(
    "limits",
    [
        ["{users: [bob], maxapplications: 1}"],
        ["{users: [bob], maxresources: {memory: 1}}"],
        ["{users: [bob], maxresources: {memory: 1, vcore: 0}}"],
        ["{users: [bob], maxresources: {}, maxapplications: 1}"],
        ["{groups: [dev], maxapplications: 1}"],
        ["{users: [bob], groups: [dev, ops], maxapplications: 1}"],
        ["{users: ['*'], maxapplications: 1}"],
        ["{users: [bob, '*'], maxapplications: 1}"],
        ["{users: [bob], maxapplications: 1}", "{users: ['*'], maxapplications: 2}"],
        ["{groups: [dev, '*'], maxapplications: 1}"],
        ["{groups: [dev], maxapplications: 1}", "{groups: ['*'], maxapplications: 2}"],
        ["{users: ['_a:b#c/d_e.f@g-h$', A1], maxapplications: 1}"],
        ["{groups: ['_a:b_c.d-e', A1], maxapplications: 1}"],
        ["{users: [~, bob], maxapplications: 1}"],
        ["~"],
    ],
)
def test_valid_limits(check_queues: Check, limits: list[str]) -> None:
    assert check_queues(queue(*limits)).problems == ()


@pytest.mark.parametrize(
    ("limits", "path", "message"),
    [
        (["{maxapplications: 1}"], "[0]", "applies to no user or group"),
        (["{users: [], groups: [], maxapplications: 1}"], "[0]", "applies to no user or group"),
        (["{users: [~], maxapplications: 1}"], "[0]", "applies to no user or group"),
        (["{users: bob, maxapplications: 1}"], "[0].users", "expected a list, got 'bob': write [bob]"),
        (["{users: [[bob]], maxapplications: 1}"], "[0].users[0]", "expected a text, got a list"),
        (["{users: [''], maxapplications: 1}"], "[0].users[0]", "'' is not a valid user name"),
        (["{users: [1bob], maxapplications: 1}"], "[0].users[0]", "'1bob' is not a valid user name"),
        (["{users: [b$b], maxapplications: 1}"], "[0].users[0]", "is not a valid user name"),
        (["{users: ['b b'], maxapplications: 1}"], "[0].users[0]", "is not a valid user name"),
        (["{groups: [a@b], maxapplications: 1}"], "[0].groups[0]", "'a@b' is not a valid group name"),
        (["{groups: [a$], maxapplications: 1}"], "[0].groups[0]", "is not a valid group name"),
        (["{users: [bob, bob], maxapplications: 1}"], "[0].users[1]", "already limited"),
        (
            ["{users: [bob], maxapplications: 1}", "{users: [bob], maxapplications: 2}"],
            "[1].users[0]",
            "already limited",
        ),
        (
            ["{groups: [dev], maxapplications: 1}", "{groups: [dev], maxapplications: 2}"],
            "[1].groups[0]",
            "already limited",
        ),
        (["{users: ['*', bob], maxapplications: 1}"], "[0].users[1]", "put * last"),
        (
            ["{users: ['*'], maxapplications: 1}", "{users: [bob], maxapplications: 2}"],
            "[1].users[0]",
            "put * last",
        ),
        (["{groups: ['*'], maxapplications: 1}"], "[0].groups[0]", "* cannot be the only group"),
        (["{users: [bob]}"], "[0]", "the limit has no effect"),
        (["{users: [bob], maxapplications: 0}"], "[0]", "the limit has no effect"),
        (["{users: [bob], maxresources: {memory: 0}}"], "[0].maxresources", "must be above 0"),
        (["{users: [bob], maxresources: {}}"], "[0]", "the limit has no effect"),
        (["{users: [bob], maxresources: {memory: 1x}}"], "[0].maxresources.memory", "unknown suffix"),
        (["{users: [bob], maxapplications: x}"], "[0].maxapplications", "expected a whole number"),
        (["{user: [bob], groups: [dev], maxapplications: 1}"], "[0].user", "did you mean 'users'?"),
    ],
)
def test_invalid_limits(check_queues: Check, limits: list[str], path: str, message: str) -> None:
    (problem,) = check_queues(queue(*limits)).problems
    assert problem.path == f"{BELOW}.limits{path}"
    assert message in problem.message


def test_a_limit_stays_within_its_queue(check_queues: Check) -> None:
    limit = "{users: [bob], maxapplications: 6, maxresources: {memory: 6, vcore: 9}}"
    rest = ", maxapplications: 5, resources: {max: {memory: 5}}"
    problems = check_queues(queue(limit, rest=rest)).problems
    assert [(problem.path, problem.message) for problem in problems] == [
        (
            f"{BELOW}.limits[0].maxapplications",
            "6 is more than the 5 applications that queue root.a may run",
        ),
        (f"{BELOW}.limits[0].maxresources.memory", "memory 6 is more than the max of queue root.a, 5"),
    ]


def test_limits_of_root_are_not_bounded_by_a_quota(
    partition: Callable[[str], PartitionConfig],
) -> None:
    limits = partition("limits: [{limit: x, users: [bob], maxresources: {memory: 5G, vcore: 0}}]").root.limits
    assert limits == (LimitConfig("x", ("bob",), (), Resource(memory=5 * 10**9, vcore=0), 0),)


def test_limit_with_all_keys(queues: Callable[[str], dict[str, QueueConfig]]) -> None:
    text = "{limit: few, users: [bob, '*'], groups: [dev], maxresources: {vcore: 1}, maxapplications: 3}"
    assert queues(queue(text))["root.a"].limits == (
        LimitConfig("few", ("bob", "*"), ("dev",), Resource(vcore=1000), 3),
    )


# -- partition and root -------------------------------------------------------------------------------

LIMIT = "{limit: x, users: [bob], maxresources: {memory: 1G}, maxapplications: 2}"
SAME_AMOUNT = LIMIT.replace("1G", "1000M")


def test_the_limits_of_a_partition_are_those_of_its_root(partition: Callable[[str], PartitionConfig]) -> None:
    alone = partition(f"limits: [{LIMIT}]").root.limits
    both = partition(f"limits: [{LIMIT}]\nqueues: [{{name: root, limits: [{LIMIT}]}}]").root.limits
    inner = partition(f"queues: [{{name: root, limits: [{LIMIT}]}}]").root.limits
    assert alone == both == inner
    assert len(alone) == 1


@pytest.mark.parametrize(
    "other", [SAME_AMOUNT, LIMIT.replace("limit: x", "limit: y"), f"{LIMIT}, {LIMIT}".replace("bob", "b", 1)]
)
def test_different_limits_for_partition_and_root_are_rejected(check_partition: Check, other: str) -> None:
    (problem,) = check_partition(f"limits: [{LIMIT}]\nqueues: [{{name: root, limits: [{other}]}}]").problems
    assert problem.path == "partitions[0].limits"
    assert "differ" in problem.message


# -- through the hierarchy ----------------------------------------------------------------------------


def nested(*levels: str) -> str:
    """Return a partition with one queue per level, each with one limit."""
    text = ""
    for level, limit in reversed(list(enumerate(levels))):
        below = f", queues: [{text}]" if text else ""
        limits = f", limits: [{limit}]" if limit else ""
        text = f"{{name: {'root' if level == 0 else f'q{level}'}{limits}{below}}}"
    return f"queues: [{text}]"


def paths_of(outcome: Outcome) -> list[str]:
    return [problem.path.replace("partitions[0].", "") for problem in outcome.problems]


DEEP = "queues[0].queues[0].queues[0].limits[0]"


@pytest.mark.parametrize(
    ("levels", "refused"),
    [
        (["{users: [bob], maxresources: {memory: 5}}", "{users: [bob], maxresources: {memory: 5}}"], ""),
        (["{users: [bob], maxresources: {memory: 5}}", "{users: [bob], maxresources: {vcore: 9}}"], ""),
        (
            ["{users: [bob], maxresources: {memory: 5}}", "{users: [bob], maxresources: {memory: 6}}"],
            "queues[0].queues[0].limits[0].maxresources.memory",
        ),
        # Over a queue without a limit.
        (
            ["{users: [bob], maxresources: {memory: 5}}", "", "{users: [bob], maxresources: {memory: 6}}"],
            f"{DEEP}.maxresources.memory",
        ),
        # The smaller of both applies below, type by type.
        (
            [
                "{users: [bob], maxresources: {memory: 5}}",
                "{users: [bob], maxresources: {vcore: 1}}",
                "{users: [bob], maxresources: {memory: 6}}",
            ],
            f"{DEEP}.maxresources.memory",
        ),
        # * applies to all users without a limit of their own above.
        (
            ["{users: ['*'], maxresources: {memory: 5}}", "{users: [bob], maxresources: {memory: 6}}"],
            "queues[0].queues[0].limits[0].maxresources.memory",
        ),
        (
            ["{users: [bob, '*'], maxresources: {memory: 5}}", "{users: ['*'], maxresources: {memory: 6}}"],
            "queues[0].queues[0].limits[0].maxresources.memory",
        ),
        # The limit of a named user does not apply to *.
        (["{users: [bob], maxresources: {memory: 5}}", "{users: ['*'], maxresources: {memory: 6}}"], ""),
        # Once a user has an own limit below *, that limit is inherited.
        (
            [
                "{users: ['*'], maxresources: {memory: 5}}",
                "{users: [bob], maxresources: {vcore: 1}}",
                "{users: [bob], maxresources: {memory: 6}}",
            ],
            "",
        ),
        # Users and groups are different things.
        (["{users: [x], maxresources: {memory: 5}}", "{groups: [x], maxresources: {memory: 6}}"], ""),
        (
            ["{groups: [x], maxresources: {memory: 5}}", "{groups: [x], maxresources: {memory: 6}}"],
            "queues[0].queues[0].limits[0].maxresources.memory",
        ),
    ],
)
def test_resource_limits_do_not_exceed_those_above(
    check_partition: Check, levels: list[str], refused: str
) -> None:
    assert paths_of(check_partition(nested(*levels))) == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("levels", "refused"),
    [
        (["{users: [bob], maxapplications: 5}", "{users: [bob], maxapplications: 5}"], ""),
        (
            ["{users: [bob], maxapplications: 5}", "{users: [bob], maxapplications: 6}"],
            "queues[0].queues[0].limits[0].maxapplications",
        ),
        (
            ["{users: [bob], maxapplications: 5}", "{users: [bob], maxresources: {memory: 1}}"],
            "queues[0].queues[0].limits[0].maxapplications",
        ),
        # No number above means no bound.
        (["{users: [bob], maxresources: {memory: 1}}", "{users: [bob], maxapplications: 6}"], ""),
        (
            ["{users: [bob], maxapplications: 5}", "", "{users: [bob], maxapplications: 6}"],
            f"{DEEP}.maxapplications",
        ),
        (
            ["{users: ['*'], maxapplications: 5}", "{users: [bob], maxapplications: 6}"],
            "queues[0].queues[0].limits[0].maxapplications",
        ),
        (["{users: [bob], maxapplications: 5}", "{users: ['*'], maxapplications: 6}"], ""),
        (
            ["{groups: [dev, '*'], maxapplications: 5}", "{groups: [ops], maxapplications: 6}"],
            "queues[0].queues[0].limits[0].maxapplications",
        ),
    ],
)
def test_application_limits_do_not_exceed_those_above(
    check_partition: Check, levels: list[str], refused: str
) -> None:
    assert paths_of(check_partition(nested(*levels))) == ([refused] if refused else [])
