"""Warnings about parts of a partition without effect: rules, queues and limits that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yunikorn.config.acl import ROOT
from yunikorn.config.partition_configs import PartitionDraft
from yunikorn.config.queue_configs import QueueDraft
from yunikorn.config.rule_configs import FIXED, RuleDraft, is_complete
from yunikorn.config.yaml_reading import Findings
from yunikorn.quantities import spell_amount
from yunikorn.resources import smaller_of

BACKFILLING = ("easy", "conservative")
"""Reservation policies that need run times."""
USER = "user"
FALLBACK = f"{ROOT}.default"
"""Queue in which the recovery rule places applications, whatever the rules are."""


def check_effects(partitions: Iterable[PartitionDraft], findings: Findings) -> None:
    """Warn about rules, queues and limits without effect, in a configuration without problems."""
    for partition in partitions:
        rules, root = partition.placement_rules, partition.root
        used = _check_rules(rules, root, findings)
        _check_queues(rules[:used], rules[used:], root, findings)
        _check_limits(root, {}, findings)
        _check_estimators(partition, findings)


def _check_estimators(partition: PartitionDraft, findings: Findings) -> None:
    """Warn about backfilling that knows no run times."""
    policy = partition.reservations.name
    if policy in BACKFILLING and not partition.estimators:
        text = (
            f"{policy} assumes that each task runs as long, because the partition names no estimators of run"
            " times: add estimators: [request, learned]"
        )
        findings.warning(partition.table.spot("reservations"), text)


# -- rules and queues -------------------------------------------------------------------------------------


def _check_rules(rules: list[RuleDraft], root: QueueDraft, findings: Findings) -> int:
    """Warn about rules after one that matches every application; return the number of rules that are used."""
    for number, rule in enumerate(rules, 1):
        if rule.sound and _always_matches(rule, root):
            for later in rules[number:]:
                text = (
                    f"this rule is never used, because rule {number} ({FIXED}) places every application: put"
                    f" rule {number} last, or give it a filter"
                )
                findings.warning(later.table.here(), text)
            return number
    return len(rules)


def _always_matches(rule: RuleDraft, root: QueueDraft) -> bool:
    """Return True for a fixed queue that is open to all users."""
    if any(each.name != FIXED or each.filter is not None for each in rule.chain()):
        return False
    queue, is_open = root, root.submit_acl.everybody
    for level in _levels(list(rule.chain())):
        child = queue.child(level)
        if child is None:
            break  # the rule creates the rest, which inherits the rights
        queue = child
        is_open = is_open or queue.submit_acl.everybody
    return is_open


def _levels(chain: list[RuleDraft]) -> list[str]:
    """Return the levels below root of fixed rules, the topmost rule first."""
    levels: list[str] = []
    for rule in chain:
        value = rule.value.strip().lower()
        found = value.split(".")
        levels += found[1:] if not levels and is_complete(value) else found
    return levels


def _check_queues(
    used: list[RuleDraft], unused: list[RuleDraft], root: QueueDraft, findings: Findings
) -> None:
    """Warn about leaf queues that no rule names or may compute, or only rules that are never used."""
    if not used:
        return
    reach, lost = _Reach(used), _Reach(unused)
    for queue in root.walk():
        if queue.parent or queue.path == FALLBACK or reach.includes(queue.path):
            continue
        text = "no placement rule leads to this queue: add a rule, or remove the queue"
        if lost.includes(queue.path):
            text = (
                "only rules that are never used lead to this queue: put such a rule before the rule that"
                " places every application, or remove the queue"
            )
        findings.warning(queue.table.spot("name"), text)


class _Reach:
    """Queues in which rules may place applications."""

    def __init__(self, rules: list[RuleDraft]) -> None:
        self._exact = set[str]()
        self._below = set[str]()
        self._everything = False
        """True if a rule may name every queue."""
        for rule in rules:
            self._add(list(rule.chain()))

    def _add(self, chain: list[RuleDraft]) -> None:
        fixed = next((index for index, each in enumerate(chain) if each.name != FIXED), len(chain))
        path = ".".join([ROOT, *_levels(chain[:fixed])])
        if fixed == len(chain):
            self._exact.add(path)
        elif all(each.name in (FIXED, USER) for each in chain):
            self._below.add(path)
        else:
            self._everything = True

    def includes(self, path: str) -> bool:
        """Return True if a rule may place applications in the queue `path`."""
        inside = any(path.startswith(f"{above}.") for above in self._below)
        return self._everything or path in self._exact or inside


# -- limits -----------------------------------------------------------------------------------------------


def _check_limits(queue: QueueDraft, above: Mapping[str, int], findings: Findings) -> None:
    """Warn about limits that a max of the queue, or of a queue above, makes useless."""
    for draft in queue.limits:
        amount = draft.max_resources
        for name in () if amount.faulty else amount.over(above):
            text = (
                f"{spell_amount(name, amount.value[name])} is never reached, because a queue above"
                f" {queue.path} has at most {spell_amount(name, above[name])}: lower the limit, or leave it"
                " out"
            )
            findings.warning(amount.at(name), text)
    own = queue.max.value
    bound = smaller_of(own, above) if own and above else own or above
    _check_equal_limits(queue, bound, findings)
    for child in queue.queues:
        _check_limits(child, bound, findings)


def _check_equal_limits(queue: QueueDraft, bound: Mapping[str, int], findings: Findings) -> None:
    """Warn about limits equal to the max that holds for the queue, which is reached with them.

    A limit that is equal has an effect beside a smaller one: it exempts its users and groups from that one.
    """
    amounts = [draft.max_resources for draft in queue.limits]
    for amount in amounts:
        for name, value in amount.value.items():
            if value != bound.get(name) or any(each.value.get(name, value) < value for each in amounts):
                continue
            text = (
                f"{spell_amount(name, value)} limits nothing, because the queue as a whole has at most as"
                " much: lower the limit, or leave it out"
            )
            findings.warning(amount.at(name), text)
    most = queue.max_applications
    numbers = [draft.max_applications for draft in queue.limits]
    for draft in queue.limits:
        if most and draft.max_applications == most and not any(each and each < most for each in numbers):
            text = (
                f"{most} limits nothing, because the queue as a whole runs at most as many applications:"
                " lower the limit, or leave it out"
            )
            findings.warning(draft.table.spot("maxapplications"), text)
