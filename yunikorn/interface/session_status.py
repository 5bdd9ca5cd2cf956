"""Status of a resource manager's session."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class SessionStatus:
    """Status of a session at one moment."""

    rm_id: str
    state: str
    """`Running` or `Paused`."""
    reason: str
    """Reason of the pause; empty while the session runs."""
    version: str
    """Version of the interface, as stated by the RM; not interpreted."""
    policy_group: str | None
    """Policy group of the configuration; None if the RM brought its own."""
    build_info: Mapping[str, str]
    extra_config: Mapping[str, str]
    """Further settings of the registration; kept, but not interpreted."""
    partitions: tuple[str, ...]
    """Names of the partitions as the RM spells them."""
    checksum: str
    """Checksum of the configuration in use."""
