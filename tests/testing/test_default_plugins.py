"""The default plugins fulfil the contracts for plugins."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from yunikorn.framework.kinds import DOOR, WORKLOAD_READER
from yunikorn.framework.registry import Registry
from yunikorn_history.database import open_writer
from yunikorn_history.history_estimator import RunTimesOfHistory
from yunikorn_plugins import ldap_client
from yunikorn_plugins.admission_policies import AdmissionWindow
from yunikorn_plugins.anti_affinity import AntiAffinity
from yunikorn_plugins.events import JsonLines, Log
from yunikorn_plugins.ldap_groups import Ldap
from yunikorn_plugins.licences import Licences
from yunikorn_plugins.os_groups import Os
from yunikorn_plugins.permit_policies import Together
from yunikorn_plugins.placement_rules import Fixed, Provided, Tag, User
from yunikorn_plugins.predicates import NodeSelector, Taints
from yunikorn_plugins.quota_policies import Borrowing, TimeOfDay
from yunikorn_plugins.rm import AskResourceManager, TellResourceManager
from yunikorn_plugins.run_time_estimators import LearnedRunTimes, RequestedRunTime, RunTimesOfFile
from yunikorn_plugins.spread import Spread
from yunikorn_plugins.submit_policies import DefaultTags
from yunikorn_plugins.topology_sources import AttributeTopology
from yunikorn_policies import (
    app_sort,
    backfilling,
    gang_placement,
    multifactor,
    node_sort,
    preemption,
    queue_sort,
    reservations,
)
from yunikorn_testing import (
    AdmissionPolicyContract,
    AppSortPolicyContract,
    EventSinkContract,
    GangPlacementPolicyContract,
    NodeSortPolicyContract,
    PermitPolicyContract,
    PlacementRuleContract,
    PluginContract,
    PredicateContract,
    PreemptionPolicyContract,
    QueueSortPolicyContract,
    QuotaPolicyContract,
    ReservationPolicyContract,
    RunTimeEstimatorContract,
    SubmitPolicyContract,
    TopologySourceContract,
    UserGroupResolverContract,
    application,
    ask,
    node,
)
from yunikorn_testing.samples import AskSample, NodeSample

PAST_RUNS = Path(__file__).parent / "past-runs.csv"
SELECTOR = "yunikorn.apache.org/node-selector"
TOLERATIONS = "yunikorn.apache.org/tolerations"


class TestFifo(AppSortPolicyContract):
    policy = app_sort.Fifo()


class TestFair(AppSortPolicyContract):
    policy = app_sort.FairApplications()


class TestStateAware(AppSortPolicyContract):
    policy = app_sort.StateAware()


class TestMultifactor(AppSortPolicyContract):
    policy = multifactor.Multifactor({"age": 1000.0, "fair-share": 2000.0, "size": 10.0, "priority": 0.5})


class TestMultifactorWithoutTime(AppSortPolicyContract):
    policy = multifactor.Multifactor({"size": 1.0, "priority": -1.0}, favor_small=True)


class TestFairQueues(QueueSortPolicyContract):
    policy = queue_sort.FairQueues()


class TestFairNodes(NodeSortPolicyContract):
    policy = node_sort.FairNodes()


class TestFairNodesByWeight(NodeSortPolicyContract):
    policy = node_sort.FairNodes({"vcore": 1.0, "gpu": 2.5})


class TestBinPacking(NodeSortPolicyContract):
    policy = node_sort.BinPacking({"memory": 0.0, "vcore": 3.0})


class TestStandard(PreemptionPolicyContract):
    policy = preemption.StandardPreemption()


class TestStandardReservations(ReservationPolicyContract):
    policy = reservations.StandardReservations()


class TestBoundedReservations(ReservationPolicyContract):
    policy = reservations.StandardReservations(
        delay=1.5, total=9, perqueue=3, perapplication=1, duration=600.0, pause=5.0
    )


class TestEasyBackfilling(ReservationPolicyContract):
    policy = backfilling.EasyBackfilling(by="median", assumed=60.0)


class TestConservativeBackfilling(ReservationPolicyContract):
    policy = backfilling.ConservativeBackfilling(depth=3)


class TestBestFit(GangPlacementPolicyContract):
    policy = gang_placement.BestFit()


class TestLeastFree(GangPlacementPolicyContract):
    policy = gang_placement.LeastFree()


class TestBalanced(GangPlacementPolicyContract):
    policy = gang_placement.Balanced()


class TestAttributeTopology(TopologySourceContract):
    source = AttributeTopology(["block", "rack"])


class TestRequestedRunTime(RunTimeEstimatorContract):
    estimator = RequestedRunTime(("team", "yunikorn.apache.org/run-time-limit"))


class TestLearnedRunTimes(RunTimeEstimatorContract):
    estimator = LearnedRunTimes(fewest=3, recent=20)


class TestRunTimesOfFile(RunTimeEstimatorContract):
    estimator = RunTimesOfFile(path=str(PAST_RUNS))


class TestRunTimesOfHistory(RunTimeEstimatorContract):
    estimator = RunTimesOfHistory(path="past.db")

    @pytest.fixture(autouse=True)
    def history(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make an empty history in the current folder."""
        monkeypatch.chdir(tmp_path)
        open_writer("past.db").close()


