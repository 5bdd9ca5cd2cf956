"""References to plugins in the configuration, and their validation.

Each plugin is constructed once on trial. Unknown names, invalid options and broken plugins are therefore
reported by the check of the configuration, with their position in the text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from yunikorn.config import document
from yunikorn.config.acl import ROOT
from yunikorn.config.document import Scalar, show
from yunikorn.config.properties import (
    APP_SORT,
    DEFAULTS,
    NODE_SORT,
    QUEUE_SORT,
    QUOTA_POLICY,
    effective_properties,
    policy_options,
    read_settings,
)
from yunikorn.config.queue_configs import QueueDraft
from yunikorn.config.queues_yaml import PluginRef
from yunikorn.config.yaml_reading import Findings, Spot, YamlTable, descend, plain_data
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.framework import kinds
from yunikorn.framework.kinds import PLACEMENT, RESOLVER, PluginKind
from yunikorn.framework.registry import Registry
from yunikorn.text import listed, suggest

ORIGINAL: Mapping[str, frozenset[str]] = {
    kinds.NODE_SORT.id: frozenset({"fair", "binpacking"}),
    PLACEMENT.id: frozenset({"provided", "user", "fixed", "tag"}),
}
"""Names that YuniKorn 1.9 knows, for the kinds where it refuses all other names."""
ORIGINAL_OPTIONS: Mapping[str, frozenset[str]] = {
    kinds.NODE_SORT.id: frozenset({"resourceweights"}),
    PLACEMENT.id: frozenset({"value"}),
    RESOLVER.id: frozenset(),
}


REQUIRED = "required"
"""Key beside the name of a plugin: false to go on without a plugin that cannot be used."""


@attrs.frozen
class _Verdict:
    """Result of constructing a plugin on trial."""

    refusal: str = ""
    """Reason why the plugin cannot be constructed at all."""
    unknown: str = ""
    """Reason why the plugin is unknown, where one that was not loaded may offer it."""
    faults: tuple[tuple[str, str], ...] = ()
    """Errors in the options, as (path below the options, message)."""


class PluginCheck:
    """Validation of the plugins that a configuration names; each name is tried once per set of options."""

    def __init__(self, registry: Registry, findings: Findings, *, knows_all: bool = True) -> None:
        """Check against a registry, which `knows_all` unless plugins were not loaded."""
        self.registry = registry
        self.findings = findings
        self._knows_all = knows_all
        self._known: dict[tuple[str, str, bool, str], _Verdict] = {}

    def option_names(self, kind: PluginKind, name: str) -> list[str] | None:
        """Return the option names of a plugin, or None if there is no such plugin."""
        try:
            return [option.name for option in self.registry.find(kind, name).options]
        except UnknownPlugin:
            return None

    def verdict(
        self, kind: PluginKind, name: str, options: Mapping[str, Any], comma_lists: bool = False
    ) -> _Verdict:
        """Return the result of constructing the plugin with these options."""
        key = kind.id, name, comma_lists, repr(options)
        if key not in self._known:
            self._known[key] = self._try(kind, name, options, comma_lists)
        return self._known[key]

    def _try(self, kind: PluginKind, name: str, options: Mapping[str, Any], comma_lists: bool) -> _Verdict:
        try:
            self.registry.make(kind, name, options, comma_lists=comma_lists)
        except OptionError as error:
            return _Verdict(faults=error.faults)
        except (UnknownPlugin, PluginError) as error:
            if not self._knows_all and type(error) is UnknownPlugin:
                return _Verdict(unknown=f"{error}; this was not checked, see plugins.load")
            return _Verdict(refusal=str(error))
        return _Verdict()

    def check(self, kind: PluginKind, ref: PluginRef, name_at: Spot, options_at: Spot) -> bool:
        """Report the problems of a plugin and its options; return True if there are none."""
        verdict = self.verdict(kind, ref.name, ref.options)
        if verdict.unknown:
            self.findings.warning(name_at, verdict.unknown)
        if verdict.refusal and ref.required:
            self.findings.problem(name_at, verdict.refusal)
        elif verdict.refusal:
            self.findings.warning(name_at, f"{verdict.refusal}; it is not used, because of required: false")
        for below, message in verdict.faults:
            self.findings.problem(descend(options_at, below), message)
        return not verdict.refusal and not verdict.faults

    def known_options(
        self, kind: PluginKind, name: str, table: YamlTable, core: Collection[str], skip: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the options in `table`, all keys without those of the `core`; unknown keys are reported.

        `skip` has keys that every plugin of the kind may have, even if the plugin does not use them.
        """
        names = self.option_names(kind, name)
        options = {}
        for key, node in table.node.entries.items():
            if key in core or key in skip:
                continue
            spot = table.key_spot(key)
            if names is not None and key not in names:
                known = [*core, *skip, *(option for option in names if option not in skip)]
                self.findings.problem(spot, f"unknown key{suggest(key, known)}; known: {', '.join(known)}")
                continue
            if kind.id in ORIGINAL_OPTIONS and key not in ORIGINAL_OPTIONS[kind.id]:
                self.findings.note(spot, "YuniKorn 1.9 does not have this key and refuses it")
            options[key] = plain_data(node)
        return options


