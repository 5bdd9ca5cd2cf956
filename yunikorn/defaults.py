"""The default plugins, by name: the core never imports them, it is told where they are.

Their order is fixed here, and they need no entry points, so they work from a bare checkout and cannot
be half-installed. In a checkout they live in two source roots, `plugins/` and `policies/`, beside this
package; installed, all packages lie next to each other.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

DEFAULT_PLUGINS = (
    "yunikorn_policies.app_sort",
    "yunikorn_policies.queue_sort",
    "yunikorn_policies.node_sort",
    "yunikorn_plugins.placement_rules",
    "yunikorn_plugins.predicates",
    "yunikorn_plugins.events",
    "yunikorn_plugins.os_groups",
    "yunikorn_plugins.rm",
)
SOURCE_ROOTS = {"yunikorn_plugins": "plugins", "yunikorn_policies": "policies"}


def import_default(module: str) -> ModuleType:
    """The default plugin's module; raises what importing it raises.

    In a checkout that is not installed its source root is put on the import path first, so that
    `python -m yunikorn` and `import yunikorn` need no preparation, and so that the defaults come
    from the same checkout as the core even where another version is installed.
    """
    package = module.partition(".")[0]
    root = Path(__file__).parent.parent / SOURCE_ROOTS[package]
    if package not in sys.modules and (root / package).is_dir() and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(module)
