"""Changes of a configuration by the paths that `yunikorn validate` prints."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from yunikorn.config.load import check_config, load_config
from yunikorn.config.queues_yaml import PartitionConfig
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.variants import VariantSetting, change, check_change, make_plans, parse_settings

CHECKOUT = Path(__file__).parents[3]
CONFIG = """
x: &limit {vcore: 10}
partitions:
  - name: default
    placementrules: [{name: tag, value: namespace, create: true}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - &first
            name: "no"
            maxapplications: 5
            resources: {max: *limit}
            properties: {application.sort.policy: fair, priority.offset: "3"}
          - <<: *first
            name: b
""".replace("x: &limit {vcore: 10}\n", "").replace("*limit", "{vcore: 10, nvidia.com/gpu: 1}")
LEAF = "partitions[0].queues[0].queues[0]"


def partition(text: str, registry: Registry) -> PartitionConfig:
    """Return the first partition of a configuration."""
    return load_config(text, registry).partitions[0]


def put(path: str, value: str, registry: Registry) -> PartitionConfig:
    """Return the first partition after one change."""
    return partition(change(CONFIG, [VariantSetting(path, value)]), registry)


def test_unset_keys_are_unchanged(registry: Registry) -> None:
    for file in [*CHECKOUT.glob("examples/**/*.yaml")]:
        text = file.read_text("utf-8")
        before = check_config(text, registry).config
        if before is not None:
            after = load_config(change(text, []), registry)
            assert attrs.evolve(after, text="", checksum="") == attrs.evolve(before, text="", checksum="")
    assert partition(change(CONFIG, []), registry) == partition(CONFIG, registry)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (f"{LEAF}.maxapplications", "7", lambda leaf: leaf.max_applications == 7),
        (f"{LEAF}.resources.max.vcore", "3", lambda leaf: leaf.max["vcore"] == 3000),
        (f"{LEAF}.resources.max.nvidia.com/gpu", "4", lambda leaf: leaf.max["nvidia.com/gpu"] == 4),
        (f"{LEAF}.resources.max.example.com/fpga", "2", lambda leaf: leaf.max["example.com/fpga"] == 2),
        (f"{LEAF}.resources.guaranteed.memory", "5Gi", lambda leaf: leaf.guaranteed == {"memory": 5 * 2**30}),
        (
            f"{LEAF}.resources.max",
            "{vcore: 1, memory: 2}",
            lambda leaf: leaf.max == {"vcore": 1000, "memory": 2},
        ),
        (f"{LEAF}.resources.max", "", lambda leaf: leaf.max is None),
        (f"{LEAF}.properties.priority.offset", "-2", lambda leaf: leaf.properties["priority.offset"] == "-2"),
        (
            f"{LEAF}.properties.preemption.delay",
            "1m",
            lambda leaf: leaf.properties["preemption.delay"] == "1m",
        ),
        (f"{LEAF}.submitacl", "*", lambda leaf: leaf.submit_acl.allows("anybody", ())),
        (f"{LEAF}.submitacl", "'ann,bob science'", lambda leaf: leaf.submit_acl.allows("bob", ())),
        (f"{LEAF}.name", "yes", lambda leaf: leaf.name == "yes"),
    ],
)
def test_values_are_set_at_their_path(path: str, value: str, found: object, registry: Registry) -> None:
    assert callable(found)
    leaf, other = put(path, value, registry).root.queues
    assert found(leaf)
    # The second queue copies the first with `<<`: the change applies to its own copy.
    assert other == partition(CONFIG, registry).root.queues[1]


def test_lists_and_mappings_can_be_set(registry: Registry) -> None:
    found = put("partitions[0].placementrules[0].value", "team", registry)
    assert found.placement_rules[0].value == "team"
    assert put("partitions[0].nodesortpolicy.type", "binpacking", registry).node_sort.name == "binpacking"
    assert put("partitions[0].preemption.enabled", "false", registry).preemption.enabled is False


@pytest.mark.parametrize(
    ("path", "reported"),
    [
        (
            "partitons[0].name",
            "there is no list 'partitons' in the configuration, did you mean 'partitions'?",
        ),
        ("partitions[3].name", "there is no entry '[3]' in partitions: it has 1, counted from 0"),
        ("partitions.name", "there is no entry 'name' in partitions: it is a list of 1, write [0]"),
        (f"{LEAF}.queues[0].name", f"there is no list 'queues' in {LEAF}"),
        (f"{LEAF}.name.first", "nothing can be set below name, because its value is 'no'"),
        (f"{LEAF}.properties.application.sort.polcy", "did you mean 'application.sort.policy'?; known: "),
        (f"{LEAF}.[0]", "expected a name, got"),
    ],
)
def test_unknown_path_is_reported_with_suggestions(path: str, reported: str) -> None:
    with pytest.raises(UsageError) as refused:
        change(CONFIG, [VariantSetting(path, "1")])
    assert str(refused.value).startswith(f"--set {path}: ")
    assert reported in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        (f"{LEAF}.maxaplications", "5", "unknown key, did you mean 'maxapplications'?"),
        (f"{LEAF}.resources.max.vcore", "many", "expected a whole number"),
        (f"{LEAF}.properties.application.sort.policy", "fare", "fair"),
        (f"{LEAF}.properties.priority.offset", "much", "expected a whole number"),
    ],
)
def test_invalid_or_ignored_value_is_reported(
    path: str, value: str, reported: str, registry: Registry
) -> None:
    setting = VariantSetting(path, value)
    problems = check_change(change(CONFIG, [setting]), [setting], registry)
    assert problems
    assert all(problem.startswith(f"--set {setting}: ") for problem in problems)
    assert reported in problems[0]


def test_values_are_split_at_commas_outside_of_brackets_and_quotes() -> None:
    (found,) = parse_settings(["a.b={x: 1, y: [2, 3]}, 'c,d',,5"])
    assert [(setting.path, setting.value) for setting in found] == [
        ("a.b", "{x: 1, y: [2, 3]}"),
        ("a.b", "'c,d'"),
        ("a.b", ""),
        ("a.b", "5"),
    ]


def test_all_errors_of_settings_are_reported_together() -> None:
    with pytest.raises(UsageError) as refused:
        parse_settings(["nothing", "a=1", "a=2", "b=1,1"])
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    assert "expected PATH=VALUE" in lines[0]
    assert "a is set twice" in lines[1]
    assert "the same value is given twice" in lines[2]
    with pytest.raises(UsageError, match="the value cannot be read"):
        change(CONFIG, [VariantSetting("a", "{b: ")])


TEAMS = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: research
            queues:
              - {name: gpu-15, limits: [{limit: all, users: ["*"], maxresources: {vcore: 5}}]}
              - {name: gpu}
          - {name: Web, properties: {application.sort.policy: fair}}
  - {name: lab, queues: [{name: bench}]}
"""


@pytest.mark.parametrize(
    ("path", "numbered"),
    [
        ("root.research.resources.max.vcore", "queues[0].queues[0].resources.max.vcore"),
        ("root.research.resources.max.nvidia.com/gpu", "queues[0].queues[0].resources.max.nvidia.com/gpu"),
        (
            "root.web.properties.application.sort.policy",
            "queues[0].queues[1].properties.application.sort.policy",
        ),
        (
            "root.research.gpu-15.limits[0].maxresources.vcore",
            "queues[0].queues[0].queues[0].limits[0].maxresources.vcore",
        ),
        ("root.research.gpu.maxapplications", "queues[0].queues[0].queues[1].maxapplications"),
        ("root.maxapplications", "queues[0].maxapplications"),
    ],
)
def test_queues_are_named_in_paths(path: str, numbered: str) -> None:
    value = "fifo" if path.endswith("policy") else "7"
    assert change(TEAMS, [VariantSetting(path, value)]) == change(
        TEAMS, [VariantSetting(f"partitions[0].{numbered}", value)]
    )


def test_queues_of_another_partition_are_named_in_paths() -> None:
    expected = change(TEAMS, [VariantSetting("partitions[1].queues[0].maxapplications", "7")])
    assert change(TEAMS, [VariantSetting("root.bench.maxapplications", "7")]) == expected


@pytest.mark.parametrize(
    ("path", "reported"),
    [
        (
            "root.reserch.maxapplications",
            "queue root has no child or key 'reserch', did you mean 'research'?",
        ),
        (
            "root.research.maxaplications",
            "queue root.research has no child or key 'maxaplications', did you mean",
        ),
        ("root.research", "names a queue; add one of its keys"),
        ("root.research.gpu-15.limits[3].maxapplications", "there is no entry '[3]'"),
        (
            "root.web.properties.application.sort.polcy",
            "unknown property 'application.sort.polcy', did you mean",
        ),
    ],
)
def test_wrong_paths_of_queues_are_reported_as_written(path: str, reported: str) -> None:
    with pytest.raises(UsageError) as refused:
        change(TEAMS, [VariantSetting(path, "1")])
    assert str(refused.value).startswith(f"--set {path}: ")
    assert reported in str(refused.value)


def test_a_queue_of_several_partitions_needs_a_number() -> None:
    config = "partitions: [{name: default, queues: [{name: a}]}, {name: lab, queues: [{name: a}]}]"
    with pytest.raises(UsageError, match=r"several partitions .* partitions\[0\].* or partitions\[1\]"):
        change(config, [VariantSetting("root.a.maxapplications", "1")])
    with pytest.raises(UsageError, match="does not write the queue root"):
        change(config, [VariantSetting("root.maxapplications", "1")])


def test_one_value_is_not_set_by_two_paths() -> None:
    twice = [
        VariantSetting("root.web.maxapplications", "1"),
        VariantSetting("partitions[0].queues[0].queues[1].maxapplications", "2"),
    ]
    with pytest.raises(UsageError, match=r"is also set as root\.web\.maxapplications"):
        change(TEAMS, twice)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (["partitions[0].preemption.enabled=false"], ["baseline", "preemption.enabled=false"]),
        (["root.web.properties.application.sort.policy=fifo,fair"], ["fifo", "fair"]),
        (["root.web.resources.max.vcore=4,8"], ["max.vcore=4", "max.vcore=8"]),
        (
            ["root.web.maxapplications=4,8", "root.submitacl=*"],
            ["web.maxapplications=4", "web.maxapplications=8"],
        ),
        (
            ["root.web.maxapplications=4,8", "root.research.gpu.maxapplications=1,2"],
            [f"web.maxapplications={web} gpu.maxapplications={gpu}" for web in (4, 8) for gpu in (1, 2)],
        ),
        (
            ["root.web.resources.max.vcore=1,2", "root.research.resources.max.vcore=3"],
            [f"root.web.resources.max.vcore={number}" for number in (1, 2)],
        ),
    ],
)
def test_variants_are_called_by_what_differs(
    settings: list[str], names: list[str], registry: Registry
) -> None:
    plans = make_plans([(Path("queues.yaml"), TEAMS)], parse_settings(settings), registry)
    assert [plan.name for plan in plans] == names


def test_files_are_named_where_there_are_several(registry: Registry) -> None:
    files = [(Path("a.yaml"), TEAMS), (Path("b.yaml"), TEAMS)]
    plans = make_plans(files, parse_settings(["root.web.maxapplications=4"]), registry)
    assert [plan.name for plan in plans] == ["a", "b"]


def test_files_alone_are_called_by_their_names(registry: Registry) -> None:
    files = [(Path("first.yaml"), TEAMS), (Path("second.yaml"), TEAMS)]
    assert [plan.name for plan in make_plans(files, [], registry)] == ["first", "second"]
