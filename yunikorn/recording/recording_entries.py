"""Contents of recorded lines, one class per kind; messages use the classes of `yunikorn.interface`."""

from __future__ import annotations

import attrs

VERSION = 1
"""Version of the recording format."""


@attrs.frozen
class Beginning:
    """Start of a core: its time, timeouts and policy groups."""

    version: int = VERSION
    start: str = "1970-01-01T00:00:00Z"
    yunikorn: str = ""
    """Version of the program that made the recording."""
    groups: list[str] | None = None
    """Policy groups that have a configuration; None if the core has no policy groups."""
    allow_rm_config: bool = True
    periods: dict[str, str | None] = attrs.Factory(dict)
    """Timeouts that differ from the defaults, as durations; None for no timeout."""


@attrs.frozen
class Part:
    """Start of a further file in the recording of a core."""

    number: int
    """Number of the file; the file with the core's start has number 1."""
    start: str
    """Start time of the core, as in its `Beginning`."""
    version: int = VERSION


@attrs.frozen
class GroupConfiguration:
    """Configuration of a policy group from this line on."""

    group: str = ""
    text: str | None = None
    hex: str | None = None
    """Configuration in hexadecimal, if it is not UTF-8 text."""
    error: str | None = None
    """Reason why the configuration could not be read."""


@attrs.frozen
class FailedApplication:
    """Request of an RM to fail an application."""

    application: str
    partition: str = ""
    reason: str = ""


@attrs.frozen
class QueueSwitch:
    """Stop or start of a queue."""

    queue: str
    partition: str = ""


@attrs.frozen
class PartitionSwitch:
    """Stop or start of a partition."""

    partition: str = ""


@attrs.frozen
class RecordedAnswer:
    """Answer of an RM to a question of the core, or the exception raised instead."""

    method: str
    allocation: str = ""
    application: str = ""
    nodes: list[str] = attrs.Factory(list)
    allocate: bool = True
    refused: dict[str, str] = attrs.Factory(dict)
    """Nodes that must not take the request, with reasons."""
    success: bool = True
    reason: str = ""
    """Reason why a configuration was not saved."""
    raised: str | None = None
    """`TYPE: TEXT` of the raised exception."""
    useless: str | None = None
    """`repr` of an invalid answer."""
