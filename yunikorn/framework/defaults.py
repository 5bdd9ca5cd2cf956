"""Modules of the default plugins; the core loads them by name and never imports them.

Their order is fixed here. They need no entry points, so they work in a checkout without installation. In a
checkout they are in two source roots, `plugins/` and `policies/`, beside this package; once installed, all
packages are in the same directory.
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
    "yunikorn_plugins.spread",
    "yunikorn_plugins.anti_affinity",
    "yunikorn_plugins.licences",
    "yunikorn_plugins.events",
    "yunikorn_plugins.os_groups",
    "yunikorn_plugins.ldap_groups",
    "yunikorn_plugins.rm",
    "yunikorn_policies.preemption",
    "yunikorn_policies.reservations",
    "yunikorn_plugins.submit_policies",
    "yunikorn_plugins.admission_policies",
    "yunikorn_plugins.quota_policies",
    "yunikorn_plugins.permit_policies",
)
SOURCE_ROOTS = {"yunikorn_plugins": "plugins", "yunikorn_policies": "policies"}


def import_default(module: str) -> ModuleType:
    """Import the module of a default plugin; exceptions of the import propagate.

    In a checkout the plugin's source root is first put on the import path. Hence `python -m yunikorn` and
    `import yunikorn` need no preparation, and the default plugins are those of the same checkout even where
    another version is installed.
    """
    package = module.partition(".")[0]
    root = Path(__file__).parent.parent / SOURCE_ROOTS[package]
    if package not in sys.modules and (root / package).is_dir() and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(module)