def note_if_ours(kind: PluginKind, name: str, at: Spot, findings: Findings) -> None:
    """Add a note if YuniKorn 1.9 does not have the plugin, and hence refuses its name."""
    if kind.normal(name) not in ORIGINAL[kind.id]:
        findings.note(at, f"YuniKorn 1.9 has no {kind.title} called '{name}' and refuses it")


def read_plugin_list(
    table: YamlTable, key: str, kind: PluginKind, plugins: PluginCheck
) -> tuple[PluginRef, ...]:
    """Read a list of plugins, each a name or a mapping with `name` and options."""
    refs = [_read_ref(spot, kind, plugins) for spot in table.items(key) or ()]
    return tuple(ref for ref in refs if ref)


def read_door(table: YamlTable, name: str, plugins: PluginCheck) -> PluginRef | None:
    """Read the options of a door from the mapping of its name; None without one."""
    given = table.table(name)
    if given is None:
        return None
    ref = PluginRef(name, plugins.known_options(kinds.DOOR, name, given, ()))
    plugins.check(kinds.DOOR, ref, given.here(), given.here())
    return ref


def read_plugin_ref(
    table: YamlTable, key: str, kind: PluginKind, default: PluginRef, plugins: PluginCheck
) -> PluginRef:
    """Read a plugin, a name or a mapping with `name` and options; a missing key is the default."""
    spot = table.spot(key)
    if table.get(key) is None:
        plugins.check(kind, default, spot, spot)
        return default
    return _read_ref(spot, kind, plugins) or default


def _read_ref(spot: Spot, kind: PluginKind, plugins: PluginCheck) -> PluginRef | None:
    findings = plugins.findings
    if isinstance(spot.node, Scalar):
        ref = PluginRef(spot.node.text)
        plugins.check(kind, ref, spot, spot)
        return ref
    if not isinstance(spot.node, document.Mapping):
        findings.problem(spot, f"expected a name, or a mapping with a name, got {show(spot.node)}")
        return None
    entry = YamlTable(spot.path, spot.node, findings)
    name = entry.text("name")
    if not name:
        findings.problem(entry.spot("name"), f"required, but missing: the name of the {kind.title}")
        return None
    options = plugins.known_options(kind, name, entry, ("name", REQUIRED))
    ref = PluginRef(name, options, required=entry.boolean(REQUIRED, True))
    plugins.check(kind, ref, entry.spot("name"), spot)
    return ref


# -- policies of queues -------------------------------------------------------------------------------

_KINDS: tuple[tuple[str, PluginKind, str], ...] = (
    (APP_SORT, kinds.APP_SORT, DEFAULTS.app_sort),
    (QUEUE_SORT, kinds.QUEUE_SORT, DEFAULTS.queue_sort),
)
_ORIGINAL = frozenset({"fifo", "fair", "stateaware"})


