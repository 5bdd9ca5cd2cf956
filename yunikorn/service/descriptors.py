"""Limit on the open files and connections of this process."""

from __future__ import annotations

import logging
from typing import Any

try:
    import resource as _resource
except ModuleNotFoundError:
    # Windows has no such limit.
    _resource = None  # type: ignore[assignment]

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
