"""Builders of recording lines, for recordings written by hand."""

from __future__ import annotations

import json
from typing import Any

from tests.core.kit import configuration, queue
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.framework.registry import Registry
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.replayer import Replay

TWO_QUEUES = configuration(queue("a"), queue("b"))


def amounts(**quantities: int) -> dict[str, Any]:
    """Return amounts in their wire form."""
    return {"resources": {name: {"value": value} for name, value in quantities.items()}}


def register(config: str = TWO_QUEUES, **around: Any) -> dict[str, Any]:
    """Return the registration of an RM."""
    return {"rm": "rm", "register": {"config": config}, **around}


def node(node_id: str = "n1", **quantities: int) -> dict[str, Any]:
    """Return the registration of a node."""
    new = {"nodeID": node_id, "schedulableResource": amounts(**quantities)}
    return {"update": {"newSchedulableNodes": [new]}}


def app(app_id: str = "app", queue_name: str = "root.a", **fields: Any) -> dict[str, Any]:
    """Return the submission of an application."""
    new = {"applicationID": app_id, "queueName": queue_name, "ugi": {"user": "ann"}, **fields}
    return {"update": {"newApplications": [new]}}


def ask(key: str = "k", app_id: str = "app", count: int = 1, **quantities: int) -> dict[str, Any]:
    """Return an ask of an application."""
    new = {"allocationKey": key, "applicationID": app_id, "maxAllocations": count}
    return {"update": {"asks": [{**new, "resourceAsk": amounts(**quantities)}]}}


def release(app_id: str = "app", **names: str) -> dict[str, Any]:
    """Return the release of an allocation."""
    return {"update": {"releases": {"allocationsToRelease": [{"applicationID": app_id, **names}]}}}


def play(
    registry: Registry, *lines: dict[str, Any], config: str | None = None
) -> tuple[CollectingListener, Replay]:
    """Replay these lines and return the listener."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    listener = CollectingListener()
    replay = Replay(parse_recording(text.encode(), "f").lines, registry, listener, config)
    replay.run()
    return listener, replay
