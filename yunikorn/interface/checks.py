"""What an entry of a message has to be before the core looks at it: the types, and bounds of everything.

One function per kind of entry, which answers the first thing that is wrong with it, or nothing. What an entry
means, and whether it fits the books, is not asked here. The bounds:

- names (identifiers, keys, queue, user and group names, names of tags and of resource types) have at most
  `LONGEST_NAME` bytes in UTF-8 and no control characters: they end up in logs, reports and terminals;
- amounts are whole numbers of 64 bits, and counts and priorities of 32, as on the wire. Sums are kept exactly
  whatever their size; where one is shown, or is a limit, it is held within 64 bits;
- values of tags and attributes, and messages, are any text.

Registrations, and requests that are not made of the interface's own classes, are refused as a whole: there is
nobody to answer.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from yunikorn.errors import UsageError, printable
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import INT64_MAX, INT64_MIN, Resource

LONGEST_NAME = 1024
"""Bytes of the longest name. Identifiers of Kubernetes have some hundred at most."""
INT32_MAX = 2**31 - 1


# -- what every entry is made of -----------------------------------------------------------------------


def _are_plain(names: Iterable[object]) -> bool:
    """Whether names are fine beyond doubt, all in one go: they almost always are."""
    try:
        whole = "".join(names)  # type: ignore[arg-type]
    except TypeError:
        return False
    return len(whole) <= LONGEST_NAME and whole.isascii() and whole.isprintable()


def name_fault(what: str, value: object) -> str:
    """What is wrong with a name; an empty one is no name."""
    if not isinstance(value, str):
        return f"{what} is {_kind(value)}, not text"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return f"{what} is no text: it has halves of characters (surrogates)"
    if size > LONGEST_NAME:
        return f"{what} has {size} bytes: a name has at most {LONGEST_NAME}"
    if any(unicodedata.category(char) == "Cc" for char in value):
        return f"{what} has control characters: {printable(value)[:80]}"
    return ""


def _names_fault(**names: object) -> str:
    if _are_plain(names.values()):
        return ""
    for what, value in names.items():
        if fault := name_fault(what, value):
            return fault
    return ""


def _texts_fault(what: str, texts: object) -> str:
    """What is wrong with tags or attributes."""
    if not isinstance(texts, Mapping):
        return f"{what} are {_kind(texts)}, not a mapping of text to text"
    if not texts or (_are_plain(texts) and _are_text(texts.values())):
        return ""
    for name, value in texts.items():
        if fault := name_fault(f"a name in {what}", name):
            return fault
        if not isinstance(value, str):
            return f"{what}['{printable(name)}'] is {_kind(value)}, not text"
        if not _has_utf8(value):
            return f"{what}['{printable(name)}'] is no text: it has halves of characters (surrogates)"
    return ""


def _are_text(values: Iterable[object]) -> bool:
    try:
        return "".join(values).isascii()  # type: ignore[arg-type]
    except TypeError:
        return False


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def amount_fault(what: str, amount: object) -> str:
    """What is wrong with an amount; whether it may be below 0 is not asked here."""
    if not isinstance(amount, Resource):
        return f"{what} is {_kind(amount)}, not a Resource"
    if not _are_plain(amount) or "" in amount:
        kind = f"a resource type of {what}"
        for name in amount:
            if fault := name_fault(kind, name):
                return fault
            if not name:
                return f"{kind} is empty"
    for name, value in amount.items():
        if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
            return f"{what}: {printable(name)} is {_number(value)}, not a whole number of 64 bits"
    return ""


def _whole_fault(what: str, value: object, low: int, high: int) -> str:
    if type(value) is int and low <= value <= high:
        return ""
    return f"{what} is {_number(value)}, not a whole number from {low} to {high}"


def _flags_fault(**flags: object) -> str:
    for what, value in flags.items():
        if value is not True and value is not False:
            return f"{what} is {_kind(value)}, not true or false"
    return ""


def _policy_fault(policy: object) -> str:
    if policy is None:
        return ""
    if not isinstance(policy, PreemptionPolicy):
        return f"preemptionPolicy is {_kind(policy)}, not PreemptionPolicy"
    return _flags_fault(
        allowPreemptSelf=policy.allow_preempt_self, allowPreemptOther=policy.allow_preempt_other
    )


def _choice_fault(what: str, value: object, choices: type[enum.IntEnum]) -> str:
    if isinstance(value, choices):
        return ""
    return f"{what} is {_number(value)}, not one of {', '.join(one.name for one in choices)}"


def _number(value: object) -> str:
    # An int of absurd size cannot even be printed: Python refuses after 4,300 digits.
    if isinstance(value, bool) or not isinstance(value, int):
        return _kind(value)
    return str(value) if value.bit_length() <= 256 else f"a number of {value.bit_length()} bits"


def _kind(value: object) -> str:
    return type(value).__name__


def told(value: object) -> str:
    """An identifier as an answer can carry it: as it came, or what is left of it if it was no text."""
    if not isinstance(value, str):
        return ""
    return value if _has_utf8(value) else value.encode("utf-8", "backslashreplace").decode()


# -- the entries of an update --------------------------------------------------------------------------


def application_fault(new: AddApplicationRequest) -> str:
    """What is wrong with a new application."""
    ugi: object = new.ugi
    if not isinstance(ugi, UserGroupInformation):
        return f"ugi is {_kind(ugi)}, not UserGroupInformation"
    if isinstance(ugi.groups, str) or not isinstance(ugi.groups, Iterable):
        return f"ugi.groups are {_kind(ugi.groups)}, not a list of names"
    return (
        _names_fault(
            applicationID=new.application_id,
            queueName=new.queue_name,
            partitionName=new.partition_name,
            gangSchedulingStyle=new.gang_scheduling_style,
            user=ugi.user,
        )
        or next(filter(None, (name_fault("a group", group) for group in ugi.groups)), "")
        or _texts_fault("tags", new.tags)
        or amount_fault("placeholderAsk", new.placeholder_ask)
        or _milliseconds_fault(new.execution_timeout_ms)
    )


def _milliseconds_fault(value: object) -> str:
    return _whole_fault("executionTimeoutMilliSeconds", value, INT64_MIN, INT64_MAX)


def removal_fault(gone: RemoveApplicationRequest) -> str:
    """What is wrong with the removal of an application."""
    return _names_fault(applicationID=gone.application_id, partitionName=gone.partition_name)


def ask_fault(ask: AllocationAsk) -> str:
    """What is wrong with an ask."""
    priority: object = ask.priority
    return (
        _names_fault(
            allocationKey=ask.allocation_key,
            applicationID=ask.application_id,
            partitionName=ask.partition_name,
            taskGroupName=ask.task_group_name,
            priorityClassName=ask.priority_class_name,
        )
        or _texts_fault("tags", ask.tags)
        or amount_fault("resourceAsk", ask.resource_ask)
        or _whole_fault("maxAllocations", ask.max_allocations, -INT32_MAX - 1, INT32_MAX)
        or ("" if priority is None else _whole_fault("priority", priority, INT64_MIN, INT64_MAX))
        or _milliseconds_fault(ask.execution_timeout_ms)
        or _flags_fault(placeholder=ask.placeholder, originator=ask.originator)
        or _policy_fault(ask.preemption_policy)
    )


def allocation_fault(one: Allocation) -> str:
    """What is wrong with an allocation that an RM reports."""
    return (
        _names_fault(
            allocationKey=one.allocation_key,
            applicationID=one.application_id,
            UUID=one.uuid,
            nodeID=one.node_id,
            queueName=one.queue_name,
            partitionName=one.partition_name,
            taskGroupName=one.task_group_name,
            priorityClassName=one.priority_class_name,
        )
        or _texts_fault("allocationTags", one.allocation_tags)
        or amount_fault("resourcePerAlloc", one.resource_per_alloc)
        or _whole_fault("priority", one.priority, -INT32_MAX - 1, INT32_MAX)
        or _flags_fault(placeholder=one.placeholder, originator=one.originator)
        or _policy_fault(one.preemption_policy)
    )


def release_fault(gone: AllocationRelease) -> str:
    """What is wrong with the release of an allocation, or with its confirmation."""
    return _names_fault(
        applicationID=gone.application_id,
        UUID=gone.uuid,
        allocationKey=gone.allocation_key,
        partitionName=gone.partition_name,
    ) or _ending_fault(gone)


def ask_release_fault(gone: AllocationAskRelease) -> str:
    """What is wrong with the release of an ask."""
    return _names_fault(
        applicationID=gone.application_id,
        allocationKey=gone.allocation_key,
        partitionName=gone.partition_name,
    ) or _ending_fault(gone)


def _ending_fault(gone: AllocationRelease | AllocationAskRelease) -> str:
    if gone.message != "" and (fault := _message_fault(gone.message)):
        return fault
    return _choice_fault("terminationType", gone.termination_type, TerminationType)


def _message_fault(message: object) -> str:
    if not isinstance(message, str):
        return f"message is {_kind(message)}, not text"
    return "" if _has_utf8(message) else "message is no text: it has halves of characters (surrogates)"


def node_fault(new: NewNodeInfo) -> str:
    """What is wrong with a new node; its allocations are looked at one by one."""
    return (
        name_fault("nodeID", new.node_id)
        or _texts_fault("attributes", new.attributes)
        or amount_fault("schedulableResource", new.schedulable_resource)
        or amount_fault("occupiedResource", new.occupied_resource)
        or _flags_fault(schedulable=new.schedulable)
    )


def node_update_fault(update: UpdateNodeInfo) -> str:
    """What is wrong with the update of a node; what is None stays as it is."""
    capacity, occupied = update.schedulable_resource, update.occupied_resource
    return (
        name_fault("nodeID", update.node_id)
        or _texts_fault("attributes", update.attributes)
        or ("" if capacity is None else amount_fault("schedulableResource", capacity))
        or ("" if occupied is None else amount_fault("occupiedResource", occupied))
        or _choice_fault("action", update.action, NodeAction)
    )


# -- what is refused as a whole ------------------------------------------------------------------------


def check_registration(request: RegisterResourceManagerRequest) -> None:
    """Raise `UsageError` with everything that is wrong with a registration."""
    if isinstance(request.rm_id, str) and not request.rm_id:
        raise UsageError("a resource manager needs an id: set rm_id")
    faults = [
        name_fault("rm_id", request.rm_id),
        name_fault("version", request.version),
        name_fault("policy_group", request.policy_group),
        _texts_fault("build_info", request.build_info),
        _texts_fault("extra_config", request.extra_config),
    ]
    if not isinstance(request.config, str | bytes):
        faults.append(f"config is {_kind(request.config)}, not text")
    if any(faults):
        raise UsageError(f"the registration cannot be used: {'; '.join(filter(None, faults))}")


def check_request(request: UpdateRequest) -> None:
    """Raise `UsageError` where an update is not made of the interface's classes; then nothing is taken in."""
    faults = list(_strange_entries(request))
    if faults:
        more = f", and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise UsageError(f"nothing of this update was taken in: {'; '.join(faults[:5])}{more}")


