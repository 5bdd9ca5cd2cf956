"""Routes that change settings of the service: its configurations and log levels."""

from __future__ import annotations

import re

import attrs

from yunikorn.errors import UsageError
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.config_changes import ConfigChanges, ConfigRequest, ConfigResult
from yunikorn_rest.endpoints import Call, Query, Route
from yunikorn_rest.operator_actions import Change
from yunikorn_rest.route_access import RouteAccess
from yunikorn_rest.routes.configuration_routes import LARGEST, YAML
from yunikorn_rest.routes.operator_routes import json_body, steering_of
from yunikorn_service.log_levels import INHERITED, LEVELS

_CHECKSUM = re.compile(r'(?:W/)?"?([0-9A-Fa-f]{64})"?')
_MOST_AUDITED = 100
"""Number of changes in an entry of the audit log."""


_OWNERS = (
    Query("policyGroup", "policy group of the configuration; the default group if absent"),
    Query("rm", "id of a resource manager that has a configuration of its own"),
)


@Route(
    "/ws/v1/config/text",
    content_type="application/x-yaml",
    queries=_OWNERS,
    errors=(400, 404, 409),
    access=RouteAccess.ADMIN,
)
async def configuration_text(call: Call) -> Answer:
    """Text of a configuration in use, as it was given; its `ETag` is the checksum."""
    changer = _changer(call)
    found = await changer.text(*_owner(call))
    etag = {"etag": f'"{found.checksum}"', "cache-control": "no-store"}
    return Answer(pieces=(found.text,), content_type=YAML, headers=etag)


def _changer(call: Call) -> ConfigChanges:
    changer = steering_of(call).configuration
    if changer is None:
        raise RequestRefused(409, "this scheduler has no configurations that can be changed here")
    return changer


def _owner(call: Call) -> tuple[str, str]:
    """Return the policy group and the resource manager of a request, one of them empty.

    Raises `RequestRefused`.
    """
    policy_group, rm_id = call.query("policyGroup"), call.query("rm")
    if policy_group and rm_id:
        raise RequestRefused(400, "give either `policyGroup` or `rm`")
    return policy_group, rm_id


@Route(
    "/ws/v1/config",
    ConfigResult,
    method="PUT",
    queries=(
        Query("dryRun", "only return what would change", "true"),
        *_OWNERS,
        Query("persist", "`false` to use the configuration until the next reload only", "false"),
    ),
    errors=(400, 404, 408, 409, 412, 413, 422),
    body="application/x-yaml",
    access=RouteAccess.ADMIN,
)
async def change_configuration(call: Call) -> Answer:
    """Check a configuration, whose text is the body of the request, and use it."""
    steering, changer = steering_of(call), _changer(call)
    query = call.request.query_params
    policy_group, rm_id = _owner(call)
    request = ConfigRequest(
        text=await call.body(LARGEST),
        policy_group=policy_group,
        rm_id=rm_id,
        persist=_flag(call, "persist", default=True),
        dry_run="dryRun" in query and _flag(call, "dryRun", default=True),
        match=_match(call.request.headers.get("if-match", "")),
    )
    if request.dry_run:
        return await call.json(await changer.change(request), conditional=False)
    outcome: list[ConfigResult] = []

    async def make() -> Change:
        result = await changer.change(request)
        outcome.append(result)
        if result.problems:
            raise RequestRefused(
                422, "; ".join(problem.message for problem in result.problems[:_MOST_AUDITED])
            )
        return Change(
            changed=bool(result.changes),
            before={"checksum": result.checksum},
            after={
                "checksum": result.new_checksum,
                "policyGroup": result.policy_group,
                "resourceManagers": list(result.resource_managers),
                "persisted": result.persisted,
                "changes": [_in_words(change) for change in result.changes[:_MOST_AUDITED]],
                "changeCount": len(result.changes),
            },
        )

    # A group may be called "default" without being the default one: its real name is in the last entry.
    target = {"policyGroup": request.policy_group or "(default group)"}
    if request.rm_id:
        target = {"resourceManager": request.rm_id}
    status = 200
    try:
        await steering.change(call.caller, "apply configuration", target, make)
    except RequestRefused as refused:
        if not outcome:
            raise
        status = refused.status
    answer = await call.json(outcome[0], conditional=False)
    return attrs.evolve(answer, status=status)


def _in_words(change: object) -> dict[str, object]:
    fields = ("path", "change", "before", "after", "note")
    found = {name: getattr(change, name) for name in fields}
    return {name: value for name, value in found.items() if value not in (None, "")}


def _flag(call: Call, name: str, *, default: bool) -> bool:
    """Return a query parameter that is `true`, `false`, or present without a value.

    Raises `RequestRefused`.
    """
    given = call.query(name).lower()
    if given not in ("", "true", "false"):
        raise RequestRefused(400, f"{name}: expected true or false")
    return default if not given else given == "true"


def _match(header: str) -> str:
    """Return the checksum of the header `If-Match`; empty for any. Raises `RequestRefused`."""
    if header.strip() in ("", "*"):
        return ""
    found = _CHECKSUM.fullmatch(header.strip())
    if found is None:
        raise RequestRefused(400, "If-Match: expected the checksum of a configuration, 64 hexadecimal digits")
    return found[1].upper()


# -- log levels ------------------------------------------------------------------------------------------


@Route("/ws/v1/loglevel", shapes.LogLevels)
async def log_levels(call: Call) -> Answer:
    """Log level of each area."""
    return await call.json(shapes.LogLevels(levels=call.context.log_levels.read()), conditional=False)


@Route(
    "/ws/v1/loglevel",
    Change,
    method="PUT",
    errors=(400, 408, 413),
    body="application/json",
    body_schema={
        "type": "object",
        "properties": {
            "levels": {
                "type": "object",
                "minProperties": 1,
                "description": "level by logger, as the answer to GET names them",
                "additionalProperties": {"enum": [*LEVELS, INHERITED]},
            }
        },
        "required": ["levels"],
        "additionalProperties": False,
    },
    access=RouteAccess.ADMIN,
)
async def set_log_levels(call: Call) -> Answer:
    """Set log levels until the end of the process."""
    body, levels = await json_body(call, ("levels",)), call.context.log_levels
    given = body.get("levels")
    if not isinstance(given, dict) or not given:
        raise RequestRefused(400, 'expected {"levels": {LOGGER: LEVEL}}')
    try:
        wanted = levels.check(given)
    except UsageError as error:
        raise RequestRefused(400, str(error)) from error

    async def make() -> Change:
        before = levels.read()
        levels.set(wanted)
        after = levels.read()
        changed = [name for name in after if after[name] != before[name]]
        return Change(
            changed=bool(changed),
            before={name: before[name] for name in {**wanted, **dict.fromkeys(changed)}},
            after={name: after[name] for name in {**wanted, **dict.fromkeys(changed)}},
        )

    change = await steering_of(call).change(call.caller, "set log levels", wanted, make)
    return await call.json(change, conditional=False)


ENDPOINTS = (configuration_text, change_configuration, log_levels, set_log_levels)
