"""Random changes of a cluster: afterwards the books of the core agree with the objects of the API server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from tests.example_counts import examples
from tests.kubernetes.shim.fake_cluster import CONFIG, RM, START, FakeCluster
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import Container, Pod, ResourceRequirements

NODES = ("n1", "n2", "n3")
NUMBERS = st.integers(0, 1_000_000)
GROUPS = [{"name": "workers", "minMember": 2, "minResource": {"cpu": "1"}}]


class RandomChanges(RuleBasedStateMachine):
    """A cluster under random changes, failures, outages and restarts."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.cluster = self.do(self.make())
        self.count = 0

    async def make(self) -> FakeCluster:
        """Return a running cluster with a node."""
        cluster = FakeCluster()
        await cluster.start()
        cluster.add_node("n1", "4")
        return cluster

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the event loop of the cluster."""
        return self.loop.run_until_complete(work)

    def change(self, change: Any) -> None:
        """Make a change in the event loop, and wait until all is at rest."""

        async def work() -> None:
            change()
            await self.cluster.settle()

        self.do(work())

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.do(self.cluster.kill())
            self.loop.close()

    def pick(self, number: int, found: list[Pod]) -> Pod | None:
        """Return one of the pods."""
        return found[number % len(found)] if found else None

    def live(self) -> list[Pod]:
        """Return the pods that have not ended."""
        return [
            pod
            for pod in self.cluster.pod_objects.values()
            if pod.status.phase not in ("Succeeded", "Failed")
        ]

    def waiting(self) -> list[Pod]:
        """Return the pods that wait for a node."""
        return [
            pod for pod in self.live() if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        ]

    # -- pods -----------------------------------------------------------------------------------------

    @rule(cpu=st.sampled_from(["500m", "1", "2"]), app=st.sampled_from("abc"))
    def add(self, cpu: str, app: str) -> None:
        self.count += 1
        self.change(lambda: self.cluster.add_pod(f"p{self.count}", cpu, app=app))

    @rule(style=st.sampled_from(["Soft", "Hard", "Atomic"]), number=st.integers(1, 2))
    def add_members(self, style: str, number: int) -> None:
        parameters = f"gangSchedulingStyle={style} placeholderTimeoutInSeconds=60"
        annotations = {
            "yunikorn.apache.org/task-groups": json.dumps(GROUPS),
            "yunikorn.apache.org/task-group-name": "workers",
            "yunikorn.apache.org/schedulingPolicyParameters": parameters,
        }

        def add() -> None:
            for _ in range(number):
                self.count += 1
                self.cluster.add_pod(f"m{self.count}", app=f"gang-{style}", annotations=annotations)

        self.change(add)

    @rule(node=st.sampled_from(NODES))
    def add_foreign(self, node: str) -> None:
        self.count += 1
        self.change(lambda: self.cluster.add_pod(f"f{self.count}", "500m", ours=False, node_name=node))

    @rule(number=NUMBERS, phase=st.sampled_from(["Succeeded", "Failed"]))
    def finish(self, number: int, phase: str) -> None:
        pod = self.pick(number, [pod for pod in self.live() if pod.spec.node_name])
        if pod is not None:
            self.change(lambda: self.cluster.finish(pod, phase))

    @rule(number=NUMBERS)
    def remove(self, number: int) -> None:
        pod = self.pick(number, [*self.cluster.pod_objects.values()])
        if pod is not None:
            self.change(lambda: self.cluster.remove_pod(pod))

    @rule(number=NUMBERS)
    def delete_slowly(self, number: int) -> None:
        pod = self.pick(number, self.live())
        if pod is not None:
            meta = replace(pod.metadata, deletion_timestamp=START)
            self.change(lambda: self.cluster.put_pod(replace(pod, metadata=meta)))

    @rule()
    def end_deleted(self) -> None:
        self.change(self.cluster.end_deleted)

    @rule(number=NUMBERS, cpu=st.sampled_from(["500m", "1500m"]))
    def resize(self, number: int, cpu: str) -> None:
        pod = self.pick(number, self.live())
        if pod is not None:
            containers = (Container(resources=ResourceRequirements(requests={"cpu": cpu})),)
            spec = replace(pod.spec, containers=containers)
            self.change(lambda: self.cluster.put_pod(replace(pod, spec=spec)))

    @rule(number=NUMBERS, node=st.sampled_from(NODES))
    def bind_by_others(self, number: int, node: str) -> None:
        waiting = [
            pod for pod in self.live() if not pod.spec.node_name and not pod.metadata.deletion_timestamp
        ]
        pod = self.pick(number, waiting)
        if pod is not None:
            self.change(lambda: self.cluster.bind_by_others(pod, node))

    # -- nodes ----------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NODES), cpu=st.sampled_from(["1", "2", "4"]))
    def add_node(self, name: str, cpu: str) -> None:
        self.change(lambda: self.cluster.add_node(name, cpu))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        if name in self.cluster.node_objects:
            self.change(lambda: self.cluster.remove_node(name))

    @rule(name=st.sampled_from(NODES), cordoned=st.booleans())
    def cordon(self, name: str, cordoned: bool) -> None:
        node = self.cluster.node_objects.get(name)
        if node is not None:
            changed = replace(node, spec=replace(node.spec, unschedulable=cordoned))
            self.change(lambda: self.cluster.put_node(changed))

    # -- failures -------------------------------------------------------------------------------------

    @rule(verb=st.sampled_from(["bind", "bind answer", "delete", "create", "patch"]), count=st.integers(1, 3))
    def fail(self, verb: str, count: int) -> None:
        self.cluster.failing[verb] = [ApiError(500, "InternalError", "no luck") for _ in range(count)]

    @precondition(lambda self: self.cluster.is_watching)
    @rule()
    def stop_watching(self) -> None:
        self.cluster.is_watching = False

    @precondition(lambda self: not self.cluster.is_watching)
    @rule()
    def watch_again(self) -> None:
        self.change(self.cluster.watch_again)

    @rule()
    def restart(self) -> None:
        self.cluster.is_watching = True
        self.do(self.cluster.restart())

    @rule()
    def report_again(self) -> None:
        if not self.cluster.is_watching:
            self.change(self.cluster.watch_again)
        self.change(lambda: self.cluster.core.scheduler.resync(RM, "a test"))

    @rule(number=NUMBERS)
    def fail_application(self, number: int) -> None:
        found = [*self.cluster.partition().applications]
        if found:
            app_id = found[number % len(found)]
            core = self.cluster.core.scheduler
            self.change(lambda: core.fail_application(RM, "default", app_id, "an operator says so"))

    @rule(limit=st.sampled_from([1, 100]))
    def change_quota(self, limit: int) -> None:
        queue = "          - name: lab\n"
        text = CONFIG.replace(queue, f"{queue}            resources: {{max: {{vcore: {limit}}}}}\n")
        self.cluster.config = text
        self.change(lambda: self.cluster.core.scheduler.reload_configuration(RM, text))

    @rule(seconds=st.sampled_from([1, 31, 70]))
    def wait(self, seconds: int) -> None:
        self.do(self.cluster.advance(seconds))

    # -- invariants -----------------------------------------------------------------------------------

    @invariant()
    def no_pod_is_bound_twice(self) -> None:
        if hasattr(self, "cluster"):
            assert not [
                uid for uid, count in Counter(uid for uid, _ in self.cluster.bindings).items() if count > 1
            ]

    @invariant()
    def the_books_agree(self) -> None:
        if not hasattr(self, "cluster") or not self.cluster.is_watching:
            return
        cluster = self.cluster
        counted: dict[str, tuple[str, bool]] = {}
        for node in cluster.partition().nodes.values():
            for one in node.allocations.values():
                assert one.key not in counted, "a pod is counted twice"
                counted[one.key] = node.id, False
            for key in node.foreign:
                assert key not in counted, "a pod is counted twice"
                counted[key] = node.id, True
        expected = {
            pod.metadata.uid: pod.spec.node_name
            for pod in self.live()
            if pod.spec.node_name in cluster.node_objects
        }
        assert {key: node for key, (node, _) in counted.items()} == expected
        tasks = cluster.shim.cluster.tasks
        ours = [pod for pod in self.live() if pod.spec.scheduler_name == "yunikorn"]
        waiting = {
            pod.metadata.uid for pod in ours if not pod.spec.node_name and not pod.metadata.deletion_timestamp
        }
        bound = {pod.metadata.uid for pod in ours if pod.spec.node_name}
        assert tasks.keys() == waiting | bound
        assert {uid for uid, task in tasks.items() if task.is_bound} == bound
        requested = {
            ask.key
            for app in cluster.partition().applications.values()
            for ask in app.asks.values()
            if ask.pending
        }
        assert requested <= waiting
        for uid in waiting - requested:
            # Members of a gang wait in the shim until their placeholders are bound.
            assert tasks[uid].state in ("New", "Failed") or tasks[uid].deleting, tasks[uid]


TestRandomChanges = RandomChanges.TestCase
TestRandomChanges.settings = settings(
    max_examples=examples(15),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