def _strange_entries(request: UpdateRequest) -> Iterator[str]:
    lists: list[tuple[str, object, type]] = [
        ("new_applications", request.new_applications, AddApplicationRequest),
        ("remove_applications", request.remove_applications, RemoveApplicationRequest),
        ("asks", request.asks, AllocationAsk),
        ("new_schedulable_nodes", request.new_schedulable_nodes, NewNodeInfo),
        ("updated_nodes", request.updated_nodes, UpdateNodeInfo),
        ("allocations", request.allocations, Allocation),
    ]
    releases: object = request.releases
    if isinstance(releases, AllocationReleasesRequest):
        gone, asks = releases.allocations_to_release, releases.allocation_asks_to_release
        lists.append(("releases.allocations_to_release", gone, AllocationRelease))
        lists.append(("releases.allocation_asks_to_release", asks, AllocationAskRelease))
    else:
        yield f"releases is {_kind(releases)}, not AllocationReleasesRequest"
    for name, entries, wanted in lists:
        yield from _strange_in(name, entries, wanted)
    for index, node in enumerate(request.new_schedulable_nodes):
        if isinstance(node, NewNodeInfo):
            path = f"new_schedulable_nodes[{index}].existing_allocations"
            yield from _strange_in(path, node.existing_allocations, Allocation)


def _strange_in(name: str, entries: object, wanted: type) -> Iterator[str]:
    if not isinstance(entries, list | tuple):
        yield f"{name} is {_kind(entries)}, not a list"
        return
    for index, entry in enumerate(entries):
        if not isinstance(entry, wanted):
            yield f"{name}[{index}] is {_kind(entry)}, not {wanted.__name__}"
