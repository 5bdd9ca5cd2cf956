"""State dumps of the Go core of YuniKorn: what is read from them, and that both decide the same then."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AllocationRelease,
    AllocationReleasesRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_snapshots.dumped_cluster import cluster_of_dump
from yunikorn_snapshots.other_clusters import scheduler_of, snapshot_of
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
from yunikorn_snapshots.snapshot_errors import SnapshotError

FOLDER = Path(__file__).parent / "state_dumps"
Dump = dict[str, Any]
Decision = tuple[str, str, str]


class ConfirmingRM:
    """Resource manager that notes decisions and confirms each release, as the recorded one did."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self._releases: list[AllocationRelease] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        for one in response.new_allocations:
            self.decisions.append(("new", one.allocation_key, one.node_id))
        for gone in response.released_allocations:
            self.decisions.append(("release", gone.allocation_key, gone.termination_type.name))
            self._releases.append(gone)

    def step(self, scheduler: Scheduler) -> bool:
        """Let the scheduler make one decision, and confirm its releases; return False if it made none."""
        made = scheduler.schedule(1)
        while self._releases:
            releases, self._releases = self._releases, []
            update = AllocationReleasesRequest(
                [
                    AllocationRelease(
                        one.application_id,
                        one.uuid,
                        one.partition_name,
                        one.termination_type,
                        allocation_key=one.allocation_key,
                    )
                    for one in releases
                ]
            )
            scheduler.update(UpdateRequest("rm", releases=update))
        return bool(made)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(third_party=False)


def recorded(version: str) -> dict[str, Any]:
    """Return a dump of this version of the Go core, and its decisions from there."""
    content: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{version}.json.gz").read_bytes()))
    return content


@pytest.fixture
def dump() -> Dump:
    found: Dump = recorded("1.9")["dump"]
    return found


@pytest.mark.parametrize("version", ["1.6", "1.7", "1.8", "1.9"])
def test_the_next_hundred_decisions_are_those_of_the_go_core(
    version: str, registry: Registry, tmp_path: Path
) -> None:
    found = recorded(version)
    cluster = cluster_of_dump(json.dumps(found["dump"]).encode())
    path = tmp_path / "snapshot"
    snapshot_of(cluster, registry, path)
    rm = ConfirmingRM()
    copy = restored_scheduler(path, registry, ManualClock(cluster.time), {"rm": rm})
    wanted = [tuple(one) for one in found["decisions"]]
    while len(rm.decisions) < len(wanted) and rm.step(copy):
        pass
    assert len(wanted) >= 100
    assert rm.decisions[: len(wanted)] == wanted


def test_the_state_is_that_of_the_dump(dump: Dump, registry: Registry) -> None:
    cluster = cluster_of_dump(json.dumps(dump).encode())
    scheduler, lacks = scheduler_of(cluster, registry)
    (at,) = scheduler.partitions("rm")
    partition = at.partition
    for app in dump["applications"]:
        made = partition.applications[app["applicationID"]]
        assert made.queue is not None
        assert (made.queue.path, made.user) == (app["queueName"], app["user"])
        assert made.submitted == app["submissionTime"]
        assert {(key, ask.created) for key, ask in made.asks.items() if ask.pending} == {
            (one["allocationKey"], one["requestTime"]) for one in app.get("requests", [])
        }
    for node in dump["nodes"][0]["nodesInfo"]:
        have = partition.nodes[node["nodeID"]]
        assert {name: amount for name, amount in have.available.items() if amount} == node["available"]
        assert (have.state == "Schedulable") is node["schedulable"]
        assert [ask.key for ask in have.reservations] == node.get("reservations", [])
    # The placement rules are those of the dump, and not those under which its applications returned.
    assert [rule.name for rule in at.config.placement_rules] == ["tag", "provided"]
    assert not any("reservation" in one for one in lacks)


