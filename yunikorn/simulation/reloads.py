"""Configurations that a scenario brings in while it is played."""

from __future__ import annotations

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration


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

    def describe(self) -> str:
        """What became of it, in words."""
        when = spell_duration(self.at)
        if self.refused:
            return (
                f"at {when} the configuration {self.file} was refused, the one before stays: {self.refused}"
            )
        return f"at {when} the configuration {self.file} came into use"

    @property
    def seconds(self) -> float:
        """When it was, in seconds."""
        return self.at / SECOND
