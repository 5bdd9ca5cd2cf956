"""Factory of test clusters behind the fixture `scheduler`; fails a test if a plugin failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

from yunikorn.api import Plugin
from yunikorn.framework.registry import Registry
from yunikorn.testing.cluster import Cluster
from yunikorn.testing.offering import registry_with
from yunikorn.testing.samples import NodeSample

Faults = Literal["fail", "expected"]

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
"""
"""Default configuration of a cluster: one queue, `root.default`, open to all users."""


class Clusters:
    """Factory of clusters that closes all of them at the end of a test."""

    def __init__(self) -> None:
        self._made: list[tuple[Cluster, Faults]] = []

    def __call__(
        self,
        config: str | Path = QUEUES,
        *nodes: NodeSample,
        plugins: Sequence[type[Plugin] | ModuleType] | None = None,
        registry: Registry | None = None,
        failures: Faults = "fail",
    ) -> Cluster:
        """Return a cluster with these nodes; `config` is the text of a configuration, or the path of a file.

        By default the cluster uses the installed plugins. With `plugins` it uses the default plugins and
        these, without installation. `failures="expected"` is for tests in which a plugin fails on purpose.
        """
        if registry is None:
            registry = Registry.load() if plugins is None else registry_with(*plugins)
        elif plugins is not None:
            raise TypeError("give either plugins or a registry, not both")
        text = config.read_text("utf-8") if isinstance(config, Path) else config
        cluster = Cluster(text, registry, nodes)
        self._made.append((cluster, failures))
        return cluster

    def close(self) -> None:
        """Close all clusters. Raises `AssertionError` if a plugin failed unexpectedly."""
        for cluster, _ in self._made:
            cluster.close()
        found = [
            f"{failure.message} ({failure.count} times)"
            for cluster, expected in self._made
            if expected == "fail"
            for failure in cluster.failures
            if not failure.last
        ]
        self._made.clear()
        if found:
            raise AssertionError(
                "\n".join(["plugins failed; the scheduler contained the failures and continued:", *found])
            )


MakeScheduler: TypeAlias = Clusters
"""Type of the fixture `scheduler`."""
