"""The number of files and connections that a process may have open."""

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
    """Raise the limit of this process to the highest that the system allows it.

    Systems set 1,024 for programs that cannot count further; each client of a service takes one.
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
