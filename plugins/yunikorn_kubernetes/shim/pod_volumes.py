"""Volumes of pods, as the flows of the shim use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.volumes.cluster_volumes import ClusterVolumes, VolumeConflict
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder


class PodVolumes:
    """Implementation of `ports.Volumes`."""

    def __init__(self, volumes: ClusterVolumes, binder: VolumeBinder) -> None:
        """Create for the volumes of a cluster; set `on_change` before use."""
        self._volumes, self._binder = volumes, binder
        self.on_change: Callable[[], object] = lambda: None
        """Called when a choice of volumes may have changed what other pods can use."""

    def tags(self, pod: Pod) -> Mapping[str, str]:
        """Return the tags about the volumes of a pod."""
        return self._volumes.tags(pod.metadata.uid).tags if pod.spec.volumes else {}

    def problems(self, pod: Pod) -> Sequence[str]:
        """Return why a pod cannot be scheduled before its claims change."""
        return self._volumes.tags(pod.metadata.uid).problems if pod.spec.volumes else ()

    def attributes(self, node: str) -> Mapping[str, str]:
        """Return the attributes of a node that concern volumes."""
        return self._volumes.attributes(node)

    def assume(self, pod: Pod, node: str) -> str:
        """Choose volumes for a pod that the core has placed; return why that is not possible, or ""."""
        if not pod.spec.volumes:
            return ""
        try:
            if self._volumes.assume(pod.metadata.uid, node):
                self.on_change()
        except VolumeConflict as conflict:
            return str(conflict) or "the volumes of the pod cannot be used on the node"
        return ""

    async def bind(self, pod: Pod) -> None:
        """Bind the chosen volumes, and wait for them; raises `YunikornError`."""
        if pod.spec.volumes:
            try:
                await self._binder.bind(pod.metadata.uid)
            finally:
                self.on_change()

    def forget(self, uid: str) -> None:
        """Drop what was chosen for a pod."""
        if self._volumes.assumption(uid) is not None:
            self._volumes.forget(uid)
            self.on_change()
