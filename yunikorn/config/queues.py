"""Reader of the queue tree of a partition, with the checks of single queues.

Checks of queues against each other are in `yunikorn.config.quotas` and `yunikorn.config.limits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from yunikorn.config.acl import NOBODY, Acl, illegal_names
from yunikorn.config.amounts import Amount, read_amount
from yunikorn.config.document import quote
from yunikorn.config.limits import LimitDraft, read_limits
from yunikorn.config.names import RECOVERY, ROOT, is_queue_name
from yunikorn.config.reading import Findings, Table
from yunikorn.config.schema import QueueConfig, TemplateConfig

KEYS = (
    "name",
    "parent",
    "resources",
    "maxapplications",
    "properties",
    "adminacl",
    "submitacl",
    "childtemplate",
    "queues",
    "limits",
)
RESOURCE_KEYS = ("guaranteed", "max")
TEMPLATE_KEYS = ("maxapplications", "properties", "resources")


@attrs.define(eq=False)
class TemplateDraft:
    """Child template as parsed, with its position in the text."""

    table: Table
    max_applications: int
    properties: dict[str, str]
    guaranteed: Amount
    max: Amount

    def build(self) -> TemplateConfig | None:
        """Return the checked template, or None if it sets nothing."""
        properties = {key: value for key, value in self.properties.items() if key and value}
        if not (self.max_applications or properties or self.guaranteed.value or self.max.value):
            return None
        return TemplateConfig(
            self.max_applications, properties, self.guaranteed.setting(), self.max.setting()
        )


@attrs.define(eq=False)
class QueueDraft:
    """Queue as parsed, with its position in the text."""

    table: Table
    name: str
    """Last level of `path`, in lower case."""
    path: str
    guaranteed: Amount
    max: Amount
    parent: bool = False
    max_applications: int | None = 0
    """Maximum of running applications; 0 is no limit, None if the value was refused."""
    properties: dict[str, str] = attrs.field(factory=dict)
    admin_acl: Acl = NOBODY
    submit_acl: Acl = NOBODY
    template: TemplateDraft | None = None
    limits: list[LimitDraft] = attrs.field(factory=list)
    queues: list[QueueDraft] = attrs.field(factory=list)

    @property
    def is_parent(self) -> bool:
        """True if the queue is a parent and not a leaf."""
        return self.parent or bool(self.queues)

    def child(self, name: str) -> QueueDraft | None:
        """Return the child called `name` (lower case), or None."""
        return next((queue for queue in self.queues if queue.name == name), None)

    def walk(self) -> Iterator[QueueDraft]:
        """Yield this queue and all below, parents first."""
        yield self
        for queue in self.queues:
            yield from queue.walk()

    def build(self) -> QueueConfig:
        """Return the checked queue."""
        return QueueConfig(
            name=self.name,
            parent=self.is_parent,
            guaranteed=self.guaranteed.setting(),
            max=self.max.setting(),
            max_applications=self.max_applications or 0,
            properties=self.properties,
            admin_acl=self.admin_acl,
            submit_acl=self.submit_acl,
            child_template=self.template.build() if self.template and self.is_parent else None,
            limits=tuple([limit.build() for limit in self.limits]) if self.limits else (),
            queues=tuple([queue.build() for queue in self.queues]) if self.queues else (),
        )


def read_queues(partition: Table) -> QueueDraft:
    """Read the queues of a partition; return the root queue, which is added if the text has none."""
    findings = partition.findings
    if "queues" not in partition:
        findings.problem(partition.spot("queues"), "required, but missing: a partition has a list of queues")
    tables = partition.tables("queues")
    if len(tables) == 1 and tables[0].text("name").lower() == ROOT:
        root = _read_queue(tables[0], "")
        _check_root(root, findings)
    else:
        nothing = Amount(partition)
        root = QueueDraft(partition, ROOT, ROOT, guaranteed=nothing, max=nothing)
        root.queues = _read_children(tables, root, findings)
    root.parent = True
    _join_limits(root, partition, findings)
    return root


def _read_queue(table: Table, above: str) -> QueueDraft:
    table.only(KEYS)
    name = table.text("name").lower()
    path = f"{above}.{name}" if above else name
    resources = table.table("resources", RESOURCE_KEYS)
    if resources:
        guaranteed, most = read_amount(resources, "guaranteed"), read_amount(resources, "max")
    else:
        guaranteed = most = Amount(table)
    queue = QueueDraft(table, name, path, guaranteed, most)
    given = table.node.entries
    for key, field, read in _PARTS:
        if key in given:
            setattr(queue, field, read(table, key))
    if "queues" in given:
        queue.queues = _read_children(table.tables("queues"), queue, table.findings)
    _warn(queue, table.findings)
    return queue


def _read_children(tables: list[Table], parent: QueueDraft, findings: Findings) -> list[QueueDraft]:
    seen: dict[str, Table] = {}
    children = []
    for table in tables:
        text = table.text("name")
        queue = _read_queue(table, parent.path)
        children.append(queue)
        if not is_queue_name(text) or queue.name == RECOVERY:
            fault = _name_fault(text) if "name" in table else "required, but missing"
            findings.problem(table.spot("name"), fault)
        elif queue.name in seen:
            first = f"first in line {seen[queue.name].spot('name').node.line}"
            twice = f"queue {queue.path} is defined twice, {first} (case does not matter)"
            findings.problem(table.spot("name"), twice)
        else:
            seen[queue.name] = table
    return children


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
    if queue.template and not queue.is_parent:
        spot = queue.table.spot("childtemplate")
        findings.warning(
            spot, "the template has no effect: this queue has no child queues and no 'parent: true'"
        )


def _read_acl(table: Table, key: str) -> Acl:
    text = table.text(key)
    if not text:
        return NOBODY
    try:
        acl = Acl.parse(text)
    except ValueError as error:
        table.findings.problem(table.spot(key), f"{error}: write 'user1,user2 group1,group2'")
        return NOBODY
    for name in illegal_names(text):
        table.findings.warning(table.spot(key), f"{quote(name)} is not a valid name and gives no one access")
    if text.strip() not in ("", "*") and len(text.split(" ")) > 2:
        table.findings.note(table.spot(key), "YuniKorn 1.9 fails at start on an ACL with extra spaces")
    return acl


def _read_template(table: Table, key: str) -> TemplateDraft | None:
    template = table.table(key, TEMPLATE_KEYS)
    if template is None:
        return None
    resources = template.table("resources", RESOURCE_KEYS)
    nothing = Amount(template)
    return TemplateDraft(
        table=template,
        max_applications=template.count("maxapplications") or 0,
        properties=template.pairs("properties"),
        guaranteed=read_amount(resources, "guaranteed", skip_empty=True) if resources else nothing,
        max=read_amount(resources, "max", skip_empty=True) if resources else nothing,
    )


_PARTS: tuple[tuple[str, str, Callable[[Table, str], object]], ...] = (
    ("parent", "parent", Table.boolean),
    ("maxapplications", "max_applications", Table.count),
    ("properties", "properties", Table.pairs),
    ("adminacl", "admin_acl", _read_acl),
    ("submitacl", "submit_acl", _read_acl),
    ("childtemplate", "template", _read_template),
    ("limits", "limits", read_limits),
)
"""Keys of a queue, with the field of the draft that each sets and its reader."""


def _join_limits(root: QueueDraft, partition: Table, findings: Findings) -> None:
    """Use the limits of the partition for the root queue; both may be present only if they are equal."""
    limits = read_limits(partition, "limits")
    if not limits:
        return
    if not root.limits:
        root.limits = limits
    elif [limit.as_written() for limit in limits] != [limit.as_written() for limit in root.limits]:
        text = "the limits of the partition and of its root queue differ: remove one of them"
        findings.problem(partition.spot("limits"), text)
