"""Where priorities stand beside a key of several parts: as the page on application sort policies says."""

from __future__ import annotations

import attrs
import pytest

from yunikorn.api import Application, AppSortPolicy
from yunikorn.testing import application, ask, assert_order, node
from yunikorn.testing.clusters import Clusters


@attrs.frozen
class BySize(AppSortPolicy):
    """By what waits, then the last that came; both before the priority, or only the first of them."""

    name = "by-size"
    together: bool = False

    def key(self, app: Application) -> object:
        key = (app.pending.get("vcore", 0), -app.submitted)
        return (key,) if self.together else key


@pytest.mark.parametrize(
    ("properties", "order"),
    [
        ("", ("urgent", "small", "late", "early")),
        ("application.sort.priority: disabled", ("small", "urgent", "late", "early")),
        (
            "application.sort.priority: disabled, application.sort.policy.together: 'true'",
            ("small", "late", "urgent", "early"),
        ),
    ],
)
def test_priorities_come_before_a_tuple_after_its_first_part_or_after_all_of_it(
    properties: str, order: tuple[str, ...]
) -> None:
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
