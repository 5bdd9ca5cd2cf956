"""Consistency of guarantees, quotas and application counts in the queue tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.config.load import Outcome

Check = Callable[[str], Outcome]
BELOW = "partitions[0].queues[0].queues[0]"


@pytest.mark.parametrize(
    "text",
    [
        # A guarantee up to the max, and of a type that the max lacks.
        "{name: a, resources: {guaranteed: {memory: 10, gpu: 4}, max: {memory: 10}}}",
        # Siblings may have more max together than their parent.
        "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, resources: {max: {memory: 10}}},"
        " {name: c, resources: {max: {memory: 10}}}]}",
        # A type that the parent does not limit.
        "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, resources: {max: {vcore: 99}}}]}",
        # Guarantees below that just fill the one above.
        "{name: a, resources: {guaranteed: {memory: 10}}, queues: [{name: b, resources: {guaranteed: "
        "{memory: 4}}}, {name: c, resources: {guaranteed: {memory: 6, vcore: 1}}}]}",
        # No guarantee above.
        "{name: a, queues: [{name: b, resources: {guaranteed: {memory: 4}}}]}",
        # A queue with a guarantee counts with its own, not with those below it.
        "{name: a, resources: {max: {memory: 5}}, queues: [{name: b, resources: {guaranteed: {memory: 5}},"
        " queues: [{name: c, resources: {guaranteed: {memory: 1}}}]}]}",
    ],
)
def test_valid_quotas(check_queues: Check, text: str) -> None:
    assert check_queues(f"- {text}").problems == ()


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (
            "{name: a, resources: {guaranteed: {memory: 11}, max: {memory: 10}}}",
            "resources.guaranteed.memory",
            "the guaranteed memory 11 is more than the max of the queue, 10",
        ),
        (
            "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, resources: {max: {memory: 11}}}]}",
            "queues[0].resources.max.memory",
            "the max memory 11 is more than the 10 that the queues above allow",
        ),
        # Over a queue without a max.
        (
            "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, queues: [{name: c, resources: "
            "{max: {memory: 11}}}]}]}",
            "queues[0].queues[0].resources.max.memory",
            "more than the 10",
        ),
        # Over the max of a queue between, which is lower than the one at the top.
        (
            "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, resources: {max: {memory: 5}}, "
            "queues: [{name: c, resources: {max: {memory: 6}}}]}]}",
            "queues[0].queues[0].resources.max.memory",
            "the max memory 6 is more than the 5 that the queues above allow",
        ),
        # A max of zeros only is no quota, yet it applies here.
        (
            "{name: a, resources: {max: {memory: 0}}, queues: [{name: b, resources: {max: {memory: 1}}}]}",
            "queues[0].resources.max.memory",
            "more than the 0",
        ),
        (
            "{name: a, resources: {guaranteed: {memory: 10}}, queues: [{name: b, resources: {guaranteed: "
            "{memory: 6}}}, {name: c, resources: {guaranteed: {memory: 5}}}]}",
            "resources.guaranteed.memory",
            "guaranteed memory 11 in total, more than this queue, 10",
        ),
        # A grandparent's guarantee covers the grandchildren of a queue without one.
        (
            "{name: a, resources: {guaranteed: {memory: 10}}, queues: [{name: b, queues: [{name: c, "
            "resources: {guaranteed: {memory: 11}}}]}]}",
            "resources.guaranteed.memory",
            "guaranteed memory 11 in total",
        ),
        (
            "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, resources: {guaranteed: "
            "{memory: 6}}}, {name: c, resources: {guaranteed: {memory: 5}}}]}",
            "resources.max.memory",
            "guaranteed memory 11 in total, more than the max, 10",
        ),
        # Exceeding the max of a queue above is reported once: at the queue whose children exceed it.
        (
            "{name: a, resources: {max: {memory: 10}}, queues: [{name: b, queues: [{name: c, resources: "
            "{guaranteed: {memory: 11}}}]}]}",
            "queues[0]",
            "guaranteed memory 11 in total, more than the max, 10",
        ),
    ],
)
def test_invalid_quotas(check_queues: Check, text: str, path: str, message: str) -> None:
    (problem,) = check_queues(f"- {text}").problems
    assert problem.path == f"{BELOW}.{path}"
    assert message in problem.message


def test_amounts_have_units(check_queues: Check) -> None:
    inner = "{name: b, resources: {guaranteed: {memory: 6Gi, vcore: 1500m}}}"
    text = f"- {{name: a, resources: {{guaranteed: {{vcore: 1}}, max: {{memory: 4Gi}}}}, queues: [{inner}]}}"
    assert {problem.message for problem in check_queues(text).problems} == {
        "the queues below are guaranteed vcore 1500m in total, more than this queue, 1",
        "the queues below are guaranteed memory 6Gi in total, more than the max, 4Gi",
    }


def test_every_resource_type_is_reported(check_queues: Check) -> None:
    guaranteed, most = "{memory: 3, vcore: 2, gpu: 1}", "{memory: 2, vcore: 1, gpu: 1}"
    text = f"{{name: a, resources: {{guaranteed: {guaranteed}, max: {most}}}}}"
    assert [problem.path for problem in check_queues(f"- {text}").problems] == [
        f"{BELOW}.resources.guaranteed.memory",
        f"{BELOW}.resources.guaranteed.vcore",
    ]


def test_unreadable_values_cause_no_further_problems(check_queues: Check) -> None:
    below = "{name: b, maxapplications: y}"
    text = f"{{name: a, resources: {{max: {{memory: x}}}}, maxapplications: 1, queues: [{below}]}}"
    assert [problem.path for problem in check_queues(f"- {text}").problems] == [
        f"{BELOW}.resources.max.memory",
        f"{BELOW}.queues[0].maxapplications",
    ]


@pytest.mark.parametrize(
    ("root", "middle", "leaf", "refused"),
    [
        (0, 0, 0, []),
        (0, 0, 5, []),
        (0, 5, 5, []),
        (5, 5, 5, []),
        (5, 4, 3, []),
        (0, 5, 0, ["queues[0]"]),
        (0, 5, 6, ["queues[0]"]),
        (5, 0, 0, [""]),
        (5, 0, 9, [""]),
        (5, 6, 6, [""]),
        (5, 6, 7, ["", "queues[0]"]),
    ],
)
def test_maxapplications(
    check_partition: Check, root: int, middle: int, leaf: int, refused: list[str]
) -> None:
    text = (
        f"queues: [{{name: root, maxapplications: {root}, queues: [{{name: a, maxapplications: {middle}, "
        f"queues: [{{name: b, maxapplications: {leaf}}}]}}]}}]"
    )
    expected = [f"{BELOW}.{queue}.maxapplications".replace("..", ".") for queue in refused]
    assert [problem.path for problem in check_partition(text).problems] == expected


def test_missing_maxapplications_is_rejected(check_partition: Check) -> None:
    text = "queues: [{name: root, maxapplications: 5, queues: [{name: a}]}]"
    (problem,) = check_partition(text).problems
    assert problem.path == f"{BELOW}.maxapplications"
    assert "may run 5 applications: expected 1 to 5 here, got 0" in problem.message
