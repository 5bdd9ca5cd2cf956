"""Checks of message entries before the core processes them: types, and bounds of all values.

There is one function per kind of entry, which returns the first problem of an entry, or an empty text. The
meaning of an entry, and its consistency with the accounting, are checked elsewhere. The bounds:

- names (identifiers, keys, queue, user and group names, names of tags and of resource types) have at most
  `LONGEST_NAME` bytes in UTF-8 and no control characters, since they appear in logs, reports and terminals;
- amounts are integers of 64 bits, counts and priorities of 32 bits, as on the wire. Sums are exact whatever
  their size, and are limited to 64 bits where they are shown or serve as a limit;
- values of tags and attributes, and messages, are any text.

Registrations, and requests that do not consist of the interface's classes, are refused as a whole, because
there is no entry to answer.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

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
    PreemptionMode,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Resource

LONGEST_NAME = 1024
"""Maximum length of a name in bytes. Kubernetes limits names of objects to 253 characters."""


# -- what every entry is made of -----------------------------------------------------------------------


def _are_plain(names: Iterable[object]) -> bool:
    """Return True if all names are valid beyond doubt, by a fast check of all of them at once."""
    try:
        whole = "".join(names)  # type: ignore[arg-type]
    except TypeError:
        return False
    return len(whole) <= LONGEST_NAME and whole.isascii() and whole.isprintable()


def name_fault(what: str, value: object) -> str:
    """Return the problem of a name, or an empty text."""
    if not isinstance(value, str):
        return f"{what} is {_kind(value)}, not text"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return f"{what} is not valid text: it contains surrogates (halves of characters)"
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
    """Return the problem of tags or attributes, or an empty text."""
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
            problem = "is not valid text: it contains surrogates (halves of characters)"
            return f"{what}['{printable(name)}'] {problem}"
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
    """Return the problem of an amount, or an empty text; negative quantities are not a problem here."""
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
    # Python refuses to print an integer of more than 4,300 digits.
    if isinstance(value, bool) or not isinstance(value, int):
        return _kind(value)
    return str(value) if value.bit_length() <= 256 else f"a number of {value.bit_length()} bits"


def _kind(value: object) -> str:
    return type(value).__name__


def shown_id(value: object) -> str:
    """Return an identifier for an answer: unchanged, or what remains of one that is no valid text."""
    if not isinstance(value, str):
        return ""
    return value if _has_utf8(value) else value.encode("utf-8", "backslashreplace").decode()


# -- the entries of an update --------------------------------------------------------------------------


def application_fault(new: AddApplicationRequest) -> str:
    """Return the problem of a new application, or an empty text."""
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
    """Return the problem of the removal of an application, or an empty text."""
    return _names_fault(applicationID=gone.application_id, partitionName=gone.partition_name)


def ask_fault(ask: AllocationAsk) -> str:
    """Return the problem of an ask, or an empty text."""
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
        or _whole_fault("maxAllocations", ask.max_allocations, INT32_MIN, INT32_MAX)
        or ("" if priority is None else _whole_fault("priority", priority, INT64_MIN, INT64_MAX))
        or _milliseconds_fault(ask.execution_timeout_ms)
        or _flags_fault(placeholder=ask.placeholder, originator=ask.originator)
        or _policy_fault(ask.preemption_policy)
    )


def allocation_fault(one: Allocation) -> str:
    """Return the problem of an allocation that an RM reports, or an empty text."""
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
        or _whole_fault("priority", one.priority, INT32_MIN, INT32_MAX)
        or _flags_fault(placeholder=one.placeholder, originator=one.originator)
        or _policy_fault(one.preemption_policy)
    )


def release_fault(gone: AllocationRelease) -> str:
    """Return the problem of the release of an allocation or of its confirmation, or an empty text."""
    fault = _names_fault(
        applicationID=gone.application_id,
        UUID=gone.uuid,
        allocationKey=gone.allocation_key,
        partitionName=gone.partition_name,
    ) or _ending_fault(gone)
    if fault or gone.preemption_mode is PreemptionMode.END:
        return fault
    return _choice_fault("preemptionMode", gone.preemption_mode, PreemptionMode)


def ask_release_fault(gone: AllocationAskRelease) -> str:
    """Return the problem of the release of an ask, or an empty text."""
    return _names_fault(
        applicationID=gone.application_id,
        allocationKey=gone.allocation_key,
        partitionName=gone.partition_name,
    ) or _ending_fault(gone)


def _ending_fault(gone: AllocationRelease | AllocationAskRelease) -> str:
    if gone.message != "" and (fault := _message_fault(gone.message)):
        return fault
    return _choice_fault("terminationType", gone.termination_type, TerminationType)


def _modes_fault(modes: object) -> str:
    if isinstance(modes, list | tuple) and all(isinstance(mode, PreemptionMode) for mode in modes):
        return ""
    return "preemption_modes is not a list of PreemptionMode"


def _message_fault(message: object) -> str:
    if not isinstance(message, str):
        return f"message is {_kind(message)}, not text"
    return (
        ""
        if _has_utf8(message)
        else "message is not valid text: it contains surrogates (halves of characters)"
    )


def node_fault(new: NewNodeInfo) -> str:
    """Return the problem of a new node, or an empty text; its allocations are checked one by one."""
    return (
        name_fault("nodeID", new.node_id)
        or _texts_fault("attributes", new.attributes)
        or amount_fault("schedulableResource", new.schedulable_resource)
        or amount_fault("occupiedResource", new.occupied_resource)
        or _flags_fault(schedulable=new.schedulable)
    )


def node_update_fault(update: UpdateNodeInfo) -> str:
    """Return the problem of the update of a node, or an empty text; values of None stay unchanged."""
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
    """Raise `UsageError` with all problems of a registration, if there are any."""
    if isinstance(request.rm_id, str) and not request.rm_id:
        raise UsageError("a resource manager needs an id: set rm_id")
    faults = [
        name_fault("rm_id", request.rm_id),
        name_fault("version", request.version),
        name_fault("policy_group", request.policy_group),
        _texts_fault("build_info", request.build_info),
        _texts_fault("extra_config", request.extra_config),
        _modes_fault(request.preemption_modes),
    ]
    if not isinstance(request.config, str | bytes):
        faults.append(f"config is {_kind(request.config)}, not text")
    if any(faults):
        raise UsageError(f"invalid registration: {'; '.join(filter(None, faults))}")


def check_request(request: UpdateRequest) -> None:
    """Raise `UsageError` if an update does not consist of the interface's classes.

    No entry of such an update is applied.
    """
    faults = list(_wrong_entries(request))
    if faults:
        more = f", and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise UsageError(f"no entry of this update was applied: {'; '.join(faults[:5])}{more}")


def is_regular(request: UpdateRequest) -> bool:
    """Return True if `check_request` has nothing to refuse beyond doubt; False if in doubt.

    Most updates have one entry, so that the empty lists cost more than the entry. Nodes bring allocations,
    and are left to `check_request`.
    """
    if type(request.releases) is not AllocationReleasesRequest or request.new_schedulable_nodes:
        return False
    for wanted, entries in zip(_CLASSES, _lists_of(request), strict=True):
        if type(entries) is not list:
            return False
        if entries:
            for entry in entries:
                if type(entry) is not wanted:
                    return False
    return True


def _wrong_entries(request: UpdateRequest) -> Iterator[str]:
    releases: object = request.releases
    if not isinstance(releases, AllocationReleasesRequest):
        yield f"releases is {_kind(releases)}, not AllocationReleasesRequest"
    for (name, wanted), entries in zip(_ENTRIES, _entries_of(request), strict=True):
        if entries or type(entries) is not list:
            yield from _wrong_in(name, entries, wanted)
    if isinstance(releases, AllocationReleasesRequest):
        for (name, wanted), entries in zip(_RELEASES, _releases_of(releases), strict=True):
            if entries or type(entries) is not list:
                yield from _wrong_in(f"releases.{name}", entries, wanted)
    for index, node in enumerate(request.new_schedulable_nodes):
        if isinstance(node, NewNodeInfo):
            path = f"new_schedulable_nodes[{index}].existing_allocations"
            yield from _wrong_in(path, node.existing_allocations, Allocation)


_ENTRIES: tuple[tuple[str, type], ...] = (
    ("new_applications", AddApplicationRequest),
    ("remove_applications", RemoveApplicationRequest),
    ("asks", AllocationAsk),
    ("new_schedulable_nodes", NewNodeInfo),
    ("updated_nodes", UpdateNodeInfo),
    ("allocations", Allocation),
)
"""Lists of entries in an update, with the class of their entries."""
_RELEASES: tuple[tuple[str, type], ...] = (
    ("allocations_to_release", AllocationRelease),
    ("allocation_asks_to_release", AllocationAskRelease),
)
"""Lists of entries in the releases of an update, with the class of their entries."""
_CLASSES = tuple(wanted for _, wanted in (*_ENTRIES, *_RELEASES))
_lists_of: Callable[[UpdateRequest], tuple[Any, ...]] = attrgetter(
    *[name for name, _ in _ENTRIES], *[f"releases.{name}" for name, _ in _RELEASES]
)
"""All lists of an update, those of its releases included; `_CLASSES` has the classes of their entries."""
_entries_of: Callable[[UpdateRequest], tuple[object, ...]] = attrgetter(*[name for name, _ in _ENTRIES])
_releases_of: Callable[[AllocationReleasesRequest], tuple[object, ...]] = attrgetter(
    *[name for name, _ in _RELEASES]
)


def _wrong_in(name: str, entries: object, wanted: type) -> Iterator[str]:
    if not isinstance(entries, list | tuple):
        yield f"{name} is {_kind(entries)}, not a list"
        return
    for index, entry in enumerate(entries):
        if not isinstance(entry, wanted):
            yield f"{name}[{index}] is {_kind(entry)}, not {wanted.__name__}"
