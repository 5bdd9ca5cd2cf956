"""Changes of the ConfigMaps: used while the scheduler runs, or refused with all problems."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import config_map, node, pod
from tests.kubernetes.deployment import NAMESPACE
from tests.kubernetes.scheduling import CONFIGS, QUEUES, Scheduled

NARROW = QUEUES.replace('"*"}', '"*", queues: [{name: team, resources: {max: {vcore: 1}}}]}')
"""The queue `root.team` has room for one CPU."""


def member(name: str, test: str) -> Obj:
    """Return a pod of the queue `root.team`; an application of each test, because it stays in its queue."""
    return pod(name, application=test.replace("_", "-")[:60].strip("-"), queue="root.team")


@pytest.fixture
def narrow(scheduled: Scheduled, request: pytest.FixtureRequest) -> Iterator[Scheduled]:
    """A scheduler whose queue `root.team` is full, and a pod that waits there."""
    with scheduled.queues(NARROW):
        scheduled.make_nodes(node("only"))
        scheduled.create(*(member(name, request.node.name) for name in ("first", "second")))
        scheduled.bound(1)
        yield scheduled


def names_of_queues(scheduled: Scheduled) -> set[str]:
    root = scheduled.rest("/ws/v1/partition/default/queues")
    return {one["queuename"] for one in root["children"]}


def test_a_changed_quota_lets_a_waiting_pod_run(narrow: Scheduled) -> None:
    narrow.configure({"queues.yaml": NARROW.replace("vcore: 1", "vcore: 2")})
    narrow.running(2)


def test_a_bad_change_is_refused_with_all_problems_and_the_old_stays(narrow: Scheduled) -> None:
    bad = NARROW.replace("name: provided", "name: privided").replace("vcore: 1", "vcore: -1")
    narrow.misconfigure({"queues.yaml": bad, "kubernetes.qps": "many"})
    notes = " ".join(narrow.events("ConfigurationRefused", regarding=CONFIGS, namespace=NAMESPACE))
    assert "privided" in notes
    assert "vcore" in notes
    assert "kubernetes.qps" in notes
    narrow.kubectl.delete("Pod", "first")
    narrow.running(1)
    narrow.create(member("third", "another"))
    narrow.pending("third", "root.team")
    # The next good change is used, although the bad one came before.
    good = {"queues.yaml": NARROW.replace("vcore: 1", "vcore: 2"), "kubernetes.qps": None}
    narrow.configure(good)
    narrow.running(2)


def test_a_compressed_entry_is_read(narrow: Scheduled) -> None:
    packed = base64.b64encode(gzip.compress(NARROW.replace("vcore: 1", "vcore: 2").encode())).decode()
    narrow.configure({"queues.yaml": None}, binaryData={"queues.yaml.gz": packed})
    narrow.running(2)
    narrow.configure({}, binaryData=None)


def test_the_deletion_of_the_config_map_brings_the_defaults_back(narrow: Scheduled) -> None:
    assert "root.team" in names_of_queues(narrow)
    text = NARROW.replace("vcore: 1", "vcore: 2")
    defaults = narrow.kubectl.create(config_map("yunikorn-defaults", {"queues.yaml": text}, NAMESPACE))
    narrow.kubectl.delete("ConfigMap", CONFIGS, NAMESPACE)
    narrow.wait_reloaded(defaults)
    narrow.running(2)
    made = narrow.kubectl.create(config_map(CONFIGS, {"queues.yaml": NARROW}, NAMESPACE))
    narrow.kubectl.delete("ConfigMap", "yunikorn-defaults", NAMESPACE)
    narrow.wait_reloaded(made)
