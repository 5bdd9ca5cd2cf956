"""How a resource manager's session is doing, for whoever looks at it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class SessionStatus:
    """A session at one moment."""

    rm_id: str
    state: str
    """`Running` or `Paused`."""
    reason: str
    """Why it is paused; empty while it runs."""
    version: str
    """What the RM says is its version of the interface; not looked at."""
    policy_group: str | None
    """The policy group it runs on; None if it brought its own configuration."""
    build_info: Mapping[str, str]
    extra_config: Mapping[str, str]
    """What the RM registered with; kept, and not looked at."""
    partitions: tuple[str, ...]
    """Their names as the RM writes them."""
    checksum: str
    """Of the configuration in use (facts §1.12)."""
