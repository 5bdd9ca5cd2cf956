"""Test kit for gangs on racks: a cluster of blocks of racks of nodes with 8 gpu each."""

from __future__ import annotations

import json
from typing import Any

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue, with_plugins
from yunikorn.explain.explanations import why

TAG = "yunikorn.apache.org/gang-topology"
GPUS = 8


def racks(
    blocks: int = 2, per_block: int = 2, nodes: int = 2, *, plugins: dict[str, Any] | None = None, **keys: Any
) -> GangRM:
    """Return an RM with `blocks` of `per_block` racks of `nodes`; node `b1-r2-n1` is in rack `r2` of `b1`."""
    keys.setdefault("topology", ["block", "rack"])
    text = configuration(queue("a"), queue("b"), **keys)
    rm = GangRM(text, with_plugins(**plugins)) if plugins else GangRM(text)
    for block in range(1, blocks + 1):
        for rack in range(1, per_block + 1):
            for node in range(1, nodes + 1):
                names = {"block": f"b{block}", "rack": f"r{rack}"}
                rm.node(f"b{block}-r{rack}-n{node}", names, gpu=GPUS)
    return rm


def gang(
    rm: GangRM, app_id: str, count: int, wanted: Any, *, gpu: int = 1, queue_name: str = "root.a"
) -> None:
    """Submit an Atomic gang of `count` members of `gpu`, with requirements on the topology."""
    text = wanted if isinstance(wanted, str) else json.dumps(wanted)
    rm.gang(app_id, "Atomic", queue_name, tags={TAG: text}, gpu=count * gpu)
    rm.task(app_id, f"{app_id}-m", "workers", count, gpu=gpu)


def fill(rm: GangRM, node_id: str, gpu: int) -> None:
    """Run a task of this size on a node."""
    name = f"filler-{node_id}"
    rm.app(name, "root.b")
    rm.ask(name, f"{name}-t", 1, tags={"yunikorn.apache.org/requiredNode": node_id}, gpu=gpu)
    assert rm.schedule() == [(name, f"{name}-t", node_id)]


def placed(rm: GangRM, app_id: str) -> list[str]:
    """Schedule, and return the nodes of the members of a gang, sorted."""
    rm.schedule()
    return sorted(one.node_id for one in rm.running.values() if one.application_id == app_id)


def domains(nodes: list[str], parts: int = 2) -> list[str]:
    """Return the racks (two parts of a node's name) or blocks (one part) of nodes, without repetition."""
    return sorted({"-".join(node.split("-")[:parts]) for node in nodes})


def reason(rm: GangRM, app_id: str) -> str:
    """Return why the first request of a gang waits."""
    return reason_of(rm, app_id, next(iter(rm.find_app(app_id).asks)))


def reason_of(rm: GangRM, app_id: str, key: str) -> str:
    """Return why a request waits."""
    return "; ".join(one.detail for one in why(rm.at_work(), rm.find_app(app_id).asks[key]))
