"""The plugins of a command: all installed ones, or those that the environment allows."""

from __future__ import annotations

import os
import time

from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.registry import Registry


def load_registry(*, third_party: bool = True) -> Registry:
    """Return the default plugins and the installed ones that `YUNIKORN_PLUGINS` allows.

    Raises `UsageError` if the variable names a plugin that is not installed.
    """
    only = chosen_plugins(os.environ)
    return Registry.load(third_party=third_party, only=only, stopwatch=time.perf_counter)
