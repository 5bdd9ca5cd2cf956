"""Configurations that a scenario brings in while it is played."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.simulation.statistics import seconds


@attrs.frozen(slots=True)
class ConfigEvent:
    """From `at` (ns) on the core is to use another configuration."""

    at: int
    file: str
    """Where it was read from, as messages name it."""
    text: str


@attrs.frozen(slots=True)
class Reloaded:
    """The core was given another configuration at `at` (ns); `refused` says why it kept the old one."""

    at: int
    file: str
    text: str
    refused: str = ""

    def listed(self) -> ReloadReport:
        """As a report says it."""
        return ReloadReport(seconds(self.at), self.file, not self.refused, self.refused)


@attrs.frozen
class ReloadReport:
    """A configuration that was brought in while the simulation ran."""

    time: float
    """In seconds."""
    config: str
    """The file, as the scenario names it."""
    taken: bool
    reason: str
    """Why it was refused."""


def describe_reload(report: ReloadReport) -> str:
    """What became of a configuration, in words."""
    when = spell_duration(round(report.time * SECOND))
    if report.taken:
        return f"at {when} the configuration {report.config} came into use"
    return f"at {when} the configuration {report.config} was refused, the one before stays: {report.reason}"
