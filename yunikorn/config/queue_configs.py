"""Reader of the queue tree of a partition, with the checks of single queues.

Checks of queues against each other are in `yunikorn.config.quota_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.config.acl import RECOVERY, ROOT, Acl, is_queue_name
from yunikorn.config.amounts import Amount
from yunikorn.config.document import quote
from yunikorn.config.keys import Draft
from yunikorn.config.queues_yaml import LIMIT, QUEUE, TEMPLATE, LimitConfig, QueueConfig, TemplateConfig
from yunikorn.config.yaml_reading import Findings, Spot, YamlTable

Named = list[tuple[str, Spot]]


class LimitDraft(Draft[LimitConfig]):
    """Limit as read."""

    section = LIMIT
    limit: str
    users: Named
    groups: Named
    max_resources: Amount
    max_applications: int | None
    """None if the value was refused."""

    def as_written(self) -> tuple[object, ...]:
        """Return the texts of the entry, for comparison with another entry."""
        users, groups = [name for name, _ in self.users], [name for name, _ in self.groups]
        return self.limit, users, groups, self.max_resources.texts, self.max_applications


class TemplateDraft(Draft[TemplateConfig | None]):
    """Child template as read."""

    section = TEMPLATE
    max_applications: int | None
    properties: dict[str, str]
    guaranteed: Amount
    max: Amount

    def build(self) -> TemplateConfig | None:
        """Return the checked template, or None if it sets nothing."""
        self.properties = {key: value for key, value in self.properties.items() if key and value}
        if self.max_applications or self.properties or self.guaranteed.value or self.max.value:
            return super().build()
        return None


class QueueDraft(Draft[QueueConfig]):
    """Queue as read."""

    section = QUEUE
    name: str
    """Last level of `path`, in lower case."""
    path: str
    parent: bool
    """True if the queue is a parent and not a leaf."""
    guaranteed: Amount
    max: Amount
    max_applications: int | None
    """Maximum of running applications; 0 is no limit, None if the value was refused."""
    properties: dict[str, str]
    submit_acl: Acl
    child_template: TemplateDraft | None
    limits: list[LimitDraft]
    queues: list[QueueDraft]

    def child(self, name: str) -> QueueDraft | None:
        """Return the child called `name` (lower case), or None."""
        return next((queue for queue in self.queues if queue.name == name), None)

    def walk(self) -> Iterator[QueueDraft]:
        """Yield this queue and all below, parents first."""
        yield self
        for queue in self.queues:
            yield from queue.walk()

    def build(self) -> QueueConfig:
        """Return the checked queue; a leaf queue has no template."""
        if not self.parent:
            self.child_template = None
        return super().build()


def read_queues(partition: YamlTable) -> QueueDraft:
    """Read the queues of a partition; return the root queue, which is added if the text has none."""
    findings = partition.findings
    if "queues" not in partition:
        findings.problem(partition.spot("queues"), "required, but missing: a partition has a list of queues")
    tables = partition.tables("queues")
    if len(tables) == 1 and tables[0].text("name").lower() == ROOT:
        root = _read_queue(tables[0], "")
        _check_root(root, findings)
    else:
        root = QueueDraft(partition, {**QUEUE.defaults, "name": ROOT, "path": ROOT})
        root.guaranteed = root.max = Amount(partition)
        root.queues = _read_children(tables, root)
    root.parent = True
    _join_limits(root, partition)
    return root


def _read_queue(table: YamlTable, above: str) -> QueueDraft:
    queue, given = QueueDraft(table), table.node.entries
    queue.name = queue.name.lower()
    queue.path = f"{above}.{queue.name}" if above else queue.name
    if "childtemplate" in given:
        template = table.table("childtemplate")
        queue.child_template = TemplateDraft(template) if template else None
    if "limits" in given:
        queue.limits = _read_limits(table)
    if "queues" in given:
        queue.queues = _read_children(table.tables("queues"), queue)
        queue.parent = queue.parent or bool(queue.queues)
    _warn(queue, table.findings)
    return queue


def _read_children(tables: list[YamlTable], parent: QueueDraft) -> list[QueueDraft]:
    seen: dict[str, YamlTable] = {}
    children = []
    for table in tables:
        queue = _read_queue(table, parent.path)
        children.append(queue)
        text = table.text("name")
        if not is_queue_name(text) or queue.name == RECOVERY:
            fault = _name_fault(text) if "name" in table else "required, but missing"
            table.problem("name", fault)
        elif queue.name in seen:
            first = f"first in line {seen[queue.name].spot('name').node.line}"
            table.problem("name", f"queue {queue.path} is defined twice, {first} (case does not matter)")
        else:
            seen[queue.name] = table
    return children


def _read_limits(table: YamlTable) -> list[LimitDraft]:
    return [LimitDraft(entry) for entry in table.tables("limits")]


def _name_fault(name: str) -> str:
    if name.lower() == RECOVERY:
        return f"the name {RECOVERY} is reserved for a queue that the scheduler creates"
    hint = ": dots separate levels, nest the queues instead" if "." in name else ""
    return f"a queue name has 1 to 64 letters, digits and _ : # / @ -, got {quote(name)}{hint}"


def _check_root(root: QueueDraft, findings: Findings) -> None:
    for amount in (root.guaranteed, root.max):
        if amount.given:
            findings.problem(amount.spot, "the root queue cannot have resources: it has those of all nodes")
    # Resources of root must not bound the queues below.
    root.guaranteed = root.max = Amount(root.table)
    if root.table.text("name") != ROOT:
        findings.note(root.table.spot("name"), "YuniKorn 1.9 accepts the name root only in lower case")


def _warn(queue: QueueDraft, findings: Findings) -> None:
    for amount in (queue.guaranteed, queue.max):
        if amount.value and not any(amount.value.values()) and not amount.faulty:
            text = "resources that are all 0 have no effect: they limit and guarantee nothing"
            findings.warning(amount.spot, text)
    if queue.child_template and not queue.parent:
        text = "the template has no effect: this queue has no child queues and no 'parent: true'"
        findings.warning(queue.table.spot("childtemplate"), text)


def _join_limits(root: QueueDraft, partition: YamlTable) -> None:
    """Use the limits of the partition for the root queue; both may be present only if they are equal."""
    limits = _read_limits(partition)
    if not limits:
        return
    if not root.limits:
        root.limits = limits
    elif [limit.as_written() for limit in limits] != [limit.as_written() for limit in root.limits]:
        text = "the limits of the partition and of its root queue differ: remove one of them"
        partition.problem("limits", text)
