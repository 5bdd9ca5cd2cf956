"""Warnings about parts of a partition without effect: rules, queues and limits that nothing reaches."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.config.names import ROOT
from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Findings
from yunikorn.config.rules import FIXED, RuleDraft, is_complete
from yunikorn.quantities import spell_amount
from yunikorn.resources import smaller_of

USER = "user"
FALLBACK = f"{ROOT}.default"
"""Queue in which the recovery rule places applications, whatever the rules are."""


def check_effects(rules: list[RuleDraft], root: QueueDraft, findings: Findings) -> None:
    """Warn about rules, queues and limits without effect; only for partitions without problems."""
    if findings.problems:
        return
    _check_rules(rules, root, findings)
    _check_queues(rules, root, findings)
    _check_limits(root, {}, findings)


# -- rules and queues -------------------------------------------------------------------------------------


def _check_rules(rules: list[RuleDraft], root: QueueDraft, findings: Findings) -> None:
    """Warn about rules after one that matches every application."""
    for number, rule in enumerate(rules, 1):
        if rule.sound and _always_matches(rule, root):
            for later in rules[number:]:
                text = (
                    f"this rule is never used, because rule {number} ({FIXED}) places every application: put"
                    f" rule {number} last, or give it a filter"
                )
                findings.warning(later.table.here(), text)
            return


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


def _check_queues(rules: list[RuleDraft], root: QueueDraft, findings: Findings) -> None:
    """Warn about leaf queues that no rule names or may compute."""
    if not rules:
        return
    exact, below = set[str](), set[str]()
    for rule in rules:
        chain = list(rule.chain())
        fixed = next((index for index, each in enumerate(chain) if each.name != FIXED), len(chain))
        path = ".".join([ROOT, *_levels(chain[:fixed])])
        if fixed == len(chain):
            exact.add(path)
        elif all(each.name in (FIXED, USER) for each in chain):
            below.add(path)
        else:
            return  # such a rule may name every queue
    for queue in root.walk():
        inside = any(queue.path.startswith(f"{path}.") for path in below)
        if not queue.parent and queue.path not in {*exact, FALLBACK} and not inside:
            text = "no placement rule leads to this queue: add a rule, or remove the queue"
            findings.warning(queue.table.spot("name"), text)


# -- limits -----------------------------------------------------------------------------------------------


def _check_limits(queue: QueueDraft, above: Mapping[str, int], findings: Findings) -> None:
    """Warn about limits above the max of a queue above, which is reached first."""
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
    for child in queue.queues:
        _check_limits(child, bound, findings)
