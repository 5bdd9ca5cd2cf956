"""Configurations that a scenario loads during the simulation."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.simulation.statistics import seconds


@attrs.frozen(slots=True)
class ConfigEvent:
    """A replacement of the configuration at time `at` (ns)."""

    at: int
    file: str
    """Source file, as printed in messages."""
    text: str


@attrs.frozen(slots=True)
class Reloaded:
    """The result of loading a configuration at `at` (ns); `refused` is the reason of a refusal."""

    at: int
    file: str
    text: str
    refused: str = ""

    def listed(self) -> ReloadReport:
        """Convert to the entry of the report."""
        return ReloadReport(seconds(self.at), self.file, not self.refused, self.refused)


@attrs.frozen
class ReloadReport:
    """A configuration that was loaded or refused during the simulation."""

    time: float
    """Time of loading, in seconds."""
    config: str
    """File name, as given in the scenario."""
    taken: bool
    reason: str
    """Reason of a refusal, else empty."""


def describe_reload(report: ReloadReport) -> str:
    """Describe the result of loading a configuration as text."""
    when = spell_duration(round(report.time * SECOND))
    if report.taken:
        return f"at {when} the configuration {report.config} was loaded"
    return (
        f"at {when} the configuration {report.config} was refused, and the previous one stays active: "
        f"{report.reason}"
    )
