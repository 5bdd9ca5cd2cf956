"""Test kit for quota policies: clusters with queues that name policies, and policies that answer as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tests.core.kit import document, partition
from yunikorn import api
from yunikorn.model.queue import Queue
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn_testing import Cluster, application, ask

HOUR, DAY = 3600, 86400
Answer = Callable[["Drawn", api.Queue], Any]


@attrs.define(eq=False)
class Drawn(api.QuotaPolicy):
    """Answers with what a test has set."""

    name = "drawn"
    asked: list[str] = attrs.field(factory=list, init=False)
    now: Callable[[], int] = attrs.field(default=None, init=False)

    def opened(self, context: api.Context) -> None:
        self.now = context.now

    def quota(self, queue: api.Queue) -> Any:
        self.asked.append(queue.path)
        return ANSWERS[-1](self, queue)


ANSWERS: list[Answer] = []


@attrs.define(eq=False)
class Watching(Drawn, api.QuotaPolicy):
    """The same, watching the cluster."""

    name = "watching"
    watches_cluster = True


@attrs.define(eq=False)
class Refreshing(Drawn, api.QuotaPolicy):
    """The same, asked every minute."""

    name = "refreshing"
    refresh_every = 60.0


def leaf(name: str, policy: str = "", max: Mapping[str, Any] | None = None, **options: str) -> dict[str, Any]:
    """Return the configuration of a leaf; options are those of the policy."""
    properties = {"quota.policy": policy} if policy else {}
    properties |= {f"quota.policy.{option}": text for option, text in options.items()}
    found: dict[str, Any] = {"name": name, "properties": properties}
    if max is not None:
        found["resources"] = {"max": dict(max)}
    return found


def text(*queues: dict[str, Any], **more: Any) -> str:
    """Return a configuration."""
    config = partition(*queues)
    config["placementrules"] = [{"name": "provided", "create": True}]
    return document(config | more)


@attrs.frozen
class World:
    """A cluster, with short cuts."""

    cluster: Cluster

    def queue(self, path: str) -> Queue:
        at = self.cluster._objects().queue(path)
        assert at is not None
        return at

    def max(self, path: str) -> Mapping[str, int] | None:
        return self.queue(path).max

    def policy(self, path: str) -> Any:
        return self.at.quotas._bound[self.queue(path)][0].plugin

    @property
    def at(self) -> PartitionScheduler:
        found = self.cluster.scheduler.partition("test", "default")
        assert found is not None
        return found

    def run(self, app_id: str, queue: str, count: int, **more: Any) -> int:
        self.cluster.submit(application(app_id, queue), ask(count=count, **(more or {"vcore": 1})))
        self.cluster.run()
        return self.running(app_id)

    def running(self, app_id: str) -> int:
        return len(self.cluster.running(app_id))


Make = Callable[..., World]


def lenders(most: str = "", **properties: str) -> str:
    """Return a configuration of three siblings of which two may borrow."""
    option = {"most": most} if most else {}
    queues = [
        leaf("a", "borrowing", {"vcore": 10}, **option),
        leaf("b", "borrowing", {"vcore": 10}, **option),
        leaf("c", max={"vcore": 10}),
    ]
    for queue in queues:
        queue["properties"] |= properties
    return text(*queues, preemption={"quotapreemptionenabled": True})
