"""Partitions and the plugins they name (docs/decisions/0003 and 0004)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.clock import SECOND
from yunikorn.config.load import Outcome
from yunikorn.config.queues_yaml import (
    PartitionConfig,
    PluginRef,
    PreemptionConfig,
    ResolverCache,
    ResolverRef,
    SchedulerConfig,
)

Check = Callable[[str], Outcome]
Partition = Callable[[str], PartitionConfig]


@pytest.mark.parametrize(
    ("name", "made"),
    [("''", "default"), ("~", "default"), ("DeFault", "default"), ("Lab", "Lab"), ("1", "1")],
)
def test_partition_names(config: Callable[[str], SchedulerConfig], name: str, made: str) -> None:
    assert config(f"partitions: [{{name: {name}, queues: []}}]").partitions[0].name == made


@pytest.mark.parametrize(("one", "two"), [("a", "A"), ("''", "default"), ("x", "x")])
def test_partition_names_are_unique_ignoring_case(check: Check, one: str, two: str) -> None:
    (problem,) = check(f"partitions: [{{name: {one}, queues: []}}, {{name: {two}, queues: []}}]").problems
    assert problem.path == "partitions[1].name"
    assert "is defined twice" in problem.message


def test_defaults_of_a_partition(partition: Partition) -> None:
    made = partition("queues: []")
    assert made.preemption == PreemptionConfig(enabled=True, quota_preemption_enabled=False)
    assert made.node_sort == PluginRef("fair")
    assert made.node_sorts == {}
    assert made.user_group_resolver is None
    assert made.predicates == ()


def test_preemption(partition: Partition) -> None:
    made = partition("preemption: {enabled: false, quotapreemptionenabled: yes}")
    assert made.preemption == PreemptionConfig(False, True)
    assert partition("preemption: {enabled: ~}").preemption == PreemptionConfig()


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("queue: []", "queue", "did you mean 'queues'?"),
        ("statedumpfilepath: /x", "statedumpfilepath", "removed it in 1.5"),
        ("preemption: true", "preemption", "expected a mapping"),
        ("preemption: {enable: true}", "preemption.enable", "did you mean 'enabled'?"),
        ("preemption: {enabled: maybe}", "preemption.enabled", "expected true or false"),
        ("nodesortpolicy: fair", "nodesortpolicy", "write {type: fair}"),
        ("nodesortpolicy: [fair]", "nodesortpolicy", "expected a mapping"),
        ("nodesortpolicy: {type: Fair}", "nodesortpolicy.type", "did you mean 'fair'?"),
        ("nodesortpolicy: {types: fair}", "nodesortpolicy.types", "did you mean 'type'?"),
        ("nodesortpolicy: {resourceweights: {vcore: -1}}", "nodesortpolicy.resourceweights.vcore", "below 0"),
        ("nodesortpolicy: {resourceweights: {vcore: x}}", "nodesortpolicy.resourceweights.vcore", "a number"),
        (
            "nodesortpolicy: {resourceweights: {vcore: .inf}}",
            "nodesortpolicy.resourceweights.vcore",
            "finite",
        ),
        (
            "nodesortpolicy: {resourceweights: {vcore: }}",
            "nodesortpolicy.resourceweights.vcore",
            "got nothing",
        ),
        ("nodesortpolicy: {resourceweights: {vcore: '1'}}", "nodesortpolicy.resourceweights.vcore", "quotes"),
        ("nodesortpolicy: {resourceweights: [1]}", "nodesortpolicy.resourceweights", "expected a mapping"),
        ("nodesortpolicies: [{type: fair}]", "nodesortpolicies[0].name", "required"),
        ("nodesortpolicies: [{name: a, type: nope}]", "nodesortpolicies[0].type", "no node sort policy"),
        ("nodesortpolicies: [{name: a}, {name: a}]", "nodesortpolicies[1].name", "already given"),
        ("usergroupresolver: os", "usergroupresolver", "expected a mapping"),
        ("usergroupresolver: {kind: os}", "usergroupresolver.kind", "unknown key"),
        ("usergroupresolver: {type: os, cached: 1}", "usergroupresolver.cached", "did you mean 'cache'?"),
        ("usergroupresolver: {type: os, cache: 1}", "usergroupresolver.cache", "expected a mapping"),
        ("usergroupresolver: {type: os, cache: {find: 1s}}", "usergroupresolver.cache.find", "unknown key"),
        ("usergroupresolver: {type: os, cache: {found: 1}}", "usergroupresolver.cache.found", "duration"),
        (
            "usergroupresolver: {type: os, cache: {failed: -1s}}",
            "usergroupresolver.cache.failed",
            "0 or more",
        ),
        ("usergroupresolver: {type: none, cache: {found: 1s}}", "usergroupresolver.cache", "unknown key"),
        ("predicates: node-selector", "predicates", "write [node-selector]"),
        ("predicates: [node-selektor]", "predicates[0]", "did you mean 'node-selector'?"),
        ("predicates: [{nam: taints}]", "predicates[0].name", "required"),
        ("predicates: [[taints]]", "predicates[0]", "expected a name, or a mapping with a name"),
        ("predicates: [{name: taints, nope: 1}]", "predicates[0].nope", "unknown key"),
    ],
)
def test_invalid_partitions(check_partition: Check, text: str, path: str, message: str) -> None:
    problems = check_partition(text).problems
    assert [problem.path for problem in problems] == [f"partitions[0].{path}"]
    assert message in problems[0].message
    assert problems[0].line == 3


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("{}", PluginRef("fair")),
        ("~", PluginRef("fair")),
        ("{type: ''}", PluginRef("fair")),
        ("{type: binpacking}", PluginRef("binpacking")),
        ("{resourceweights: {}}", PluginRef("fair")),
        ("{resourceweights: ~}", PluginRef("fair")),
        (
            "{type: binpacking, resourceweights: {vcore: 4, memory: 1.5, gpu: 0, x: 1e1, y: 0x10}}",
            PluginRef(
                "binpacking",
                {
                    "resourceweights": {
                        "vcore": "4.0",
                        "memory": "1.5",
                        "gpu": "0.0",
                        "x": "10.0",
                        "y": "16.0",
                    }
                },
            ),
        ),
    ],
)
def test_node_sort_policies(partition: Partition, text: str, ref: PluginRef) -> None:
    assert partition(f"nodesortpolicy: {text}").node_sort == ref


def test_named_node_orders(partition: Partition, check_partition: Check) -> None:
    text = "nodesortpolicies: [{name: packed, type: binpacking, resourceweights: {vcore: 1}}, {name: spread}]"
    assert partition(text).node_sorts == {
        "packed": PluginRef("binpacking", {"resourceweights": {"vcore": "1.0"}}),
        "spread": PluginRef("fair"),
    }
    assert [note.path for note in check_partition(text).notes] == ["partitions[0].nodesortpolicies"]


def test_predicates(partition: Partition) -> None:
    assert partition("predicates: [node-selector, {name: taints}, ~]").predicates == (
        PluginRef("node-selector"),
        PluginRef("taints"),
    )


@pytest.mark.parametrize("text", ["~", "{}", "{type: ''}", "{type: none}"])
def test_no_resolver(partition: Partition, text: str) -> None:
    assert partition(f"usergroupresolver: {text}").user_group_resolver is None


def test_times_of_the_group_cache(partition: Partition, check_partition: Check) -> None:
    def cache_of(text: str) -> ResolverCache:
        ref = partition(f"usergroupresolver: {{type: os{text}}}").user_group_resolver
        assert ref is not None
        return ref.cache

    assert cache_of("") == cache_of(", cache: ~") == ResolverCache(300 * SECOND, 30 * SECOND)
    assert cache_of(", cache: {found: 1h}") == ResolverCache(3600 * SECOND, 30 * SECOND)
    assert cache_of(", cache: {failed: 0s, found: 0}") == ResolverCache(0, 0)
    (note,) = check_partition("usergroupresolver: {type: os, cache: {found: 1h}}").notes
    assert note.path == "partitions[0].usergroupresolver.cache"


def test_a_resolver_that_is_not_installed_is_a_problem_unless_it_is_not_required(
    check_partition: Check, partition: Partition
) -> None:
    assert partition("usergroupresolver: {type: os}").user_group_resolver == ResolverRef("os")
    (problem,) = check_partition("usergroupresolver: {type: radius}").problems
    assert problem.path == "partitions[0].usergroupresolver.type"
    assert problem.line
    text = "usergroupresolver: {type: radius, required: false}"
    assert partition(text).user_group_resolver == ResolverRef("radius", required=False)
    (warning,) = check_partition(text).warnings
    assert warning.message.endswith("it is not used, because of required: false")


# -- one hierarchy for all partitions ------------------------------------------------------------------


def trees(*trees: str, same: str = "true") -> str:
    partitions = ", ".join(f"{{name: p{number}, queues: {tree}}}" for number, tree in enumerate(trees))
    return f"samehierarchy: {same}\npartitions: [{partitions}]"


A_B_C = "[{name: a, queues: [{name: b}, {name: c}]}]"
A_B = "[{name: a, queues: [{name: b}]}]"
C_ELSEWHERE = "[{name: a, queues: [{name: b}]}, {name: C}]"
C_TWICE = "[{name: a, queues: [{name: c}]}, {name: b, queues: [{name: c}]}]"


@pytest.mark.parametrize(
    "texts", [(A_B_C, A_B_C), (A_B_C, A_B), (A_B, A_B_C), (A_B_C,), (A_B, "[{name: x}]")]
)
def test_consistent_queue_paths_are_valid(check: Check, texts: tuple[str, ...]) -> None:
    outcome = check(trees(*texts))
    assert (outcome.problems, outcome.warnings) == ((), ())


@pytest.mark.parametrize("texts", [(A_B_C, C_ELSEWHERE), (C_TWICE,), (A_B, C_TWICE)])
def test_conflicting_or_duplicate_paths_are_rejected(check: Check, texts: tuple[str, ...]) -> None:
    problems = check(trees(*texts)).problems
    assert problems
    assert all("already has another path" in problem.message for problem in problems)
    assert problems[0].path.startswith(f"partitions[{len(texts) - 1}]")


def test_conflicting_paths_are_a_warning_without_the_switch(check: Check) -> None:
    outcome = check(trees(A_B_C, C_ELSEWHERE, same="false"))
    assert outcome.valid
    assert [warning.path for warning in outcome.warnings] == ["partitions[1].queues[1].name"]
    assert check(trees(C_TWICE, same="false")).warnings == ()


def test_only_some_of_many_conflicting_paths_are_listed(check: Check) -> None:
    teams = "[" + ", ".join(f"{{name: t{number}, queues: [{{name: dev}}]}}" for number in range(6)) + "]"
    *_, last = check(trees(teams)).problems
    assert last.message == (
        "queue 'dev' already has another path: root.t0.dev, root.t1.dev, root.t2.dev and 2 more"
        " (samehierarchy is true)"
    )
