"""Modules of the default plugins and their packages; the core loads them by name and never imports them.

Their order is fixed here. They need no entry points, so they work in a checkout without installation. In a
checkout they are in two source roots, `plugins/` and `policies/`, beside this package; once installed, all
packages are in the same directory.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

DEFAULT_PLUGINS: Mapping[str, tuple[str, ...]] = {
    "yunikorn_policies.app_sort": ("app-sort",),
    "yunikorn_policies.queue_sort": ("queue-sort",),
    "yunikorn_policies.node_sort": ("node-sort",),
    "yunikorn_plugins.placement_rules": ("placement",),
    "yunikorn_plugins.predicates": ("predicate",),
    "yunikorn_plugins.spread": ("predicate",),
    "yunikorn_plugins.anti_affinity": ("predicate",),
    "yunikorn_plugins.licences": ("predicate",),
    "yunikorn_plugins.events": ("event-sink",),
    "yunikorn_plugins.os_groups": ("user-groups",),
    "yunikorn_plugins.ldap_groups": ("user-groups",),
    "yunikorn_plugins.rm": ("predicate", "event-sink"),
    "yunikorn_policies.preemption": ("preemption",),
    "yunikorn_policies.reservations": ("reservation",),
    "yunikorn_policies.backfilling": ("reservation",),
    "yunikorn_plugins.submit_policies": ("submit",),
    "yunikorn_plugins.admission_policies": ("admission",),
    "yunikorn_plugins.quota_policies": ("quota",),
    "yunikorn_plugins.permit_policies": ("permit",),
    "yunikorn_plugins.topology_sources": ("topology",),
    "yunikorn_policies.gang_placement": ("gang-placement",),
    "yunikorn_plugins.run_time_estimators": ("run-time",),
    "yunikorn_history.history_estimator": ("run-time",),
    "yunikorn_service.grpc_door": ("door",),
    "yunikorn_rest.rest_door": ("door",),
    "yunikorn_service.recording_door": ("door",),
    "yunikorn_history.history_door": ("door",),
    "yunikorn_kubernetes.predicates.taints": ("predicate",),
    "yunikorn_kubernetes.predicates.node_name": ("predicate",),
    "yunikorn_kubernetes.devices.dynamic_resources": ("predicate",),
    "yunikorn_kubernetes.predicates.node_affinity": ("predicate",),
    "yunikorn_kubernetes.predicates.node_ports": ("predicate",),
    "yunikorn_kubernetes.predicates.volume_restrictions": ("predicate",),
    "yunikorn_kubernetes.predicates.node_volume_limits": ("predicate",),
    "yunikorn_kubernetes.predicates.volume_binding": ("predicate",),
    "yunikorn_kubernetes.predicates.volume_zone": ("predicate",),
    "yunikorn_kubernetes.predicates.topology_spread": ("predicate",),
    "yunikorn_kubernetes.predicates.pod_affinity": ("predicate",),
    "yunikorn_kubernetes.preferences.pod_preferences": ("node-sort",),
    "yunikorn_kubernetes.workloads.job_readers": ("workload-reader",),
    "yunikorn_kubernetes.workloads.serving_readers": ("workload-reader",),
    "yunikorn_kubernetes.workloads.training_readers": ("workload-reader",),
}
"""Modules of the default plugins in their order, each with the kinds of its plugins."""
SOURCE_ROOTS = {"yunikorn_policies": "policies"}
"""Folders of a checkout with default packages; the others are in `plugins`."""


def import_default(module: str) -> ModuleType:
    """Import a module of a default package; exceptions of the import propagate.

    In a checkout the package's source root is first put on the import path. Hence `python -m yunikorn` and
    `import yunikorn` need no preparation, and the default plugins are those of the same checkout even where
    another version is installed.
    """
    package = module.partition(".")[0]
    root = Path(__file__).parent.parent.parent / SOURCE_ROOTS.get(package, "plugins")
    if package not in sys.modules and (root / package).is_dir() and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(module)


class PendingDefaults:
    """Default plugins that are not imported yet; the first look-up of a kind imports all of this kind.

    Most processes use few kinds, and the imports would take a fifth of the time of a short command.
    """

    def __init__(self, modules: Mapping[str, tuple[str, ...]], load: Callable[[str], object]) -> None:
        """Pass the kinds of each module; `load` imports and registers a module."""
        self._modules = dict(modules)
        self._load = load
        self._lock = threading.RLock()

    def load(self, kind_id: str = "") -> None:
        """Import the modules with plugins of a kind, or all modules, in their order."""
        if not self._modules:
            return
        with self._lock:
            for module, kinds in [*self._modules.items()]:
                if not kind_id or kind_id in kinds:
                    self._load(module)
                    # Afterwards, so that another thread does not find the registry incomplete meanwhile.
                    self._modules.pop(module, None)
