"""Permitted imports between packages, as `tests/test_layers.py` holds them."""

from __future__ import annotations

FOUNDATION = {
    "yunikorn",
    "yunikorn.containment",
    "yunikorn.errors",
    "yunikorn.clock",
    "yunikorn.resources",
    "yunikorn.quantities",
    "yunikorn.text",
    "yunikorn.event_types",
    "yunikorn.config.durations",
    "yunikorn.api",
}
"""Parts without policies or state, which every other part may import."""
LOOPS = {"yunikorn_service.background"}
"""Tasks of event loops, for all packages with loops."""
FRAMEWORK = FOUNDATION | {"yunikorn.states", "yunikorn.framework", "yunikorn.config"}
MODEL = FRAMEWORK | {"yunikorn.index", "yunikorn.model"}
ACCOUNTING = MODEL | {"yunikorn.accounting"}
SCHEDULING = ACCOUNTING | {"yunikorn.scheduling"}
INTERFACE = SCHEDULING | {"yunikorn.explain", "yunikorn.interface"}
EXPLAINED = {"yunikorn_service.runtime", "yunikorn_service.grouped_explanations"}
COMMANDS = FRAMEWORK | {"yunikorn_commands"}
"""Parts that commands may import."""

KUBERNETES = "yunikorn_kubernetes."
SHIM = FOUNDATION | {
    "yunikorn.states",
    "yunikorn.interface",
    "yunikorn_service.async_scheduler",
    "yunikorn_service.background",
    "yunikorn_service.waiting_requests",
    *(KUBERNETES + part for part in ("config_maps", "names", "objects", "patterns")),
}
"""Parts that each part of the shim for Kubernetes may import."""

