"""Configuration from ConfigMaps: merging, compression, updates that are refused, and warnings."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import attrs
import pytest

from yunikorn.errors import ConfigError, Problem
from yunikorn_kubernetes import config_maps
from yunikorn_kubernetes.config_maps import Entry
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_kubernetes.shim_config_maps import ClusterConfig, read_config

Texts = dict[str, str]
QUEUES = "partitions: []\n"


def maps(defaults: Texts | None = None, configs: Texts | None = None) -> dict[str, ConfigMap | None]:
    """Return the two ConfigMaps; None for one that is missing."""
    return {
        "yunikorn-defaults": None if defaults is None else ConfigMap(data=defaults),
        "yunikorn-configs": None if configs is None else ConfigMap(data=configs),
    }


def compressed(data: Texts | None = None, **binary: bytes) -> dict[str, ConfigMap | None]:
    """Return `yunikorn-configs` with these entries; names of `binary` get a dot before `gz`."""
    named = {name.replace("_", "."): content for name, content in binary.items()}
    return {"yunikorn-configs": ConfigMap(data=data, binary_data=named)}


def problems_of(given: dict[str, ConfigMap | None], current: ClusterConfig | None = None) -> list[str]:
    """Return the problems of ConfigMaps that are refused."""
    with pytest.raises(ConfigError) as caught:
        read_config(given, current=current)
    return [str(problem) for problem in caught.value.problems]


def test_missing_maps_give_the_defaults() -> None:
    for given in ({}, maps(), {"yunikorn-configs": ConfigMap()}):
        found = read_config(given)
        assert (found.settings.service.cluster_id, found.queues, found.extra) == ("mycluster", "", {})
        assert found.warnings == ()


def test_the_administrators_map_takes_precedence_key_by_key() -> None:
    found = read_config(
        maps(
            {"service.clusterId": "a", "kubernetes.qps": "5", "queues.yaml": "old"},
            {"service.clusterId": "b", "queues.yaml": QUEUES, "event.maxStreams": "7"},
        )
    )
    assert (found.settings.service.cluster_id, found.settings.service.qps) == ("b", 5)
    assert found.queues == QUEUES
    assert found.extra == {"service.clusterId": "b", "kubernetes.qps": "5", "event.maxStreams": "7"}
    assert found.entries["kubernetes.qps"] == Entry("5", "yunikorn-defaults")


def test_the_policy_group_chooses_the_queue_configuration() -> None:
    found = read_config(maps(None, {"service.policyGroup": "night", "night.yaml": "n", "queue.yaml": "d"}))
    assert (found.queues, "night.yaml" in found.extra) == ("n", False)
    assert found.warnings == ("yunikorn-configs: queue.yaml is not used: the policy group reads night.yaml",)


def test_a_misnamed_queue_configuration_is_reported() -> None:
    (warning,) = read_config(maps(None, {"queue.yaml": "d"})).warnings
    assert warning.endswith("the policy group reads queues.yaml, did you mean 'queues.yaml'?")


def test_compressed_entries() -> None:
    found = read_config(compressed({"kubernetes.qps": "9"}, queues_yaml_gz=gzip.compress(QUEUES.encode())))
    assert (found.queues, found.settings.service.qps, found.warnings) == (QUEUES, 9, ())


def test_a_compressed_entry_replaces_a_plain_one() -> None:
    found = read_config(
        compressed({"queues.yaml": "plain"}, queues_yaml_gz=gzip.compress(b"packed"), other=b"")
    )
    assert found.queues == "packed"
    assert found.warnings == (
        "yunikorn-configs: queues.yaml is ignored, because queues.yaml.gz is there, too",
        "yunikorn-configs: other is ignored: only keys that end in .gz are read there",
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"plain", "not a gzip file"),
        (zlib.compress(b"text"), "not a gzip file"),
        (gzip.compress(b"text" * 100)[:-9], "not one complete gzip file"),
        (gzip.compress(b"a") + gzip.compress(b"b"), "not one complete gzip file"),
        (gzip.compress(b"\xff"), "not UTF-8 when decompressed"),
    ],
    # A gzip file has the time of its creation, which must not be part of the name of a test.
    ids=["no file", "zlib", "cut off", "two files", "no text"],
)
def test_a_bad_compressed_entry_is_refused(content: bytes, problem: str) -> None:
    (found,) = problems_of(compressed(queues_yaml_gz=content))
    assert found.startswith(f"yunikorn-configs: queues.yaml.gz: {problem}")


def test_a_compressed_entry_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_maps, "LARGEST", 2 << 20)
    bomb = gzip.compress(b"a" * ((2 << 20) + 1))
    (found,) = problems_of(compressed(queues_yaml_gz=bomb))
    assert found == "yunikorn-configs: queues.yaml.gz: larger than 2 MiB when decompressed: shorten it"
    assert len(read_config(compressed(queues_yaml_gz=gzip.compress(b"a" * (2 << 20)))).queues) == 2 << 20


def test_all_problems_of_an_update_come_together() -> None:
    def check_queues(text: str) -> Iterator[Problem]:
        yield Problem("partitions[0]", f"{text} is bad", 3, 5)
        yield Problem("", "not YAML")

    given = {
        "yunikorn-defaults": ConfigMap(data={"kubernetes.qps": "x", "queues.yaml": "q"}),
        "yunikorn-configs": ConfigMap(data={"log.level": "y"}, binary_data={"a.gz": b"zzzz"}),
    }
    with pytest.raises(ConfigError) as caught:
        read_config(given, check_queues=check_queues)
    assert [str(problem).partition(";")[0].partition(" -3 ")[0] for problem in caught.value.problems] == [
        "yunikorn-configs: a.gz: not a gzip file (Error",
        "yunikorn-defaults: kubernetes.qps: 'x': expected a whole number of at most 2147483647",
        "yunikorn-configs: log.level: 'y': expected debug, info, warn, error or fatal, or a number from -1"
        " (debug) to 5 (fatal)",
        "yunikorn-defaults: queues.yaml: partitions[0] (line 3, column 5): q is bad",
        "yunikorn-defaults: queues.yaml: not YAML",
    ]


def test_unknown_keys_are_passed_on_with_a_warning() -> None:
    found = read_config(maps(None, {"service.clusterID": "x", "log.core.level": "info"}))
    assert found.warnings == (
        "yunikorn-configs: service.clusterID is an unknown key, did you mean 'service.clusterId'?",
    )
    assert found.extra["service.clusterID"] == "x"


# -- updates -------------------------------------------------------------------------------------------


def test_an_update_changes_what_needs_no_restart() -> None:
    current = read_config(maps(None, {"queues.yaml": "a", "log.level": "info"}))
    found = read_config(maps(None, {"queues.yaml": "b", "log.level": "debug"}), current=current)
    assert (found.queues, found.settings.logs.root, found.warnings) == ("b", "debug", ())


def test_changes_that_need_a_restart_are_named_and_left_out() -> None:
    current = read_config(
        maps(
            None,
            {"service.clusterId": "a", "kubernetes.burst": "7", "event.maxStreams": "5", "queues.yaml": "q"},
        )
    )
    update = {
        "event.maxStreams": "7",
        "service.clusterId": "b",
        "kubernetes.qps": "50",
        "service.policyGroup": "x",
        "x.yaml": "new",
    }
    found = read_config(maps(None, {**update, "queues.yaml": "r"}), current=current)
    assert attrs.evolve(found.settings, service=current.settings.service) == found.settings
    assert found.settings.service == current.settings.service
    assert found.queues == "r"
    assert found.extra == {**current.extra, "event.maxStreams": "7"}
    assert found.warnings == (
        "yunikorn-configs: service.clusterId: the change from 'a' to 'b' needs a restart",
        "yunikorn-configs: service.policyGroup: the change from the default (queues) to 'x' needs a restart",
        "yunikorn-configs: kubernetes.qps: the change from the default (1000) to '50' needs a restart",
        "yunikorn-configs: kubernetes.burst: the change from '7' to the default (1000) needs a restart",
        "yunikorn-configs: x.yaml is not used: the policy group reads queues.yaml",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"kubernetes.qps": "1000"}),
        ({"service.dispatchTimeout": "300s"}, {"service.dispatchTimeout": "5m"}),
    ],
)
def test_the_same_value_in_other_words_is_no_change(before: Texts, after: Texts) -> None:
    assert read_config(maps(None, after), current=read_config(maps(None, before))).warnings == ()


def test_a_bad_value_refuses_an_update_even_where_the_key_needs_a_restart() -> None:
    current = read_config(maps(None, {"service.dispatchTimeout": "1m"}))
    (found,) = problems_of(maps(None, {"service.dispatchTimeout": "soon", "queues.yaml": "b"}), current)
    assert found.startswith("yunikorn-configs: service.dispatchTimeout: 'soon': expected a duration")


def test_deleted_maps_bring_the_defaults_back() -> None:
    current = read_config(maps({"log.level": "warn"}, {"log.level": "debug", "service.clusterId": "a"}))
    found = read_config(maps({"log.level": "warn"}, None), current=current)
    assert (found.settings.logs.root, found.settings.service.cluster_id) == ("warning", "a")
    assert read_config(maps(), current=current).settings.logs.root == "info"


def test_updates_are_ignored_while_hot_refresh_is_off() -> None:
    current = read_config(maps(None, {"service.enableConfigHotRefresh": "false", "queues.yaml": "a"}))
    found = read_config(maps(None, {"queues.yaml": "b", "kubernetes.qps": "x"}), current=current)
    assert attrs.evolve(found, warnings=()) == attrs.evolve(current, warnings=())
    assert found.warnings == (
        "service.enableConfigHotRefresh is false: changes of the ConfigMaps are ignored until a restart",
    )


def test_hot_refresh_can_be_turned_off_by_an_update() -> None:
    off = {"service.enableConfigHotRefresh": "false"}
    found = read_config(maps(None, {**off, "queues.yaml": "b"}), current=read_config(maps()))
    assert (found.queues, found.settings.service.hot_refresh) == ("b", False)
