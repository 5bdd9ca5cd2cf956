"""The life of nodes: registered drained, opened once their pods are counted, drained, removed."""

from __future__ import annotations

import logging

from yunikorn.interface.messages import NewNodeInfo, NodeAction, UpdateNodeInfo
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.objects import Node
from yunikorn_kubernetes.shim.application_flow import ApplicationFlow
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_nodes import ClusterNode
from yunikorn_kubernetes.shim.shim_states import (
    ALLOCATED,
    DRAINING,
    HEALTHY,
    NODE,
    RECOVERING,
    REJECTED,
    fire,
)
from yunikorn_kubernetes.shim.task_flow import TaskFlow

_log = logging.getLogger("yunikorn.kubernetes.nodes")


class NodeFlow:
    """Moves nodes through their states."""

    def __init__(
        self, cluster: ShimCluster, applications: ApplicationFlow, tasks: TaskFlow, events: PodEvents
    ) -> None:
        self._cluster, self._applications, self._tasks, self._events = cluster, applications, tasks, events

    def changed(self, node: Node) -> None:
        """Register a new node, or send the changes of a known one."""
        name = node.metadata.name
        known = self._cluster.nodes.get(name)
        if known is not None and (known.uid != node.metadata.uid or known.state == REJECTED):
            self.removed(name)
            known = None
        translation = self._cluster.translation
        resource, attributes = translation.node_resource(node), translation.node_attributes(node)
        if known is None:
            known = ClusterNode(name, node.metadata.uid, resource=resource, attributes=attributes)
            known.unschedulable = node.spec.unschedulable
            self._register(known)
            return
        new_resource = None if resource == known.resource else resource
        new_attributes = {} if attributes == known.attributes else dict(attributes)
        known.resource, known.attributes = resource, attributes
        cordoned = node.spec.unschedulable
        flipped, known.unschedulable = cordoned != known.unschedulable, cordoned
        if known.state == RECOVERING and self._cluster.batches.is_stale(known.batch):
            self._send_new(known)
            return
        if new_resource is not None or new_attributes:
            self._cluster.batches.update_node(
                UpdateNodeInfo(name, attributes=new_attributes, schedulable_resource=new_resource)
            )
        if flipped:
            self._open_or_drain(known)

    def _register(self, node: ClusterNode) -> None:
        self._cluster.nodes[node.name] = node
        if fire(NODE, node, "RecoverNode"):
            self._send_new(node)
        for uid in self._cluster.on_node(node.name):
            task = self._cluster.tasks.get(uid)
            if task is not None:
                self._cluster.send(task)
            elif uid in self._cluster.foreign:
                self._cluster.send_foreign(uid)

    def _send_new(self, node: ClusterNode) -> None:
        node.batch = self._cluster.batches.add_node(
            NewNodeInfo(
                node.name,
                attributes=dict(node.attributes),
                schedulable_resource=node.resource,
                schedulable=False,
            )
        )

    def accepted(self, name: str) -> None:
        """Open a node that the core has registered, with the pods on it."""
        node = self._cluster.nodes.get(name)
        if node is None or self._cluster.batches.is_stale(node.batch):
            return
        if fire(NODE, node, "NodeAccepted"):
            self._events.node(name, node.uid, "NodeAccepted", f"node {name} is accepted by the scheduler")
            if node.unschedulable:
                fire(NODE, node, "DrainNode")
            elif fire(NODE, node, "NodeReady"):
                self._act(node, NodeAction.DRAIN_TO_SCHEDULABLE)

    def rejected(self, name: str, reason: str) -> None:
        """Note a node that the core refuses; its next change registers it again."""
        node = self._cluster.nodes.get(name)
        if node is None or self._cluster.batches.is_stale(node.batch):
            return
        if fire(NODE, node, "NodeRejected", reason):
            note = f"node {name} is rejected by the scheduler: {reason}"
            _log.warning("%s", note)
            self._events.node(name, node.uid, "NodeRejected", note, warning=True)

    def _open_or_drain(self, node: ClusterNode) -> None:
        if node.unschedulable and node.state == HEALTHY:
            if fire(NODE, node, "DrainNode"):
                self._act(node, NodeAction.DRAIN_NODE)
        elif not node.unschedulable and node.state == DRAINING and fire(NODE, node, "RestoreNode"):
            self._act(node, NodeAction.DRAIN_TO_SCHEDULABLE)

    def _act(self, node: ClusterNode, action: NodeAction) -> None:
        self._cluster.batches.update_node(UpdateNodeInfo(node.name, action))

    def removed(self, name: str) -> None:
        """Remove a node; pods that are placed there and not bound yet become pending again."""
        node = self._cluster.nodes.pop(name, None)
        if node is None:
            return
        if node.state != REJECTED:
            self._cluster.batches.remove_node(name, node.batch)
            self._events.node(name, node.uid, "NodeDeleted", f"node {name} is deleted from the scheduler")
        for uid in self._cluster.on_node(name):
            task = self._cluster.tasks.get(uid)
            if task is None:
                continue
            if task.state == ALLOCATED:
                self._tasks.node_lost(task)
            else:
                task.uuid = ""
        self._applications.node_removed(name)