def test_another_configuration_places_the_applications_again(
    dump: Dump, registry: Registry, tmp_path: Path
) -> None:
    config = """
partitions:
  - name: default
    placementrules: [{name: provided, create: false}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch, resources: {max: {vcore: 40}}}
          - {name: serving, queues: [{name: web}, {name: etl}]}
          - {name: gangs}
"""
    header = snapshot_of(cluster_of_dump(json.dumps(dump).encode(), config), registry, tmp_path / "s")
    assert read_header(tmp_path / "s") == header
    assert header.sizes["applications"] == len(dump["applications"]) - 3
    (rejected,) = [one for one in header.warnings if one.startswith("lacks 3 applications that")]
    assert all(f" {name}: " in rejected for name in ("team-1", "team-2", "team-3"))
    copy = restored_scheduler(tmp_path / "s", registry, ManualClock(header.time))
    (at,) = copy.partitions("rm")
    # Nodes are as full as they were.
    for node in dump["nodes"][0]["nodesInfo"]:
        have = at.partition.nodes[node["nodeID"]].available
        assert {name: amount for name, amount in have.items() if amount} == node["available"]


def _cut(dump: Dump) -> bytes:
    return json.dumps(dump).encode()[:-100]


def _version(dump: Dump) -> bytes:
    dump["clusterInfo"][0]["rmBuildInformation"][0]["buildVersion"] = "v1.5.2-1"
    return json.dumps(dump).encode()


def _amount(dump: Dump) -> bytes:
    dump["nodes"][0]["nodesInfo"][3]["capacity"]["memory"] = 2**64
    return json.dumps(dump).encode()


def _negative(dump: Dump) -> bytes:
    for node in dump["nodes"][0]["nodesInfo"][:2]:
        node["capacity"]["memory"] = -1
    return json.dumps(dump).encode()


def _deep(dump: Dump) -> bytes:
    text = json.dumps(dump)
    return ('{"rmDiagnostics": ' + "[" * 100_000 + "]" * 100_000 + ", " + text[1:]).encode()


def _queues(dump: Dump) -> bytes:
    queue: Dump = {"Name": "a"}
    for _ in range(200):
        queue = {"Name": "a", "Queues": [queue]}
    dump["config"]["Partitions"][0]["Queues"][0]["Queues"].append(queue)
    return json.dumps(dump).encode()


def _key(dump: Dump) -> bytes:
    dump["config"]["Partitions"][0]["Queues"][0]["Colour"] = "red"
    return json.dumps(dump).encode()


def _nothing(dump: Dump) -> bytes:
    del dump["config"]["Partitions"]
    return json.dumps(dump).encode()


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        (_cut, "it is no complete JSON text: Input data was truncated"),
        (lambda dump: b"hello", "it is no complete JSON text"),
        (lambda dump: b"\xff\xfe" * 10, "it is no complete JSON text"),
        (lambda dump: b"{}", "missing required field `timestamp`"),
        (lambda dump: b"[]", "it is no state dump of YuniKorn 1.6 to 1.9: Expected `object`, got `array`"),
        (_version, "it is a dump of YuniKorn v1.5.2-1, and those of 1.6 to 1.9 are read"),
        (_amount, "$.nodes[0].nodesInfo[3].capacity[...]"),
        (_negative, "2 of its objects cannot be used: node "),
        (_deep, "it is no complete JSON text"),
        (_queues, "config.Partitions[0]"),
        (_key, "its configuration cannot be used"),
        (_nothing, "config.Partitions is empty"),
    ],
)
def test_a_bad_dump_gives_one_error(
    spoiled: Callable[[Dump], bytes], message: str, dump: Dump, registry: Registry, tmp_path: Path
) -> None:
    with pytest.raises(SnapshotError) as raised:
        snapshot_of(cluster_of_dump(spoiled(dump)), registry, tmp_path / "snapshot")
    assert message in str(raised.value)
    assert not list(tmp_path.iterdir())
