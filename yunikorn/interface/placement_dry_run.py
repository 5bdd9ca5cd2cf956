"""Where one asks which queue an application would land in: a scheduler that only takes in applications.

Each is really submitted, so that the answer is what would happen, and so that a queue made for one is
there for the next. Only the event sinks are left out: asking must not write into anybody's event log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import ManualClock
from yunikorn.config.load import load_config
from yunikorn.interface.constants import DEFAULT_PARTITION
from yunikorn.interface.messages import (
    AddApplicationRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.session import Session
from yunikorn.objects.core_context import CoreContext
from yunikorn.scheduling.placement import PlacementResult, Step
from yunikorn.scheduling.plugin_failures import PluginFailures

if TYPE_CHECKING:
    from yunikorn.api import Application
    from yunikorn.registry import Registry

RM_ID = "place"


@attrs.frozen
class PlacementAnswer:
    """Where an application landed, or in `reason` why nowhere."""

    id: str
    queue: str = ""
    rule: str = ""
    """The rule that decided; empty when none did."""
    reason: str = ""
    steps: tuple[Step, ...] = ()
    """What came of each rule that was tried, in order."""

    @property
    def accepted(self) -> bool:
        """Whether it landed somewhere."""
        return bool(self.queue)


class PlacementDryRun:
    """Answers in order, on one scheduler. Raises `ConfigError` when the configuration cannot be used."""

    def __init__(self, config: str, registry: Registry) -> None:
        clock = ManualClock()
        loaded = attrs.evolve(load_config(config, registry), sinks=())
        self._session = Session(RM_ID, self, loaded, registry, CoreContext.on(clock), PluginFailures())
        self._refusals: list[str] = []
        self._placement = PlacementResult()
        for partition in self._session.partitions:
            partition.placement.observer = self._observe

    def recv_update_response(self, response: UpdateResponse) -> None:
        """What the scheduler says about the submission."""
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
        """Submit an application and tell what became of it."""
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
