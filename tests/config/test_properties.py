"""Queue properties: inheritance, typed values, and errors (docs/decisions/archive/0009)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import pytest

from yunikorn.api import Application, AppSortPolicy, hookimpl
from yunikorn.config.load import Outcome, check_config
from yunikorn.config.properties import DEFAULTS, QueueSettings, effective_properties, read_settings
from yunikorn.framework.registry import Registry

Check = Callable[[str], Outcome]
SECOND = 1_000_000_000
BELOW = "partitions[0].queues[0].queues[0]"


# -- inheritance --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "own", "expected"),
    [
        ({}, {}, {}),
        ({"x": "1"}, {}, {"x": "1"}),
        ({"x": "1", "y": "1"}, {"x": "2"}, {"x": "2", "y": "1"}),
        ({"priority.policy": "fence"}, {}, {"priority.policy": "default"}),
        ({"priority.offset": "5"}, {}, {"priority.offset": "0"}),
        ({"priority.offset": "5"}, {"priority.offset": "7"}, {"priority.offset": "7"}),
        ({"preemption.policy": "fence"}, {}, {"preemption.policy": "default"}),
        ({"preemption.policy": "disabled"}, {}, {"preemption.policy": "disabled"}),
        ({"preemption.policy": "Disabled"}, {}, {"preemption.policy": "Disabled"}),
        ({"application.sort.policy": "fair"}, {}, {"application.sort.policy": "fair"}),
        ({"application.sort.priority": "disabled"}, {}, {"application.sort.priority": "disabled"}),
        ({"preemption.delay": "10s"}, {}, {"preemption.delay": "10s"}),
        ({"quota.preemption.delay": "10s"}, {}, {"quota.preemption.delay": "10s"}),
        ({"queue.state": "stopped"}, {}, {}),
    ],
)
def test_properties_are_inherited_from_the_parent(
    parent: dict[str, str], own: dict[str, str], expected: dict[str, str]
) -> None:
    assert effective_properties(parent, own) == expected


@pytest.mark.parametrize("policy", ["application.sort.policy", "queue.sort.policy"])
def test_policy_options_are_inherited_only_with_the_policy(policy: str) -> None:
    parent = {policy: "a", f"{policy}.x": "1", f"{policy}.y": "1", "application.sort.priority": "disabled"}
    assert effective_properties(parent, {f"{policy}.x": "2"}) == {**parent, f"{policy}.x": "2"}
    assert effective_properties(parent, {policy: "b", f"{policy}.z": "3"}) == {
        policy: "b",
        f"{policy}.z": "3",
        "application.sort.priority": "disabled",
    }


# -- typed values --------------------------------------------------------------------------------------


def test_defaults_apply_without_properties() -> None:
    assert read_settings({}) == (DEFAULTS, [])
    assert QueueSettings() == QueueSettings(
        app_sort="fifo",
        queue_sort="fair",
        node_sort="",
        sort_priority=True,
        priority_fence=False,
        priority_offset=0,
        preemption_policy="default",
        preemption_delay=30 * SECOND,
        quota_preemption_delay=0,
        backoff_count=0,
        backoff_delay=30 * SECOND,
        stopped=False,
    )


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("application.sort.policy", "fair", "app_sort", "fair"),
        ("application.sort.policy", "", "app_sort", "fifo"),
        ("queue.sort.policy", "mine", "queue_sort", "mine"),
        ("queue.sort.policy", "", "queue_sort", "fair"),
        ("node.sort.policy", "packed", "node_sort", "packed"),
        ("application.sort.priority", "disabled", "sort_priority", False),
        ("application.sort.priority", "DISABLED", "sort_priority", False),
        ("application.sort.priority", "Enabled", "sort_priority", True),
        ("priority.policy", "fence", "priority_fence", True),
        ("priority.policy", "Fence", "priority_fence", True),
        ("priority.policy", "default", "priority_fence", False),
        ("priority.policy", "", "priority_fence", False),
        ("priority.offset", "-2147483648", "priority_offset", -(2**31)),
        ("priority.offset", "+5", "priority_offset", 5),
        ("priority.offset", "007", "priority_offset", 7),
        ("preemption.policy", "FENCE", "preemption_policy", "fence"),
        ("preemption.policy", "disabled", "preemption_policy", "disabled"),
        ("preemption.policy", "", "preemption_policy", "default"),
        ("preemption.delay", "1m30s", "preemption_delay", 90 * SECOND),
        ("quota.preemption.delay", "500ms", "quota_preemption_delay", SECOND // 2),
        ("quota.preemption.delay", "0", "quota_preemption_delay", 0),
        ("application.unschedasks.backoff", "18446744073709551615", "backoff_count", 2**64 - 1),
        ("application.unschedasks.backoff.delay", "5s", "backoff_delay", 5 * SECOND),
        ("queue.state", "stopped", "stopped", True),
        ("queue.state", "active", "stopped", False),
    ],
)
def test_known_properties_are_read(key: str, text: str, field: str, value: object) -> None:
    settings, faults = read_settings({key: text})
    assert faults == []
    assert attrs.asdict(settings)[field] == value
    assert attrs.evolve(settings, **{field: getattr(DEFAULTS, field)}) == DEFAULTS


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("application.sort.priority", "maybe"),
        ("application.sort.priority", ""),
        ("priority.policy", "none"),
        ("priority.offset", "2147483648"),
        ("priority.offset", "1.5"),
        ("priority.offset", ""),
        ("priority.offset", "9" * 5000),
        ("preemption.policy", "sometimes"),
        ("preemption.delay", "0"),
        ("preemption.delay", "-1s"),
        ("preemption.delay", "30"),
        ("preemption.delay", ""),
        ("quota.preemption.delay", "-1s"),
        ("application.unschedasks.backoff", "-1"),
        ("application.unschedasks.backoff", "+1"),
        ("application.unschedasks.backoff", "18446744073709551616"),
        ("application.unschedasks.backoff", "1" * 5000),
        ("application.unschedasks.backoff.delay", "0s"),
        ("queue.state", "off"),
    ],
)
def test_invalid_value_is_reported_and_replaced_by_the_default(key: str, text: str) -> None:
    settings, faults = read_settings({key: text})
    assert settings == DEFAULTS
    ((reported, message),) = faults
    assert reported == key
    assert message.endswith("the default is used")


def test_unknown_properties_are_ignored_unless_similar_to_a_known_one() -> None:
    assert read_settings({"my.own.thing": "x"}) == (DEFAULTS, [])
    assert read_settings({"preemption.dealy": "1s"}) == (
        DEFAULTS,
        [("preemption.dealy", "unknown property, ignored, did you mean 'preemption.delay'?")],
    )
    assert "now called 'quota.preemption.delay'" in read_settings({"preemption.quota.delay": "1s"})[1][0][1]


def test_options_of_policies_are_kept_apart() -> None:
    settings, faults = read_settings(
        {"application.sort.policy": "mine", "application.sort.policy.a.b": "1", "queue.sort.policy.c": "2"}
    )
    assert faults == []
    assert settings.app_sort_options == {"a.b": "1"}
    assert settings.queue_sort_options == {"c": "2"}


# -- in a configuration -------------------------------------------------------------------------------


@attrs.frozen
class Weighted(AppSortPolicy):
    """An application order by weight."""

    name = "weighted"
    factor: int = 1
    kinds: tuple[str, ...] = ()

    def key(self, app: Application) -> int:
        return self.factor


class WeightedPlugin:
    @hookimpl
    def yunikorn_app_sort_policies(self) -> list[type[AppSortPolicy]]:
        return [Weighted]


@pytest.fixture
def check_weighted() -> Callable[..., Outcome]:
    """Check the properties of root.a, and of root.a.b below it."""
    registry = Registry.load(third_party=False)
    assert registry.register(WeightedPlugin(), "weighted-plugin")

    def run(a: Mapping[str, str], b: Mapping[str, str] | None = None, template: str = "{}") -> Outcome:
        def listed(properties: Mapping[str, str]) -> str:
            return "{" + ", ".join(f"{key}: '{value}'" for key, value in properties.items()) + "}"

        below = f"{{name: b, properties: {listed(b or {})}}}"
        text = f"{{name: a, properties: {listed(a)}, childtemplate: {template}, queues: [{below}]}}"
        return check_config(
            f"partitions: [{{name: '', nodesortpolicies: [{{name: packed, type: binpacking}}], "
            f"queues: [{{name: root, queues: [{text}]}}]}}]",
            registry,
        )

    return run


def reported(outcome: Outcome) -> list[tuple[str, str]]:
    return [(problem.path.removeprefix(f"{BELOW}."), problem.message) for problem in outcome.problems]


POLICY = "application.sort.policy"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({POLICY: "fifo"}, {POLICY: "fair"}),
        ({POLICY: "stateaware"}, {}),
        ({POLICY: ""}, {}),
        ({POLICY: "weighted", f"{POLICY}.factor": "2", f"{POLICY}.kinds": "x, y"}, {}),
        ({POLICY: "weighted"}, {f"{POLICY}.factor": "2"}),
        ({POLICY: "weighted", f"{POLICY}.factor": "2"}, {POLICY: "fifo"}),
        ({"queue.sort.policy": "fair"}, {}),
        ({"node.sort.policy": "packed"}, {}),
        ({"node.sort.policy": ""}, {}),
        ({"whatever": "x"}, {"preemption.delay": "soon"}),
    ],
)
def test_valid_properties(
    check_weighted: Callable[..., Outcome], a: Mapping[str, str], b: Mapping[str, str]
) -> None:
    assert reported(check_weighted(a, b)) == []


def test_unknown_policy_is_reported_once_at_its_position(check_weighted: Callable[..., Outcome]) -> None:
    ((path, message),) = reported(check_weighted({POLICY: "Fifo"}))
    assert path == f"properties.{POLICY}"
    assert "no application sort policy is called 'Fifo', did you mean 'fifo'?" in message
    ((path, _),) = reported(check_weighted({"queue.sort.policy": "nope"}))
    assert path == "properties.queue.sort.policy"


def test_invalid_options_are_reported_at_their_position(
    check_weighted: Callable[..., Outcome],
) -> None:
    ((path, message),) = reported(check_weighted({POLICY: "weighted", f"{POLICY}.factor": "two"}))
    assert path == f"properties.{POLICY}.factor"
    assert "expected a whole number, got 'two'" in message
    ((path, message),) = reported(check_weighted({POLICY: "weighted", f"{POLICY}.faktor": "2"}))
    assert path == f"properties.{POLICY}.faktor"
    assert "did you mean 'factor'?" in message


def test_options_are_checked_with_the_inherited_policy(check_weighted: Callable[..., Outcome]) -> None:
    ((path, _),) = reported(check_weighted({POLICY: "weighted"}, {f"{POLICY}.factor": "two"}))
    assert path == f"queues[0].properties.{POLICY}.factor"
    ((path, message),) = reported(check_weighted({}, {f"{POLICY}.factor": "2"}))
    assert path == f"queues[0].properties.{POLICY}.factor"
    assert "fifo" in message


def test_templates_are_checked_independently(check_weighted: Callable[..., Outcome]) -> None:
    template = f"{{properties: {{{POLICY}.factor: 2}}}}"
    ((path, message),) = reported(check_weighted({POLICY: "weighted"}, template=template))
    assert path == f"childtemplate.properties.{POLICY}.factor"
    assert "fifo" in message


def test_a_node_order_must_be_one_of_the_partition(check_weighted: Callable[..., Outcome]) -> None:
    ((path, message),) = reported(check_weighted({"node.sort.policy": "binpacking"}))
    assert path == "properties.node.sort.policy"
    assert message == "nodesortpolicies of the partition has no 'binpacking'; known: packed"


def test_bad_values_of_known_properties_are_warnings(check_weighted: Callable[..., Outcome]) -> None:
    outcome = check_weighted({"preemption.delay": "soon"}, template="{properties: {priority.offset: x}}")
    assert outcome.valid
    assert [warning.path.removeprefix(f"{BELOW}.") for warning in outcome.warnings] == [
        "properties.preemption.delay",
        "childtemplate.properties.priority.offset",
    ]


@pytest.mark.parametrize(
    ("properties", "notes"),
    [
        ({POLICY: "weighted"}, ["YuniKorn 1.9 ignores this application sort policy"]),
        ({"queue.sort.policy": "fair"}, ["YuniKorn 1.9 ignores this queue sort policy"]),
        ({POLICY: "fifo"}, []),
        ({POLICY: "stateaware"}, ["YuniKorn 1.9 treats stateaware as fifo"]),
    ],
)
def test_policy_use_that_yunikorn_ignores_is_noted(
    check_weighted: Callable[..., Outcome], properties: Mapping[str, str], notes: list[str]
) -> None:
    found = check_weighted(properties).notes
    assert [note.message for note in found if note.path.startswith(f"{BELOW}.properties.")] == notes
