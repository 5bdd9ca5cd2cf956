"""Dry run of placement: a scheduler that only accepts applications, to find the queue of each.

Each application is really submitted, so the answer is exactly what would happen, and a queue created for one
application exists for the next. Only the event sinks are left out, because a dry run must not write to an
event log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import ManualClock
from yunikorn.config.load import load_config
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.messages import (
    AddApplicationRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.session import Session
from yunikorn.model.context import CoreContext
from yunikorn.scheduling.placement import PlacementResult, Step

if TYPE_CHECKING:
    from yunikorn.api import Application
    from yunikorn.framework.registry import Registry

RM_ID = "place"


@attrs.frozen
class PlacementAnswer:
    """Queue of an application, or the `reason` why it was rejected."""

    id: str
    queue: str = ""
    rule: str = ""
    """Placement rule that decided; empty if none did."""
    reason: str = ""
    steps: tuple[Step, ...] = ()
    """Results of the rules that were tried, in order."""

    @property
    def accepted(self) -> bool:
        """True if the application was placed in a queue."""
        return bool(self.queue)


class PlacementDryRun:
    """Placement queries, answered in order on one scheduler.

    Raises `ConfigError` if the configuration cannot be used.
    """

    def __init__(self, config: str, registry: Registry) -> None:
        clock = ManualClock()
        loaded = attrs.evolve(load_config(config, registry), sinks=())
        self._session = Session(RM_ID, self, loaded, registry, CoreContext.on(clock), PluginFailures())
        self._refusals: list[str] = []
        self._placement = PlacementResult()
        for partition in self._session.partitions:
            partition.placement.observer = self._observe

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Collect the rejections in a response of the scheduler."""
        self._refusals += [refused.reason for refused in response.rejected_applications]

    def _observe(self, app: Application, placement: PlacementResult) -> None:
        self._placement = placement

    def ask(
        self,
        app_id: str,
        user: str,
        groups: Sequence[str] = (),
        queue: str = "",
        tags: Mapping[str, str] | None = None,
        partition: str = "",
    ) -> PlacementAnswer:
        """Submit an application and return its placement."""
        self._refusals, self._placement = [], PlacementResult()
        request = AddApplicationRequest(
            app_id,
            queue,
            partition or DEFAULT_PARTITION,
            UserGroupInformation(user, list(groups)),
            dict(tags or {}),
        )
        self._session.take(UpdateRequest(RM_ID, new_applications=[request]))
        self._session.flush()
        found = self._placement
        if self._refusals:
            return PlacementAnswer(app_id, "", found.rule, self._refusals[0], found.steps)
        return PlacementAnswer(app_id, found.queue, found.rule, "", found.steps)
