"""Priorities with tuples as keys, as docs/plugins describes for application sort policies."""

from __future__ import annotations

import pytest

from yunikorn.api import Application, AppSortPolicy
from yunikorn_testing import application, ask, assert_order, node
from yunikorn_testing.cluster import Clusters


class BySize(AppSortPolicy):
    """Orders by pending size, then latest first."""

    name = "by-size"

    def key(self, app: Application) -> object:
        return (app.pending.get("vcore", 0), -app.submitted)


@pytest.mark.parametrize(
    ("properties", "order"),
    [
        ("", ("urgent", "small", "late", "early")),
        ("application.sort.priority: disabled", ("small", "late", "urgent", "early")),
    ],
)
def test_priorities_precede_tuple_keys_or_are_ignored(properties: str, order: tuple[str, ...]) -> None:
    clusters = Clusters()
    config = f"""
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{{name: a, properties: {{application.sort.policy: by-size, {properties}}}}}]
"""
    cluster = clusters(config, plugins=[BySize])
    for name, size, priority in (("early", 2, 0), ("urgent", 2, 5), ("late", 2, 0), ("small", 1, 0)):
        cluster.advance(1)
        cluster.submit(application(name, "root.a"), ask(vcore=size, priority=priority))
    cluster.add(node("n", vcore=7))
    cluster.run()
    assert_order(cluster, *order)
    clusters.close()
