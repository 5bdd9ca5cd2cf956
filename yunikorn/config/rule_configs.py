"""Reader of placement rules, with checks of their plugins and of fixed paths in the queue tree.

See `docs/placement.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yunikorn.config.acl import ROOT, is_expression, is_group_name, is_queue_name, is_user_name
from yunikorn.config.document import Listing, quote
from yunikorn.config.filters import FilterConfig, expression_fault
from yunikorn.config.keys import Draft
from yunikorn.config.plugin_refs import REQUIRED, PluginCheck, note_if_ours
from yunikorn.config.queue_configs import QueueDraft
from yunikorn.config.queues_yaml import FILTER, RULE, PluginRef, RuleConfig
from yunikorn.config.yaml_reading import Findings, Spot, YamlTable
from yunikorn.framework.kinds import PLACEMENT

VALUE = "value"
FIXED = "fixed"
"""Rule whose queue does not depend on the application, so that its path can be checked."""
RECOVERY_RULE = "recovery"
IMPLICIT = "provided"
"""Rule in use if the configuration has none."""
_CORE = tuple(key for key in RULE.known if key != VALUE)


class RuleDraft(Draft[RuleConfig]):
    """Rule as read."""

    section = RULE
    name: str
    create: bool
    required: bool
    filter: FilterConfig | None
    value: str
    options: dict[str, Any]
    parent: RuleDraft | None
    sound: bool
    """True if the plugins of the rule and of its parent rules are valid."""

    def chain(self) -> Iterator[RuleDraft]:
        """Yield this rule and its parent rules, the topmost first."""
        if self.parent:
            yield from self.parent.chain()
        yield self


def read_rules(partition: YamlTable, plugins: PluginCheck) -> list[RuleDraft]:
    """Read the rules of a partition, in order."""
    rules = [_read_rule(table, plugins) for table in partition.tables("placementrules")]
    if not rules:
        here = partition.spot("placementrules")
        plugins.check(PLACEMENT, PluginRef(IMPLICIT), here, here)
    return rules


def _read_rule(table: YamlTable, plugins: PluginCheck, outer: RuleDraft | None = None) -> RuleDraft:
    rule = RuleDraft(table)
    if outer is not None:
        if REQUIRED in table:
            text = "a parent rule is as required as the rule below it: write the key there"
            plugins.findings.problem(table.key_spot(REQUIRED), text)
        rule.required = outer.required
    rule.name = rule.name.lower()
    rule.filter = _read_filter(table)
    rule.options = plugins.known_options(PLACEMENT, rule.name, table, _CORE, (VALUE,))
    rule.parent = _read_parent(rule, plugins)
    rule.sound = _check_plugin(rule, plugins) and (rule.parent is None or rule.parent.sound)
    return rule


def _read_parent(rule: RuleDraft, plugins: PluginCheck) -> RuleDraft | None:
    table = rule.table
    node = table.get("parent")
    if isinstance(node, Listing):
        entries = table.tables("parent")
        if len(entries) == 1:
            plugins.findings.note(
                table.spot("parent"), "YuniKorn 1.9 wants a mapping here, not a list of one"
            )
            return _read_rule(entries[0], plugins, rule)
        if len(table.items("parent") or ()) != 1:
            table.problem("parent", "a rule has one parent rule: expected a mapping, or a list of one")
        return None
    parent = table.table("parent")
    return _read_rule(parent, plugins, rule) if parent else None


def _check_plugin(rule: RuleDraft, plugins: PluginCheck) -> bool:
    at, findings = rule.table.spot("name"), plugins.findings
    if not rule.name:
        findings.problem(at, "required, but missing: the name of a placement rule")
        return False
    if rule.name == RECOVERY_RULE:
        findings.problem(at, "the recovery rule is always the last rule and cannot be configured")
        return False
    names = plugins.option_names(PLACEMENT, rule.name)
    options = dict(rule.options)
    if rule.value and names and VALUE in names:
        options[VALUE] = rule.value
    sound = plugins.check(
        PLACEMENT, PluginRef(rule.name, options, required=rule.required), at, rule.table.here()
    )
    if sound:
        note_if_ours(PLACEMENT, rule.name, at, findings)
    return sound


# -- filters ------------------------------------------------------------------------------------------


def _read_filter(rule: YamlTable) -> FilterConfig | None:
    table = rule.table("filter")
    if table is None:
        return None
    read = FILTER.read(table)
    users, groups = read["users"], read["groups"]
    kind = table.text("type")
    if kind.lower() not in ("", "allow", "deny"):
        table.problem("type", f"expected allow or deny, got {quote(kind)}")
    elif kind.lower() == "deny" != kind:
        table.findings.note(table.spot("type"), f"YuniKorn 1.9 treats {quote(kind)} as allow")
    fine = [_check_entries(users, "user", table.findings), _check_entries(groups, "group", table.findings)]
    if not all(fine):
        return None
    return FilterConfig(
        allow=kind.lower() != "deny",
        users=tuple(name for name, _ in users),
        groups=tuple(name for name, _ in groups),
    )


def _check_entries(entries: list[tuple[str, Spot]], what: str, findings: Findings) -> bool:
    is_name = is_user_name if what == "user" else is_group_name
    if len(entries) > 1:
        for name, spot in entries:
            if not is_name(name):
                text = f"{quote(name)} is not a valid {what} name and is ignored"
                hint = ": an expression must be the only entry" if is_expression(name, is_name) else ""
                findings.warning(spot, text + hint)
        return True
    for name, spot in entries:
        if is_name(name):
            if name.endswith("$"):
                text = f"YuniKorn 1.9 treats {quote(name)} as a regular expression, not as a name"
                findings.note(spot, text)
            continue
        if not is_expression(name, is_name):
            findings.problem(spot, f"{quote(name)} is neither a {what} name nor a regular expression")
            return False
        fault = expression_fault(name)
        if fault:
            findings.problem(spot, f"{quote(name)} is not a valid regular expression (RE2 syntax): {fault}")
            return False
    return True


# -- fixed paths --------------------------------------------------------------------------------------


def check_paths(rules: list[RuleDraft], root: QueueDraft, findings: Findings) -> None:
    """Check that the queues of fixed rules exist or can be created, and are of the right type."""
    for rule in rules:
        if rule.sound and all([_check_value(each, findings) for each in rule.chain()]):
            _check_path(rule, root, findings)


def is_complete(name: str) -> bool:
    """Return True if a queue name starts at root (in any case), so that parent rules do not apply."""
    return name.lower() == ROOT or name.lower().startswith(f"{ROOT}.")


def _check_value(rule: RuleDraft, findings: Findings) -> bool:
    if rule.name != FIXED:
        return True
    value, spot = rule.value.strip(), rule.table.spot(VALUE)
    for level in value.split("."):
        if not is_queue_name(level):
            what = f"{quote(level)} in it" if level else "an empty level in it"
            text = f"{quote(value)} is not a queue: {what} is not 1 to 64 letters, digits and _ : # / @ -"
            findings.problem(spot, text)
            return False
    if is_complete(value) and rule.parent:
        text = f"{quote(value)} is a full path: a rule with a parent rule must name a queue below the parent"
        findings.problem(spot, text)
        return False
    return True


def _check_path(rule: RuleDraft, root: QueueDraft, findings: Findings) -> None:
    chain = list(rule.chain())
    dynamic = next((index for index, each in enumerate(chain) if each.name != FIXED), len(chain))
    queue = root
    for each in chain[:dynamic]:
        spot = each.table.spot(VALUE)
        levels = each.value.strip().lower().split(".")
        for level in levels[1:] if each is chain[0] and is_complete(each.value.strip()) else levels:
            if not queue.parent:
                text = f"queue {queue.path} is a leaf: there can be no queue '{level}' below it"
                findings.problem(spot, text)
                return
            child = queue.child(level)
            if child is None:
                if not rule.create:
                    text = f"queue {queue.path}.{level} does not exist: define it, or let the rule create it"
                    findings.problem(spot, text)
                return
            queue = child
    if dynamic:
        _check_end(queue, chain[dynamic - 1], dynamic == len(chain), findings)


def _check_end(queue: QueueDraft, rule: RuleDraft, final: bool, findings: Findings) -> None:
    spot = rule.table.spot(VALUE)
    if final and queue.parent:
        findings.problem(spot, f"queue {queue.path} is a parent queue: applications need a leaf queue")
    elif not final and not queue.parent:
        text = f"queue {queue.path} is a leaf, but the rule creates queues below it: set 'parent: true'"
        findings.problem(spot, text)