class TestProvided(PlacementRuleContract):
    rule = Provided()


class TestUser(PlacementRuleContract):
    rule = User()


class TestFixed(PlacementRuleContract):
    rule = Fixed("root.default")


class TestTag(PlacementRuleContract):
    rule = Tag("namespace")


class TestNodeSelector(PredicateContract):
    predicate = NodeSelector()

    def asks(self) -> Sequence[AskSample]:
        texts = ("zone=a", "zone in (a, b)", "!rack", "zone!=a", "(", "zone=")
        return [*super().asks(), *(ask(text, vcore=1, tags={SELECTOR: text}) for text in texts)]


class TestNodeSelectorOfSomeKeys(TestNodeSelector):
    predicate = NodeSelector(keys=("zone", "rack"))


class TestTaints(PredicateContract):
    predicate = Taints()

    def asks(self) -> Sequence[AskSample]:
        texts = ("team=red", "*", "old", "?")
        return [*super().asks(), *(ask(text, vcore=1, tags={TOLERATIONS: text}) for text in texts)]

    def nodes(self) -> Sequence[NodeSample]:
        texts = ("team=red:NoSchedule", "old:NoExecute", "new:PreferNoSchedule", ":")
        return [*super().nodes(), *(node(text, {"taints": text}, vcore=2) for text in texts)]


class TestSpread(PredicateContract):
    predicate = Spread("rack", max=2, skew=1)

    def asks(self) -> Sequence[AskSample]:
        texts = ("max=1", "skew=1", "skew=2, max=9", "off", "max", "max=0")
        tagged = [ask(text, vcore=1, tags={"yunikorn.apache.org/spread": text}) for text in texts]
        other = [ask("other", app=application("other")), ask("again", app=application("other"))]
        return [*super().asks(), *tagged, *other]

    def nodes(self) -> Sequence[NodeSample]:
        return [
            *super().nodes(),
            *(node(name, {"rack": name[0]}, vcore=2) for name in ("a1", "a2", "b", "c")),
        ]


class TestSpreadPerTaskGroup(TestSpread):
    predicate = Spread("rack", max=1, per="task-group")

    def asks(self) -> Sequence[AskSample]:
        grouped = [attrs.evolve(one, key=f"{one.key}-in-group", task_group="g") for one in super().asks()]
        return [*super().asks(), *grouped]


class TestAntiAffinity(PredicateContract):
    predicate = AntiAffinity("rack")

    def asks(self) -> Sequence[AskSample]:
        labels, avoided = "yunikorn.apache.org/labels", "yunikorn.apache.org/anti-affinity"
        texts = [("web", ""), ("", "web"), ("web, db", "web"), ("db", "x"), ("a b", ""), ("", ",")]
        tagged = [ask(f"{one}-{two}", tags={labels: one, avoided: two}) for one, two in texts]
        return [*super().asks(), *tagged, ask("app", app=application(tags={labels: "x"}))]

    def nodes(self) -> Sequence[NodeSample]:
        return [*super().nodes(), *(node(name, {"rack": name[0]}, vcore=2) for name in ("a1", "a2", "b"))]


class TestLicences(PredicateContract):
    predicate = Licences({"matlab": 5, "ansys": 1})

    def asks(self) -> Sequence[AskSample]:
        texts = ("matlab", "matlab=2", "ansys, matlab=3", "maple", "=", "matlab=0")
        tagged = [ask(text, vcore=1, tags={"licences": text}) for text in texts]
        return [*super().asks(), *tagged, ask("app", app=application(tags={"licences": "ansys"}))]


