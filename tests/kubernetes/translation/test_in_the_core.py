"""Translated messages in the core: every tag, attribute and amount means there what the pod says."""

from __future__ import annotations

from typing import Any

from tests.core.kit import RM, configuration
from tests.kubernetes.bodies import container, namespace_of, node_of, pod_of
from yunikorn.interface.messages import Allocation
from yunikorn_kubernetes.objects import Namespace, Pod
from yunikorn_kubernetes.translation.asks import foreign_kind, pod_tags, preemption_policy, task_group_name
from yunikorn_kubernetes.translation.namespaces import namespace_tags
from yunikorn_kubernetes.translation.pod_applications import application_id, new_application
from yunikorn_kubernetes.translation.pod_resources import pod_resource
from yunikorn_kubernetes.translation.task_groups import read_gang
from yunikorn_kubernetes.translation.translated_nodes import node_attributes, node_resource

BY_NAMESPACE = configuration(placementrules=[{"name": "tag", "value": "namespace", "create": True}])
OURS = "yunikorn.apache.org/"


class Cluster(RM):
    """A resource manager that reports Kubernetes objects."""

    def __init__(self, config: str = "") -> None:
        super().__init__(config)
        self.known: set[str] = set()

    def add_node(self, name: str = "node-1", **amounts: str) -> None:
        """Register a node and make it schedulable."""
        node = node_of(name, status={"allocatable": amounts})
        self.node(name, node_attributes(node), capacity=node_resource(node))

    def add_pod(self, pod: Pod, namespace: Namespace | None = None) -> None:
        """Report a pod, and its application with the first pod."""
        name = application_id(pod)
        if name not in self.known:
            self.known.add(name)
            of_namespace = namespace_tags(namespace or namespace_of()).tags
            request = new_application(pod, of_namespace, read_gang(pod).gang).request
            self.update(new_applications=[request])
        self.report(pod, name)

    def report(self, pod: Pod, application: str, **tags: str) -> None:
        """Report the allocation of a pod, or without a node its request."""
        self.update(
            allocations=[
                Allocation(
                    pod.metadata.uid,
                    application,
                    node_id=pod.spec.node_name,
                    resource_per_alloc=pod_resource(pod),
                    allocation_tags={**pod_tags(pod), **tags},
                    task_group_name=task_group_name(pod),
                    preemption_policy=preemption_policy(pod),
                )
            ]
        )

    def place(self) -> dict[str, str]:
        """Return the nodes of the pods that are placed now, by uid."""
        self.take_response()
        self.scheduler.schedule()
        return {one.allocation_key: one.node_id for one in self.take_response().new_allocations}


def web(uid: str, **rest: Any) -> Pod:
    """Return a pod of half a core in queue `a`."""
    labels = {f"{OURS}app-id": "web", f"{OURS}queue": "root.a"}
    spec = {"containers": [container(cpu="500m")], **rest}
    return pod_of(name=f"web-{uid}", uid=uid, labels=spec.pop("labels", labels), **spec)


def test_pods_fill_a_node() -> None:
    cluster = Cluster()
    cluster.add_node(cpu="1", memory="1Gi", pods="110")
    for uid in "abc":
        cluster.add_pod(web(uid))
    assert sorted(cluster.place()) == ["a", "b"]
    assert cluster.entries("rejected_nodes") == cluster.entries("rejected_applications") == []


def test_pods_beyond_the_number_that_a_node_takes_wait() -> None:
    cluster = Cluster()
    cluster.add_node(cpu="8", pods="1")
    cluster.add_pod(web("a"))
    cluster.add_pod(web("b"))
    assert list(cluster.place()) == ["a"]


def test_foreign_pods_and_pods_with_a_node_take_their_room() -> None:
    cluster = Cluster()
    cluster.add_node(cpu="2", pods="110")
    other = pod_of(uid="x", schedulerName="other", nodeName="node-1", containers=[container(cpu="1")])
    cluster.report(other, "", foreign=foreign_kind(other))
    cluster.add_pod(web("a", nodeName="node-1"))
    cluster.add_pod(web("b"))
    cluster.add_pod(web("c"))
    assert cluster.place() == {"b": "node-1"}


def test_the_quota_of_a_namespace() -> None:
    cluster = Cluster(BY_NAMESPACE)
    cluster.add_node(cpu="8", pods="110")
    namespace = namespace_of({f"{OURS}namespace.quota": '{"cpu": "1"}', f"{OURS}namespace.maxApps": "1"})
    for uid in "abc":
        cluster.add_pod(web(uid, labels={f"{OURS}app-id": "web"}), namespace)
    assert len(cluster.place()) == 2
    assert cluster.find_queue("root.shop").max_applications == 1


def test_a_pod_of_a_daemon_set_runs_on_its_node() -> None:
    cluster = Cluster()
    cluster.add_node("node-1", cpu="8", pods="110")
    cluster.add_node("node-2", cpu="8", pods="110")
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    cluster.add_pod(web("a", owners=[{"kind": "DaemonSet"}], affinity=affinity))
    assert cluster.place() == {"a": "node-2"}


def member(uid: str, style: str) -> Pod:
    """Return a member of a gang of two."""
    annotations = {
        f"{OURS}task-group-name": "workers",
        f"{OURS}task-groups": '[{"name": "workers", "minMember": 2, "minResource": {"cpu": "500m"}}]',
        f"{OURS}schedulingPolicyParameters": f"gangSchedulingStyle={style}",
    }
    return web(uid, annotations=annotations)


def test_an_atomic_gang_is_placed_as_a_whole() -> None:
    cluster = Cluster()
    cluster.add_node(cpu="8", pods="110")
    cluster.add_pod(member("a", "atomic"))
    assert cluster.place() == {}
    cluster.add_pod(member("b", "atomic"))
    assert sorted(cluster.place()) == ["a", "b"]


def test_a_gang_larger_than_its_queue_is_refused() -> None:
    small = configuration({"name": "a", "resources": {"max": {"vcore": "500m"}}})
    cluster = Cluster(small)
    cluster.add_pod(member("a", "Hard"))
    (refused,) = cluster.entries("rejected_applications")
    assert "larger than max queue allocation" in refused.reason
