"""JSON objects that explain why requests wait."""

from __future__ import annotations

import attrs

from yunikorn_rest.shapes import Amounts
from yunikorn_service.fields import NONE, always, optional


@attrs.frozen(kw_only=True)
class WaitBlocker:
    """An object that stops requests, or that they wait for."""

    kind: str = always("`queue`, `node`, `application`, `user` or `group`")
    name: str = always("full path of a queue, else the name or id")


@attrs.frozen(kw_only=True)
class WaitReason:
    """A condition that stops requests."""

    check: str = always(
        "check that fails: `stopped`, `application limit`, `admission`, `order`, `back-off`, `preemption`,"
        " `gang`, `quota`, `limit`, `nodes`, `predicates`, `reservation` or `permit`"
    )
    summary: str = always("condition without numbers, equal for all requests that it stops")
    message: str = always("condition with the current numbers")
    policy: str = optional("admission, permit or quota policy that sets the condition", "")
    blockers: tuple[WaitBlocker, ...] = optional("objects that the condition is about", ())


@attrs.frozen(kw_only=True)
class WaitingRequests:
    """Equal requests that wait: of one size and priority, stopped by the same conditions."""

    allocation_keys: tuple[str, ...] = always("keys of the first of them, 10 at most")
    request_count: int = always("number of requests")
    pending_count: int = always("number of allocations that they wait for, or that are held")
    resource: Amounts = always("size of each allocation", NONE)
    priority: int = always("priority", 0)
    task_group_name: str = optional("task group", "")
    placed: bool = always("true if the requests are placed and permit policies hold the allocations", False)
    reserved_node_id: str = optional("node that is reserved for them", "")
    reasons: tuple[WaitReason, ...] = always(
        "conditions that stop the requests, in the order of the checks; empty if none does", ()
    )
    suggested_fixes: tuple[str, ...] = always(
        "the smallest changes that together would let the requests run at their place", ()
    )
    first_rank: int = optional("rank of the first of them in the queue, from 1 on", 0)
    last_rank: int = optional("rank of the last of them in the queue; others may be in between", 0)


@attrs.frozen(kw_only=True)
class QueueRank:
    """Rank of a queue among its siblings with pending requests."""

    queue_name: str = always("full path of the queue")
    rank: int = always("rank, from 1 on")
    of: int = always("number of siblings with pending requests, with the queue itself")
    parent: str = always("full path of the parent")


@attrs.frozen(kw_only=True)
class WaitExplanation:
    """Explanation why the requests of an application wait."""

    application_id: str = always("id of the application", name="applicationID")
    partition: str = always("name of the partition")
    queue_name: str = optional("full path of the queue", "")
    application_state: str = optional("state of the application as in YuniKorn 1.9", "")
    design_state: str = optional("state of the application (docs/states.md), if it differs", "")
    workload: str = optional("owner of the tasks and its gang, as the resource manager has read them", "")
    time: int = always("time of the answer (ns)", 0)
    awaited: str = optional(
        "policy whose answer the application, or the first of its unchecked requests, waits for, as "
        "`submit policy NAME`",
        "",
    )
    unchecked_count: int = optional(
        "number of requests that wait for the answer of a submit policy, and are not in `requests` yet", 0
    )
    reasons: tuple[WaitReason, ...] = always("conditions that stop every request of the application", ())
    pending_count: int = always("number of pending allocations", 0)
    omitted_count: int = always("number of allocations that are not in `requests`, because of `limit`", 0)
    requests: tuple[WaitingRequests, ...] = always("requests that wait, in their order; held ones last", ())
    pending_in_queue: int = always("number of pending allocations in the queue", 0)
    request_order: str = optional(
        "sort policy of the queue, if it orders the requests of an application among equal priorities", ""
    )
    queue_ranks: tuple[QueueRank, ...] = always("rank of the queue, and of each queue above but root", ())
