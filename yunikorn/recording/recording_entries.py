"""What a line of a recording may say, one class per kind; messages have those of `yunikorn.interface`."""

from __future__ import annotations

import attrs

VERSION = 1
"""Of the format: a recording says which one it has."""


@attrs.frozen
class Beginning:
    """A core begins: at this moment, with these periods and policy groups."""

    version: int = VERSION
    start: str = "1970-01-01T00:00:00Z"
    yunikorn: str = ""
    """The version that recorded."""
    groups: list[str] | None = None
    """The policy groups that have a configuration; None if there are no groups at all."""
    allow_rm_config: bool = True
    periods: dict[str, str | None] = attrs.Factory(dict)
    """Those that differ from the usual ones, as durations; None is never, or for ever."""


@attrs.frozen
class Part:
    """A further file of the recording of a core begins."""

    number: int
    """Of the file, counted from 1 for the one with the core's beginning."""
    start: str
    """The moment at which the core began, as its beginning has it."""
    version: int = VERSION


@attrs.frozen
class GroupConfiguration:
    """The configuration of a policy group, from here on."""

    group: str = ""
    text: str | None = None
    hex: str | None = None
    """The bytes, where they are no text."""
    error: str | None = None
    """Why it could not be read."""


@attrs.frozen
class FailedApplication:
    """The RM has an application fail."""

    application: str
    partition: str = ""
    reason: str = ""


@attrs.frozen
class QueueSwitch:
    """A queue is stopped or started."""

    queue: str
    partition: str = ""


@attrs.frozen
class PartitionSwitch:
    """A partition is stopped or started."""

    partition: str = ""


@attrs.frozen
class RecordedAnswer:
    """What an RM answered when it was asked, or that it raised."""

    method: str
    allocation: str = ""
    application: str = ""
    nodes: list[str] = attrs.Factory(list)
    allocate: bool = True
    refused: dict[str, str] = attrs.Factory(dict)
    """The nodes that may not take the request, with the reasons."""
    success: bool = True
    reason: str = ""
    """Whether a configuration was saved, and why not."""
    raised: str | None = None
    """`TYPE: TEXT` of what was raised."""
    useless: str | None = None
    """An answer that was none, as Python shows it."""
