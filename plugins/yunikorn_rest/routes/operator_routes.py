"""Routes that stop and start queues and partitions, drain nodes, and fail applications."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from yunikorn.errors import printable
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.node import Node
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.states import FAILED
from yunikorn.text import listed, suggest
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import Call, Endpoint, Route
from yunikorn_rest.lookup import check_queue_name, find_application, find_partition, find_queue
from yunikorn_rest.node_reader import drained_by
from yunikorn_rest.operator_actions import Change, OperatorChanges
from yunikorn_rest.route_access import OFF, Caller, RouteAccess
from yunikorn_rest.routes.partition_routes import PARTITION, QUEUE

LARGEST = 64 << 10
"""Maximum size in bytes of the body of a request."""
LONGEST_REASON = 1000
"""Maximum number of characters of a reason."""
ERRORS = (400, 404, 408, 409, 413)
"""Statuses of errors of changes."""


def steering_of(call: Call) -> OperatorChanges:
    """Return the access to the core for changes; raises `RequestRefused` if changes are off."""
    if call.context.steering is None:
        raise RequestRefused(403, OFF)
    return call.context.steering


async def json_body(call: Call, known: Collection[str]) -> dict[str, Any]:
    """Return the JSON object in the body, empty if there is no body; raises `RequestRefused`."""
    data = await call.body(LARGEST)
    if not data.strip():
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, f"the body is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise RequestRefused(400, "the body is not a JSON object")
    unknown = [key for key in found if key not in known]
    if unknown:
        expected = f"known: {', '.join(known)}" if known else "none is expected"
        key = unknown[0][:100]
        raise RequestRefused(400, f"the body has an unknown field '{key}'{suggest(key, known)}; {expected}")
    return found


async def _made(
    call: Call, what: str, target: Mapping[str, str], change: Callable[[Scheduler], Change]
) -> Answer:
    """Make a change in the core, and answer with its effect."""
    found = await steering_of(call).act(call.caller, what, target, change)
    return await call.json(found, conditional=False)


# -- partitions, queues and nodes ------------------------------------------------------------------------

Target = Mapping[str, str]
"""Names of the objects in the path of a request."""


def _switch_partition(verb: str, core: Scheduler, target: Target, _: Caller) -> Change:
    rm_id, at = find_partition(core, target["partition"])
    before = at.partition.state
    changed = (core.stop_partition if verb == "stop" else core.start_partition)(rm_id, at.name)
    return Change(changed=changed, before=before, after=at.partition.state)


def _switch_queue(verb: str, core: Scheduler, target: Target, caller: Caller) -> Change:
    rm_id, at = find_partition(core, target["partition"])
    queue = find_queue(at, target["queue"])
    caller.check_queue(queue)
    before = queue.state
    if verb == "stop":
        changed = core.stop_queue(rm_id, at.name, queue.path, lasting=True)
    else:
        changed = core.start_queue(rm_id, at.name, queue.path)
    return Change(changed=changed, before=before, after=queue.state)


def _switch_node(verb: str, core: Scheduler, target: Target, _: Caller) -> Change:
    rm_id, at = find_partition(core, target["partition"])
    node_id = target["node"]
    node = at.partition.nodes.get(node_id)
    if node is None and (verb == "drain" or node_id not in at.partition.drained_by_operator):
        raise RequestRefused(404, "Node not found")
    before = _state_of(node, at, node_id)
    changed = (core.drain_node if verb == "drain" else core.undrain_node)(rm_id, at.name, node_id)
    return Change(changed=changed, before=before, after=_state_of(node, at, node_id))


SWITCHES: Mapping[str, tuple[str, RouteAccess, Callable[[str, Scheduler, Target, Caller], Change]]] = {
    "partition": (PARTITION, RouteAccess.OPERATE, _switch_partition),
    "queue": (QUEUE, RouteAccess.KNOWN, _switch_queue),
    "node": (PARTITION + "/node/{node}", RouteAccess.OPERATE, _switch_node),
}
"""Path, needed credentials and function of the changes without a body, by kind of object."""


def _switch(verb: str, kind: str, summary: str) -> Endpoint:
    """Return the endpoint of a change without a body."""
    path, access, change = SWITCHES[kind]

    async def answer(call: Call) -> Answer:
        await json_body(call, ())
        target = {key: call.text(key) for key in call.request.path_params}
        if "queue" in target:
            target["queue"] = call.name("queue")
            check_queue_name(target["queue"])
        return await _made(
            call, f"{verb} {kind}", target, lambda core: change(verb, core, target, call.caller)
        )

    return Route(f"{path}/{verb}", Change, method="POST", errors=ERRORS, access=access)(answer, summary)


def _state_of(node: Node | None, at: PartitionScheduler, node_id: str) -> str:
    """Return the state of a node with those who drain it; a node that is not registered may be drained."""
    if node is None:
        return "not registered" + (
            ", drained by operator" if node_id in at.partition.drained_by_operator else ""
        )
    causes = drained_by(node)
    return f"{node.state}, drained by {listed(causes)}" if causes else node.state


# -- applications ----------------------------------------------------------------------------------------


@Route(
    PARTITION + "/application/{application}/fail",
    Change,
    method="POST",
    errors=ERRORS,
    body="application/json",
    body_schema={
        "type": "object",
        "properties": {"reason": {"type": "string", "maxLength": LONGEST_REASON}},
        "additionalProperties": False,
    },
    access=RouteAccess.KNOWN,
)
async def fail_application(call: Call) -> Answer:
    """Fail an application; the body may give a reason."""
    body = await json_body(call, ("reason",))
    name, app_id, reason = call.text("partition"), call.text("application"), body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise RequestRefused(400, f"reason: expected a text of at most {LONGEST_REASON} characters")
    # Resource managers get the reason as UTF-8, which cannot contain single surrogates.
    reason = printable(reason)
    why = f"{reason or 'failed'} (by operator {call.caller.name})"

    def apply(core: Scheduler) -> Change:
        rm_id, at = find_partition(core, name)
        ended = at.partition.ended.get(app_id)
        if ended is not None and app_id not in at.partition.applications and app_id not in at.submitted:
            return _unchanged(call.caller, at, ended)
        before = _check_application(call.caller, at, app_id)
        core.fail_application(rm_id, at.name, app_id, why)
        app = at.partition.applications.get(app_id) or at.partition.ended.get(app_id)
        return Change(changed=True, before=before, after="Rejected" if app is None else app.state)

    target = {"partition": name, "application": app_id, **({"reason": reason} if reason else {})}
    return await _made(call, "fail application", target, apply)


def _unchanged(caller: Caller, at: PartitionScheduler, app: Application) -> Change:
    """Return no change for an application that has failed.

    Raises `RequestRefused` if it has ended otherwise.
    """
    caller.check_queue(app.queue or at.partition.queues.root)
    if app.state != FAILED:
        raise RequestRefused(409, f"the application has ended already, it is {app.state}")
    return Change(changed=False, before=app.state, after=app.state)


def _check_application(caller: Caller, at: PartitionScheduler, app_id: str) -> str:
    """Return the state of an application that the client may fail; raises `RequestRefused`."""
    if app_id in at.submitted:
        caller.check_queue(at.partition.queues.root)  # it is in no queue yet
        return "New"
    app = find_application(at, app_id)
    caller.check_queue(app.queue or at.partition.queues.root)
    return app.state


# -- credentials -----------------------------------------------------------------------------------------


@Route("/ws/v1/whoami", shapes.WhoAmI, access=RouteAccess.KNOWN)
async def who_am_i(call: Call) -> Answer:
    """Name, role and groups of the client's credentials."""
    who = call.caller.credential
    if who is None:
        raise RequestRefused(401, "credentials are needed")
    found = shapes.WhoAmI(name=who.name, role=who.role.value, groups=who.groups)
    return await call.json(found, conditional=False)


ENDPOINTS = (
    _switch("stop", "partition", "Stop new applications and allocations in a partition"),
    _switch("start", "partition", "Start a stopped partition"),
    _switch("stop", "queue", "Stop new allocations in a queue and its children"),
    _switch("start", "queue", "Start a queue that was stopped by a call"),
    _switch("drain", "node", "Keep new allocations off a node"),
    _switch("undrain", "node", "Let a node take part again that was drained by a call"),
    fail_application,
    who_am_i,
)
