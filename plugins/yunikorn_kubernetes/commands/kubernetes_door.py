"""The door of a service to a Kubernetes cluster: the shim, a resource manager in the same process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import click

from yunikorn.api import Service
from yunikorn_kubernetes.shim.network import KubernetesNetwork, KubernetesOptions
from yunikorn_service.service import Service as RunningService
from yunikorn_service.service_door import ServiceDoor
from yunikorn_service.service_settings import ServerSettings


class KubernetesDoor(ServiceDoor):
    """The shim in the place of the gRPC server of a service."""

    name = "kubernetes"
    for_resource_managers = True

    def __init__(self, options: KubernetesOptions) -> None:
        self._options = options
        self._network: KubernetesNetwork | None = None

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return no options: `yunikorn kubernetes` declares them, and always opens the door."""
        return ()

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], settings: ServerSettings) -> Self | None:
        """Return None, because a service for a cluster has no other resource managers."""
        return None

    async def start(self, service: Service) -> str:
        """Begin to connect; returns the address of the API server. Raises `UsageError`."""
        assert isinstance(service, RunningService)
        self._network = KubernetesNetwork(service.core, self._options)
        self.ended = self._network.ended
        return await self._network.start()

    async def stop(self) -> None:
        """Stop the shim and the core."""
        if self._network is not None:
            await self._network.stop()

    def unready(self) -> str:
        """Return the reason for which the shim is not ready; empty if it is."""
        return "" if self._network is None else self._network.unready

    @property
    def config_source(self) -> str:
        """Place of the configuration; empty if the core has one of its own."""
        return "" if self._network is None else self._network.config_source