class TestResourceManagerAsPredicate(PredicateContract):
    predicate = AskResourceManager()


class TestLog(EventSinkContract):
    sink = Log(level="DEBUG", logger="test")


class TestJsonLines(EventSinkContract):
    sink = JsonLines(Path(tempfile.mkdtemp()) / "events.jsonl")


class TestResourceManagerAsSink(EventSinkContract):
    sink = TellResourceManager()


class TestOs(UserGroupResolverContract):
    resolver = Os()


PASSWORD_FOLDER = Path(tempfile.mkdtemp())
(PASSWORD_FOLDER / "BindPassword").write_text("secret")
READER = "cn=reader,dc=example"


class TestLdap(UserGroupResolverContract):
    resolver = Ldap(
        PASSWORD_FOLDER,
        # An address, because ldap3 resolves names even for a directory in memory.
        host="127.0.0.1",
        basedn="dc=example",
        filter="(&(objectClass=person)(uid=%s))",
        binduser=READER,
    )

    @pytest.fixture(autouse=True)
    def directory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = ldap_client.connect

        def connect(server: Any, *arguments: object, **options: object) -> Any:
            made: Any = real(server, READER, "secret", client_strategy="MOCK_SYNC", raise_exceptions=True)
            made.strategy.add_entry(READER, {"userPassword": "secret", "sn": "reader"})
            for user in ("ann", "ann.lee"):
                groups = [f"cn={group},ou=groups,dc=example" for group in ("staff", "science")]
                made.strategy.add_entry(
                    f"uid={user},dc=example", {"objectClass": "person", "uid": user, "memberOf": groups}
                )
            return made

        monkeypatch.setattr(ldap_client, "connect", connect)

    def test_directory_answers(self) -> None:
        assert self.fresh().groups("ann.lee") == ["ann.lee", "science", "staff"]
        assert self.fresh().groups("root") is None


class TestDefaultTags(SubmitPolicyContract):
    policy = DefaultTags({"zone": "a"}, ("zone",))


class TestAdmissionWindow(AdmissionPolicyContract):
    policy = AdmissionWindow("09:00", "00:10", ("thu", "fri"), ("root.default",), 1.5)


class TestTogether(PermitPolicyContract):
    policy = Together(count="size")

    def requests(self) -> Sequence[AskSample]:
        return [
            *super().requests(),
            ask("two", tags={"together": "job", "size": "2"}),
            ask("odd", tags={"together": "job", "size": "-1"}),
        ]


ELSEWHERE = (
    "tests.kubernetes.predicates.test_node_affinity",
    "tests.kubernetes.predicates.test_node_ports",
    "tests.kubernetes.predicates.test_node_predicates",
    "tests.kubernetes.predicates.test_pod_affinity",
    "tests.kubernetes.predicates.test_topology_spread",
    "tests.kubernetes.preferences.test_preferred_nodes",
    "tests.kubernetes.volumes.test_contracts",
)
"""Modules with the contracts of plugins for pods, whose samples are pods and volumes."""


def test_no_default_plugin_is_left_out(registry: Registry) -> None:
    modules = [globals(), *(vars(importlib.import_module(name)) for name in ELSEWHERE)]
    held = {
        type(contract().given)
        for namespace in modules
        for contract in namespace.values()
        if isinstance(contract, type)
        and issubclass(contract, PluginContract)
        and contract.__name__[:4] == "Test"
    }
    # Default doors are parts of the service, which the tests of the service hold to what doors promise.
    # Those of doors and readers are in tests/service, tests/rest and tests/kubernetes.
    elsewhere = (DOOR, WORKLOAD_READER)
    assert held == {offer.cls for offer in registry.offers() if offer.kind not in elsewhere}


class TestTimeOfDay(QuotaPolicyContract):
    policy = TimeOfDay({"mon-fri 08:00-18:00": "25%", "22:00-06:00": "vcore:10 gpu:0"}, "Europe/Berlin")


class TestBorrowing(QuotaPolicyContract):
    policy = Borrowing("50%")


class TestBorrowingWithoutBound(QuotaPolicyContract):
    policy = Borrowing()
