"""Names of files and classes: each is there once, so that a name finds one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from yunikorn.framework.defaults import DEFAULT_PLUGINS
from yunikorn_commands.default_commands import DEFAULT_COMMANDS

CHECKOUT = Path(__file__).parent.parent
ROOTS = ("yunikorn", "plugins", "policies")
STANDARD = ("__init__.py", "__main__.py")
SAME_THING = {
    "yunikorn/api": "a view of the object, as authors of plugins name it",
    "yunikorn/interface/messages.py": "messages have the names of the scheduler interface",
    "plugins/yunikorn_rest/shapes.py": "JSON objects of the REST interface",
    "plugins/yunikorn_rest/config_shapes.py": "JSON objects of the REST interface",
    "plugins/yunikorn_rest/plugin_shapes.py": "JSON objects of the REST interface",
    "plugins/yunikorn_rest/event_json.py": "JSON objects of the REST interface",
    "plugins/yunikorn_kubernetes/objects.py": "objects of the Kubernetes API",
}
"""Files whose classes may have the names of others, with the reason."""


def files() -> list[Path]:
    """Return the source files of the product that are written by hand."""
    found = [file for root in ROOTS for file in sorted((CHECKOUT / root).rglob("*.py"))]
    return [file for file in found if "generated" not in file.parts]


def is_counterpart(path: str) -> bool:
    """Return True for a file whose classes may have the names of others."""
    return any(path == known or path.startswith(f"{known}/") for known in SAME_THING)


NAMED_BY_USERS = ("plugins/yunikorn_plugins", "policies/yunikorn_policies")
"""Folders of default plugins: configurations name their modules, for example in `plugins.disable`."""


def is_fixed(file: Path) -> bool:
    """Return True for the file of a command, and for a module that configurations name."""
    folder = str(file.parent.relative_to(CHECKOUT))
    is_command = file.parent.name == "commands" and file.stem.replace("_", "-") in DEFAULT_COMMANDS
    return folder in NAMED_BY_USERS or is_command


def test_no_two_files_have_one_name() -> None:
    places = defaultdict(list)
    for file in files():
        if file.name not in STANDARD and not is_fixed(file):
            places[file.name].append(str(file.relative_to(CHECKOUT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for file in files():
        path = str(file.relative_to(CHECKOUT))
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not is_counterpart(path):
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_file_of_counterparts_exists() -> None:
    assert [path for path in SAME_THING if not (CHECKOUT / path).exists()] == []


def test_modules_of_default_plugins_keep_their_names() -> None:
    """Configurations and recordings of users have these names."""
    assert [*DEFAULT_PLUGINS] == [
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
        "yunikorn_policies.backfilling",
        "yunikorn_plugins.submit_policies",
        "yunikorn_plugins.admission_policies",
        "yunikorn_plugins.quota_policies",
        "yunikorn_plugins.permit_policies",
        "yunikorn_plugins.topology_sources",
        "yunikorn_policies.gang_placement",
        "yunikorn_plugins.run_time_estimators",
        "yunikorn_history.history_estimator",
        "yunikorn_service.grpc_door",
        "yunikorn_rest.rest_door",
        "yunikorn_service.recording_door",
        "yunikorn_history.history_door",
        "yunikorn_kubernetes.predicates.taints",
        "yunikorn_kubernetes.predicates.node_name",
        "yunikorn_kubernetes.devices.dynamic_resources",
        "yunikorn_kubernetes.predicates.node_affinity",
        "yunikorn_kubernetes.predicates.node_ports",
        "yunikorn_kubernetes.predicates.volume_restrictions",
        "yunikorn_kubernetes.predicates.node_volume_limits",
        "yunikorn_kubernetes.predicates.volume_binding",
        "yunikorn_kubernetes.predicates.volume_zone",
        "yunikorn_kubernetes.predicates.topology_spread",
        "yunikorn_kubernetes.predicates.pod_affinity",
        "yunikorn_kubernetes.preferences.pod_preferences",
        "yunikorn_kubernetes.workloads.job_readers",
        "yunikorn_kubernetes.workloads.serving_readers",
        "yunikorn_kubernetes.workloads.training_readers",
    ]
