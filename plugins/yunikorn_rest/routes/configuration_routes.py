"""Routes of configurations: the one in use, and the validation of another."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from yunikorn.config.load import check_config
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.config_shapes import Configuration, shape_of, to_yaml
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.guards import unless_gone
from yunikorn_rest.paced_work import Pace
from yunikorn_service.fields import shape_like

LARGEST = 16 << 20
"""Maximum size in bytes of a configuration."""
LARGEST_UNKNOWN = 4 << 20
"""Maximum size in bytes of a configuration to validate for a client without credentials."""
LARGER = f"; with credentials it may have {LARGEST}, and `yunikorn validate` checks a file of any size"
YAML = "application/x-yaml; charset=UTF-8"

Configs = tuple[tuple[SchedulerConfig, ...], dict[str, str]]


def read_configs(scheduler: Scheduler) -> Generator[None, None, Configs]:
    """Return the configurations of all resource managers, and the further settings of the first one."""
    statuses = list(scheduler.sessions())
    yield
    configs = tuple(scheduler.configuration(status.rm_id) for status in statuses)
    return configs, dict(statuses[0].extra_config) if statuses else {}


async def read_configuration(call: Call) -> Configuration:
    """Return the shape of the configuration in use."""
    configs, extra = await call.read(read_configs)
    # Configurations never change, so they can be read again outside of the core's thread.
    return await call.apart(lambda: shape_of(configs, extra))


@Route("/ws/v1/config", Configuration, other_content_type="application/x-yaml")
async def configuration(call: Call) -> Answer:
    """Configuration in use; JSON if `Accept` is exactly `application/json`, else YAML."""
    if call.request.headers.get("accept") == "application/json":
        return await call.json(await read_configuration(call))
    configs, _ = await call.read(read_configs)
    text = await call.apart(lambda: to_yaml(configs))
    return Answer(pieces=(text,), content_type=YAML, conditional=True)


@Route(
    "/ws/v1/validate-conf",
    shapes.Validation,
    method="POST",
    errors=(408, 413, 503),
    body="application/x-yaml",
)
async def validate(call: Call) -> Answer:
    """Validate a configuration, whose text is the body of the request."""
    context, registry = call.context, call.context.registry
    if call.caller.credential is not None:
        text = await call.body(LARGEST)
        async with context.validating:
            found = await asyncio.to_thread(validation_of, text, registry)
    else:
        with context.open_work.place(call.caller.address):
            text = await call.body(LARGEST_UNKNOWN, LARGER)
            work = context.open_work.run(lambda pace: validation_of(text, registry, pace))
            if (found_in_time := await unless_gone(call.request.receive, work)) is None:
                raise RequestRefused(400, "the client has gone")
            found = found_in_time
    return await call.json(found, conditional=False)


def validation_of(text: bytes, registry: Registry, pace: Pace | None = None) -> shapes.Validation:
    """Check the text of a configuration."""
    outcome = check_config(text, registry, pace=pace)
    if outcome.config is not None:
        return shapes.Validation(allowed=True, checksum=outcome.config.checksum)
    return shapes.Validation(
        allowed=False,
        reason="\n".join(map(str, outcome.problems)),
        problems=tuple(shape_like(shapes.ConfigProblem, problem) for problem in outcome.problems),
    )


ENDPOINTS = (configuration, validate)