MAY_IMPORT = {
    "yunikorn": set(),
    "yunikorn.containment": set(),
    "yunikorn.errors": {"yunikorn.containment"},
    "yunikorn.clock": {"yunikorn.errors"},
    "yunikorn.text": set(),
    "yunikorn.event_types": set(),
    "yunikorn.resources": {"yunikorn.errors"},
    "yunikorn.config.durations": {"yunikorn.resources"},
    "yunikorn.quantities": {"yunikorn.errors", "yunikorn.resources"},
    "yunikorn.api": {"yunikorn.quantities", "yunikorn.resources"},
    "yunikorn.states": FOUNDATION,
    "yunikorn.framework": FOUNDATION,
    "yunikorn.config": FOUNDATION | {"yunikorn.framework"},
    "yunikorn.index": {"yunikorn.containment", "yunikorn.errors", "yunikorn.resources"},
    "yunikorn.model": MODEL,
    "yunikorn.accounting": ACCOUNTING,
    "yunikorn.scheduling": SCHEDULING,
    "yunikorn.explain": SCHEDULING,
    "yunikorn.interface": INTERFACE,
    "yunikorn_service.runtime": INTERFACE,
    "yunikorn.cli": {"yunikorn.framework"},
    "yunikorn.__main__": {"yunikorn.cli"},
    "yunikorn_commands": FRAMEWORK | {"yunikorn_kubernetes.config_maps"},
    "yunikorn_commands.commands": COMMANDS,
    "yunikorn_service.background": {"yunikorn.containment", "yunikorn.errors"},
    "yunikorn_service.async_scheduler": INTERFACE | LOOPS | {"yunikorn_service.runtime"},
    "yunikorn_service.grouped_explanations": INTERFACE,
    "yunikorn_service.waiting_requests": INTERFACE | EXPLAINED,
    "yunikorn_service.wire": FOUNDATION | {"yunikorn.interface"},
    "yunikorn_service.client": FOUNDATION | LOOPS | {"yunikorn.interface", "yunikorn_service.wire"},
    "yunikorn_service.policy_groups": {"yunikorn.errors", "yunikorn.framework", "yunikorn.text"},
    "yunikorn_service.recording": INTERFACE
    | {"yunikorn_commands", "yunikorn_service.policy_groups", "yunikorn_service.wire"},
    "yunikorn_service": INTERFACE
    | LOOPS
    | {"yunikorn_service.runtime", "yunikorn_commands", "yunikorn_service.async_scheduler"}
    | {"yunikorn_service.policy_groups", "yunikorn_service.wire", "yunikorn_service.recording"},
    "yunikorn_service.commands": COMMANDS
    | {"yunikorn.interface", "yunikorn_service.runtime", "yunikorn_commands", "yunikorn_service"}
    | {"yunikorn_service.recording", "yunikorn_service.wire"},
    "yunikorn_snapshots": INTERFACE,
    "yunikorn_snapshots.commands": COMMANDS
    | {"yunikorn.interface", "yunikorn_rest.commands", "yunikorn_snapshots", "yunikorn_lab.simulation"},
    "yunikorn_foresight": INTERFACE
    | {"yunikorn_commands", "yunikorn_lab", "yunikorn_lab.simulation", "yunikorn_lab.reporting"}
    | {"yunikorn_snapshots", "yunikorn_history"},
    "yunikorn_foresight.commands": COMMANDS
    | {"yunikorn.interface", "yunikorn_foresight", "yunikorn_rest.commands", "yunikorn_snapshots"}
    | {f"yunikorn_lab{part}" for part in ("", ".simulation", ".reporting", ".commands")},
    "yunikorn_history": INTERFACE | EXPLAINED | {"yunikorn_commands", "yunikorn_plugins", "yunikorn_service"},
    "yunikorn_history.commands": COMMANDS | {"yunikorn_rest", "yunikorn_rest.commands", "yunikorn_service"},
    "yunikorn_rest.metrics": INTERFACE | LOOPS | {"yunikorn_service"},
    "yunikorn_rest": INTERFACE
    | LOOPS
    | {"yunikorn_service.runtime", "yunikorn_commands", "yunikorn_rest.metrics", "yunikorn_service"}
    | {"yunikorn_history", "yunikorn_snapshots"},
    "yunikorn_rest.rest_door": INTERFACE
    | {"yunikorn_commands", "yunikorn_rest.metrics", "yunikorn_rest.served_rest", "yunikorn_service"},
    "yunikorn_rest.served_rest": INTERFACE
    | LOOPS
    | {"yunikorn_service.runtime", "yunikorn_rest", "yunikorn_service", "yunikorn_service.async_scheduler"}
    | {"yunikorn_rest.metrics", "yunikorn_rest.routes", "yunikorn_rest.web"},
    "yunikorn_rest.routes": INTERFACE
    | {"yunikorn_service.runtime", "yunikorn_commands", "yunikorn_rest", "yunikorn_rest.metrics"}
    | {"yunikorn_service", "yunikorn_service.grouped_explanations", "yunikorn_history"}
    | {"yunikorn_snapshots", "yunikorn_foresight"},
    "yunikorn_rest.web": INTERFACE
    | LOOPS
    | {"yunikorn_service.runtime", "yunikorn_history", "yunikorn_rest", "yunikorn_rest.routes"}
    | {"yunikorn_foresight"},
    "yunikorn_rest.commands": COMMANDS
    | {"yunikorn.interface", "yunikorn_commands", "yunikorn_rest", "yunikorn_rest.routes"}
    | {"yunikorn_service", "yunikorn_service.runtime", "yunikorn_snapshots"},
    "yunikorn_lab": INTERFACE,
    "yunikorn_lab.schema": FRAMEWORK,
    "yunikorn_lab.simulation": INTERFACE
    | {"yunikorn_commands", "yunikorn_history", "yunikorn_plugins", "yunikorn_snapshots"},
    "yunikorn_lab.reporting": INTERFACE | {"yunikorn_commands", "yunikorn_lab", "yunikorn_lab.simulation"},
    "yunikorn_lab.history_reports": COMMANDS | {"yunikorn_history", "yunikorn_lab.reporting"},
    "yunikorn_lab.commands": COMMANDS
    | {"yunikorn.interface", "yunikorn.scheduling", "yunikorn_history", "yunikorn_rest.commands"}
    | {"yunikorn_snapshots"}
    | {f"yunikorn_lab{part}" for part in ("", ".schema", ".simulation", ".reporting", ".history_reports")},
    "yunikorn_testing": INTERFACE | LOOPS | {"yunikorn_commands", "yunikorn_service"},
    "yunikorn_pytest": {"yunikorn_testing"},
    "yunikorn_plugins": {"yunikorn.api", "yunikorn_plugins"},
    "yunikorn_policies": {"yunikorn.api", "yunikorn_policies"},
    "yunikorn_kubernetes": set(),
    KUBERNETES + "commands": COMMANDS
    | {"yunikorn_commands", "yunikorn_service", "yunikorn_service.commands", KUBERNETES + "shim"},
    KUBERNETES + "config_maps": {"yunikorn.errors"},
    KUBERNETES + "names": set(),
    KUBERNETES + "objects": set(),
    KUBERNETES + "patterns": {"yunikorn.config"},
    KUBERNETES + "predicates": {"yunikorn.api", KUBERNETES + "names"},
    KUBERNETES + "devices.cel": set(),
    KUBERNETES + "devices": {"yunikorn.api"}
    | {KUBERNETES + part for part in ("names", "predicates", "devices.cel")},
    KUBERNETES + "preferences": {"yunikorn.api", KUBERNETES + "names", KUBERNETES + "predicates"},
    KUBERNETES + "shim_settings": SHIM,
    KUBERNETES + "shim_config_maps": SHIM | {KUBERNETES + "shim_settings"},
    KUBERNETES + "translation": SHIM | {KUBERNETES + "shim_settings"},
    KUBERNETES + "api_server": SHIM,
    KUBERNETES + "volumes": SHIM
    | {KUBERNETES + part for part in ("translation", "api_server", "predicates")},
    KUBERNETES + "admission": SHIM
    | {KUBERNETES + part for part in ("shim_settings", "shim_config_maps", "translation", "api_server")},
    KUBERNETES + "workloads": SHIM
    | {"yunikorn.framework"}
    | {KUBERNETES + part for part in ("translation", "api_server")},
    KUBERNETES + "workloads.reader_contract": {"yunikorn.errors", "yunikorn.framework", "yunikorn_testing"}
    | {KUBERNETES + "objects", KUBERNETES + "workloads"},
    KUBERNETES + "resource_claims": SHIM
    | {KUBERNETES + part for part in ("translation", "api_server", "volumes", "workloads")}
    | {KUBERNETES + part for part in ("predicates", "devices", "devices.cel")},
    KUBERNETES + "cluster_snapshots": SHIM
    | {"yunikorn_snapshots"}
    | {KUBERNETES + part for part in ("translation", "api_server", "volumes", "shim")},
    KUBERNETES + "shim": SHIM
    | {KUBERNETES + part for part in ("shim_settings", "shim_config_maps", "translation", "api_server")}
    | {KUBERNETES + part for part in ("volumes", "workloads", "resource_claims")},
}
"""All parts of the package, and the parts that each may import. A new part is added here deliberately."""
