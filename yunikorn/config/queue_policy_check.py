"""Check of the policies that queue properties name, on the effective properties of each queue.

See `docs/decisions/0009`.
"""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.config.plugin_refs import PluginCheck
from yunikorn.config.properties import (
    APP_SORT,
    DEFAULTS,
    NODE_SORT,
    QUEUE_SORT,
    effective_properties,
    policy_options,
    read_settings,
)
from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Spot, descend
from yunikorn.framework.kinds import APP_SORT as APP_SORT_KIND
from yunikorn.framework.kinds import QUEUE_SORT as QUEUE_SORT_KIND
from yunikorn.framework.kinds import Kind

_KINDS: tuple[tuple[str, Kind, str], ...] = (
    (APP_SORT, APP_SORT_KIND, DEFAULTS.app_sort),
    (QUEUE_SORT, QUEUE_SORT_KIND, DEFAULTS.queue_sort),
)
_ORIGINAL = frozenset({"fifo", "fair", "stateaware"})


class QueuePolicyCheck:
    """Check of the properties of all queues in a partition."""

    def __init__(self, plugins: PluginCheck, node_sorts: Mapping[str, object]) -> None:
        self._plugins = plugins
        self._findings = plugins.findings
        self._node_sorts = node_sorts

    def check(self, root: QueueDraft) -> None:
        """Check all queues and child templates; each mistake is reported once, where it is written."""
        here = root.table.here()
        for _, kind, default in _KINDS:
            refusal = self._plugins.verdict(kind, default, {}).refusal
            if refusal:
                self._findings.problem(here, f"the default cannot be used: {refusal}")
        self._check_queue(root, {})

    def _check_queue(self, queue: QueueDraft, above: Mapping[str, str]) -> None:
        in_force = effective_properties(above, queue.properties) if queue.properties or above else above
        if queue.properties:
            self._check_properties(queue.table.here(), ".properties", queue.properties, in_force)
        if queue.template and queue.template.properties:
            # A dynamic queue gets the properties of the template and inherits none.
            own = queue.template.properties
            self._check_properties(queue.table.here(), ".childtemplate.properties", own, own)
        for child in queue.queues:
            if child.properties or child.template or child.queues:
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
        chosen = own.get(NODE_SORT)
        if chosen and chosen not in self._node_sorts:
            known = ", ".join(self._node_sorts) or "none"
            text = f"nodesortpolicies of the partition has no '{chosen}'; known: {known}"
            self._findings.problem(descend(queue, f"{below}.{NODE_SORT}"), text)

    def _check_policy(
        self,
        queue: Spot,
        below: str,
        kind: Kind,
        name: str,
        options: Mapping[str, str],
        own: Mapping[str, str],
    ) -> None:
        at = descend(queue, below)
        verdict = self._plugins.verdict(kind, name, options, comma_lists=True)
        if verdict.refusal:
            self._findings.problem(at, verdict.refusal)
        for option, message in verdict.faults:
            self._findings.problem(descend(queue, below + option), message)
        if not verdict.refusal and kind is not QUEUE_SORT_KIND and name == "stateaware":
            self._findings.note(at, "YuniKorn 1.9 treats stateaware as fifo")
        if not verdict.refusal and (kind is QUEUE_SORT_KIND or name not in _ORIGINAL or own):
            self._findings.note(at, f"YuniKorn 1.9 ignores this {kind.title}")
