"""Tests that requests wait for their services, and start when a thread has seen that these are up."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from yunikorn_service_health import ServiceHealth

from yunikorn.api import Context
from yunikorn_testing import (
    AskSample,
    MakeScheduler,
    PredicateContract,
    application,
    ask,
    assert_pending_because,
    node,
)


class Watched(ServiceHealth):
    """The predicate, with a list of the objects in use."""

    in_use: ClassVar[list[ServiceHealth]] = []

    def opened(self, context: Context) -> None:
        """List the object."""
        super().opened(context)
        self.in_use.append(self)

    def closed(self) -> None:
        """List the object no more."""
        super().closed()
        self.in_use.remove(self)


class TestServiceHealth(PredicateContract):
    """Contract test of predicates."""

    predicate = ServiceHealth(Path(__file__).with_name("services.json"), every=3600.0)

    def asks(self) -> Sequence[AskSample]:
        """Return requests for services that are up, down and unknown."""
        return [ask(f"needs {one}", vcore=1, tags={"needs": one}) for one in ("scratch", "matlab", "x", "")]


def look() -> None:
    """Let another thread look at the file, as the thread of the predicate does."""
    (plugin,) = Watched.in_use
    thread = threading.Thread(target=plugin.look)
    thread.start()
    thread.join()


def test_requests_start_when_their_service_is_up(scheduler: MakeScheduler, tmp_path: Path) -> None:
    file = tmp_path / "services.json"
    file.write_text('{"scratch": "checks its disks", "matlab": "up"}', "utf-8")
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    predicate = {"name": "service-health", "path": str(file), "every": 3600}
    config = json.dumps({"partitions": [{"name": "default", "predicates": [predicate], "queues": [root]}]})
    cluster = scheduler(config, node("n1", vcore=8), plugins=[Watched])
    cluster.submit(application("both", tags={"needs": "scratch, matlab"}), ask("task", 2, vcore=1))
    cluster.submit(application("none"), ask("task", vcore=1))
    assert [one.application for one in cluster.run()] == ["none"]
    assert_pending_because(cluster, "both", "service scratch: checks its disks")
    look()
    assert cluster.run() == []
    file.write_text("{", "utf-8")
    look()
    assert cluster.run() == []
    file.write_text('{"scratch": "up", "matlab": "up"}', "utf-8")
    look()
    assert [one.application for one in cluster.run()] == ["both", "both"]
    (failure,) = cluster.failures
    assert "the previous ones apply" in failure.message
