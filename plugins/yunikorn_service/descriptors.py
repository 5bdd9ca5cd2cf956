"""Limit on the open files and connections of this process."""

from __future__ import annotations

import logging
from typing import Any

try:
    import resource as _resource
except ModuleNotFoundError:
    # Windows has no such limit.
    _resource = None  # type: ignore[assignment]

CONNECTIONS = 8000
"""Maximum number of connections of the REST interface, where the system allows so many descriptors."""

_log = logging.getLogger("yunikorn.service")

resource: Any = _resource


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files of this process to its hard limit.

    Many systems set a soft limit of 1,024 for programs that use `select`, and each client of a service takes
    one descriptor.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    highest = "any number of" if hard == resource.RLIM_INFINITY else str(hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        _log.warning(
            "%d files may be open at a time; the limit cannot be raised to %s: %s", soft, highest, error
        )
    else:
        _log.info("%s files may be open at a time, instead of %d", highest, soft)


def connection_limit() -> int:
    """Return the maximum number of connections of the REST interface, at most half of the descriptors."""
    soft = CONNECTIONS * 2 if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    is_unbounded = resource is not None and soft == resource.RLIM_INFINITY
    return CONNECTIONS if is_unbounded else min(CONNECTIONS, max(1, soft // 2))
