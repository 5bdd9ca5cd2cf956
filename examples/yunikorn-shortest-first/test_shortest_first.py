"""Contract test of the policy, and tests in a cluster that finds the policy by its entry point."""

from __future__ import annotations

import pytest
from yunikorn_shortest_first import ShortestFirst

from yunikorn_testing import AppSortPolicyContract, MakeScheduler, application, ask, assert_order, node

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            properties:
              application.sort.policy: shortest-first
"""


class TestShortestFirst(AppSortPolicyContract):
    """Contract test of application sort policies."""

    policy = ShortestFirst(resource="vcore")


@pytest.mark.parametrize(
    ("option", "first", "second"),
    [("", "little-memory", "few-cores"), ("vcore", "few-cores", "little-memory")],
)
def test_application_with_least_pending_is_served_first(
    option: str, first: str, second: str, scheduler: MakeScheduler
) -> None:
    more = f"              application.sort.policy.resource: {option}\n" if option else ""
    cluster = scheduler(QUEUES + more, node("n1", vcore=16, memory="200M"))
    cluster.submit(application("few-cores", "root.batch"), ask(vcore=1, memory="90M"))
    cluster.submit(application("little-memory", "root.batch"), ask(vcore=8, memory="10M"))
    cluster.run()
    assert_order(cluster, first, second)
