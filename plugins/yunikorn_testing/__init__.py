"""Test kit for plugin authors: builders of samples, clusters, assertions, and contracts.

    from yunikorn_testing import MakeScheduler, NodeSortPolicyContract, application, ask, assert_placed, node

    class TestColdest(NodeSortPolicyContract):
        policy = Coldest("inlet-celsius")

    def test_task_is_placed_on_the_cool_node(scheduler: MakeScheduler) -> None:
        hot, cool = (node(name, {"inlet-celsius": name}) for name in ("30", "18"))
        cluster = scheduler(QUEUES, hot, cool)
        cluster.submit(application("app"), ask(vcore=1))
        cluster.run()
        assert_placed(cluster, "app", on="18")

The fixture `scheduler` is available in pytest without further setup. Amounts are written as in
`queues.yaml`: `vcore=2` is two cores, `vcore="500m"` half a core, `memory="4G"`. Plugins read the samples in
the units of the scheduler, milli-vcores and bytes.
"""

from __future__ import annotations

try:
    import pytest
except ImportError as error:
    raise ImportError(
        "yunikorn_testing needs pytest, which is not installed: pip install 'yunikorn[testing]'"
    ) from error

# Rewritten asserts of the contracts show values when they fail, like asserts in test modules.
pytest.register_assert_rewrite(
    *(
        f"yunikorn_testing.{name}_contract"
        for name in (
            *("answers", "books", "command", "door", "permit", "placement", "plugin", "predicate"),
            *("preemption", "quota", "reservation", "run_time", "sink"),
        )
    ),
    "yunikorn_testing.sort_contracts",
    "yunikorn_testing.topology_contracts",
    "yunikorn_testing.worker_contracts",
)

from yunikorn_testing.assertions import (  # noqa: E402
    assert_node_order,
    assert_order,
    assert_pending_because,
    assert_placed,
    assert_queue,
    assert_rejected_because,
)
from yunikorn_testing.cluster import Cluster, Clusters, MakeScheduler, Placement  # noqa: E402
from yunikorn_testing.command_contract import CommandContract  # noqa: E402
from yunikorn_testing.door_contract import DoorContract, ServiceSample  # noqa: E402
from yunikorn_testing.gang_samples import (  # noqa: E402
    DomainSample,
    GangPartSample,
    GangSample,
    gang,
    gang_part,
    topology,
)
from yunikorn_testing.offering import registry_with  # noqa: E402
from yunikorn_testing.permit_contract import PermitPolicyContract  # noqa: E402
from yunikorn_testing.placement_contract import PlacementRuleContract  # noqa: E402
from yunikorn_testing.plugin_contract import PluginContract  # noqa: E402
from yunikorn_testing.predicate_contract import PredicateContract  # noqa: E402
from yunikorn_testing.preemption_contract import PreemptionPolicyContract  # noqa: E402
from yunikorn_testing.quota_contract import QuotaPolicyContract  # noqa: E402
from yunikorn_testing.reservation_contract import ReservationPolicyContract  # noqa: E402
from yunikorn_testing.run_time_contract import RunTimeEstimatorContract  # noqa: E402
from yunikorn_testing.samples import (  # noqa: E402
    AllocationSample,
    Amounts,
    ApplicationSample,
    AskSample,
    NodeSample,
    QueueSample,
    QueueTreeSample,
    allocation,
    application,
    ask,
    foreign_task,
    node,
    queue,
)
from yunikorn_testing.sink_contract import EventSinkContract  # noqa: E402
from yunikorn_testing.sort_contracts import (  # noqa: E402
    AppSortPolicyContract,
    NodeSortPolicyContract,
    QueueSortPolicyContract,
)
from yunikorn_testing.topology_contracts import (  # noqa: E402
    GangPlacementPolicyContract,
    TopologySourceContract,
)
from yunikorn_testing.worker_contracts import (  # noqa: E402
    AdmissionPolicyContract,
    SubmitPolicyContract,
    UserGroupResolverContract,
    submission,
)

__all__ = [
    "AdmissionPolicyContract",
    "AllocationSample",
    "Amounts",
    "AppSortPolicyContract",
    "ApplicationSample",
    "AskSample",
    "Cluster",
    "Clusters",
    "CommandContract",
    "DomainSample",
    "DoorContract",
    "EventSinkContract",
    "GangPartSample",
    "GangPlacementPolicyContract",
    "GangSample",
    "MakeScheduler",
    "NodeSample",
    "NodeSortPolicyContract",
    "PermitPolicyContract",
    "Placement",
    "PlacementRuleContract",
    "PluginContract",
    "PredicateContract",
    "PreemptionPolicyContract",
    "QueueSample",
    "QueueSortPolicyContract",
    "QueueTreeSample",
    "QuotaPolicyContract",
    "ReservationPolicyContract",
    "RunTimeEstimatorContract",
    "ServiceSample",
    "SubmitPolicyContract",
    "TopologySourceContract",
    "UserGroupResolverContract",
    "allocation",
    "application",
    "ask",
    "assert_node_order",
    "assert_order",
    "assert_pending_because",
    "assert_placed",
    "assert_queue",
    "assert_rejected_because",
    "foreign_task",
    "gang",
    "gang_part",
    "node",
    "queue",
    "registry_with",
    "submission",
    "topology",
]