class QueuePolicyCheck:
    """Check of the policies that queue properties name, on the effective properties of each queue.

    See `docs/decisions/archive/0009`.
    """

    def __init__(self, plugins: PluginCheck, node_sorts: Mapping[str, object]) -> None:
        self._plugins = plugins
        self._findings = plugins.findings
        self._node_sorts = node_sorts
        self._root: Spot | None = None
        """Position of the root queue."""

    def check(self, root: QueueDraft) -> None:
        """Check all queues and child templates; each mistake is reported once, where it is written."""
        here = self._root = root.table.here()
        for _, kind, default in _KINDS:
            refusal = self._plugins.verdict(kind, default, {}).refusal
            if refusal:
                self._findings.problem(here, f"the default cannot be used: {refusal}")
        self._check_queue(root, {})

    def _check_queue(self, queue: QueueDraft, above: Mapping[str, str]) -> None:
        in_force = effective_properties(above, queue.properties) if queue.properties or above else above
        if queue.properties:
            here = self._root if self._root is not None and queue.path == ROOT else queue.table.here()
            self._check_properties(here, ".properties", queue.properties, in_force)
        if queue.child_template and queue.child_template.properties:
            # A dynamic queue gets the properties of the template and inherits none.
            own = queue.child_template.properties
            self._check_properties(queue.table.here(), ".childtemplate.properties", own, own)
        for child in queue.queues:
            if child.properties or child.child_template or child.queues:
                self._check_queue(child, in_force)

    def _check_properties(
        self, queue: Spot, below: str, own: Mapping[str, str], in_force: Mapping[str, str]
    ) -> None:
        for key, message in read_settings(own)[1]:
            self._findings.warning(descend(queue, f"{below}.{key}"), message)
        for key, kind, default in _KINDS:
            options = policy_options(own, key)
            if key in own or options:
                name = in_force.get(key) or default
                self._check_policy(
                    queue, f"{below}.{key}", kind, name, policy_options(in_force, key), options
                )
        self._check_quota(queue, below, own)
        chosen = own.get(NODE_SORT)
        if chosen and chosen not in self._node_sorts:
            known = listed(self._node_sorts)
            text = f"nodesortpolicies of the partition has no '{chosen}'; known: {known}"
            self._findings.problem(descend(queue, f"{below}.{NODE_SORT}"), text)

    def _check_quota(self, queue: Spot, below: str, own: Mapping[str, str]) -> None:
        """Check the quota policy, which is not inherited, and which root cannot have."""
        name, options = own.get(QUOTA_POLICY), policy_options(own, QUOTA_POLICY)
        at = f"{below}.{QUOTA_POLICY}"
        if queue is self._root and below == ".properties" and (name or options):
            text = "the root queue cannot have a quota policy: its max is the size of all nodes"
            self._findings.problem(descend(queue, at), text)
        elif name:
            self._check_policy(queue, at, kinds.QUOTA, name, options, options)
        else:
            for option in options:
                text = f"option of no policy: the queue has no {QUOTA_POLICY}, and inherits none"
                self._findings.problem(descend(queue, f"{at}.{option}"), text)

    def _check_policy(
        self,
        queue: Spot,
        below: str,
        kind: PluginKind,
        name: str,
        options: Mapping[str, str],
        own: Mapping[str, str],
    ) -> None:
        at = descend(queue, below)
        verdict = self._plugins.verdict(kind, name, options, comma_lists=True)
        if verdict.unknown:
            self._findings.warning(at, verdict.unknown)
        if verdict.refusal:
            self._findings.problem(at, verdict.refusal)
        for option, message in verdict.faults:
            self._findings.problem(descend(queue, below + option), message)
        if not verdict.refusal and kind is not kinds.QUEUE_SORT and name == "stateaware":
            self._findings.note(at, "YuniKorn 1.9 treats stateaware as fifo")
        if not verdict.refusal and (kind is kinds.QUEUE_SORT or name not in _ORIGINAL or own):
            self._findings.note(at, f"YuniKorn 1.9 ignores this {kind.title}")
