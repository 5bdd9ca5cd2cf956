"""Nodes of the cluster, each with what the core knows of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from yunikorn.resources import NOTHING, Resource
from yunikorn_kubernetes.shim.shim_states import ACCEPTED, DRAINING, HEALTHY, NEW

_log = logging.getLogger("yunikorn.kubernetes.nodes")


@attrs.define(eq=False, slots=True)
class ClusterNode:
    """A node, with the values that the core has been sent."""

    name: str
    uid: str
    state: str = NEW
    batch: int = 0
    """Number of the batch with the registration."""
    resource: Resource = NOTHING
    attributes: Mapping[str, str] = attrs.Factory(dict)
    unschedulable: bool = False
    """True if the node is cordoned."""

    @property
    def label(self) -> str:
        """Name of the node in messages."""
        return f"node {self.name}"

    @property
    def is_registered(self) -> bool:
        """True once the core has accepted the node."""
        return self.state in (ACCEPTED, HEALTHY, DRAINING)

    def on_state_change(self, before: str, reason: str) -> None:
        """Log a change of the state."""
        _log.debug("%s: %s -> %s %s", self.label, before, self.state, reason)
