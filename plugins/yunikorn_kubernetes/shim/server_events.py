"""Events of the shim, as events of the Kubernetes API."""

from __future__ import annotations

from yunikorn_kubernetes.api_server.api_resources import CONFIG_MAPS, NODES, PODS
from yunikorn_kubernetes.api_server.pod_events import NORMAL, WARNING, PodEvents, reference
from yunikorn_kubernetes.objects import ConfigMap, ObjectReference, Pod


class ServerEvents:
    """Implementation of `ports.Notices` and of the events of ConfigMaps."""

    def __init__(self, events: PodEvents) -> None:
        self._events = events

    def pod(self, pod: Pod, reason: str, action: str, note: str, *, warning: bool = False) -> None:
        """Record an event of a pod."""
        self._report(reference(PODS, pod), reason, action, note, warning)

    def node(self, name: str, uid: str, reason: str, note: str, *, warning: bool = False) -> None:
        """Record an event of a node."""
        regarding = ObjectReference(api_version=NODES.api_version, kind=NODES.kind, name=name, uid=uid)
        self._report(regarding, reason, reason, note, warning)

    def config_map(
        self, config_map: ConfigMap, reason: str, action: str, note: str, *, warning: bool = False
    ) -> None:
        """Record an event of a ConfigMap."""
        self._report(reference(CONFIG_MAPS, config_map), reason, action, note, warning)

    def _report(self, regarding: ObjectReference, reason: str, action: str, note: str, warning: bool) -> None:
        self._events.report(regarding, reason, action, note, type=WARNING if warning else NORMAL)
