"""A full cluster with requests that reserve nodes, under a reservation policy."""

from __future__ import annotations

from typing import Any

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.model.context import Timeouts
from yunikorn.scheduling.reservations.reservations import Reservations


def cluster(
    *queues: dict[str, Any],
    nodes: int = 4,
    policies: list[type[api.ReservationPolicy]] | None = None,
    timeouts: Timeouts | None = None,
    **reservations: Any,
) -> GangRM:
    """Return an RM with full nodes of 10 vcore, and with these keys of `reservations`."""
    keys = {"reservations": reservations} if reservations else {}
    registry = with_plugins(reservation_policies=policies) if policies else None
    text = configuration(queue("small"), *(queues or (queue("a"), queue("b"))), **keys)
    rm = GangRM(text, registry, timeouts=timeouts)
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=10)
    rm.app("small", "root.small")
    rm.ask("small", "s", nodes * 10, vcore=1)
    assert len(rm.schedule()) == nodes * 10
    return rm


def big(rm: RM, app: str, queue_name: str = "root.a", *, vcore: int = 10, **options: Any) -> None:
    """Submit an application with one large ask of the same name."""
    if app not in rm.at_work().partition.applications:
        rm.app(app, queue_name)
    rm.ask(app, app, vcore=vcore, **options)


def reserved(rm: RM) -> dict[str, str]:
    """Return the ask for which each node is reserved, after a cycle."""
    rm.schedule()
    nodes = rm.at_work().partition.nodes.values()
    check_counts(rm)
    return {node.id: ",".join(ask.key for ask in node.reservations) for node in nodes if node.reservations}


def reservations(rm: RM) -> Reservations:
    """Return the reservations under a policy that restricts them."""
    found = rm.at_work().cycle.reservations
    assert found.restricted
    return found


def check_counts(rm: RM) -> None:
    """Assert that the counts are those of a recount."""
    found = rm.at_work().cycle.reservations
    counts: dict[Any, int] = {}
    assert found.restricted or not found._counted
    for ask in found._counted:
        assert ask.reserved is not None
        for owner in (*ask.app.chain, ask.app):
            counts[owner] = counts.get(owner, 0) + 1
    assert counts == found.counts


def free(rm: RM, node_id: str, count: int = 10) -> None:
    """End tasks of the small application on a node."""
    ends = [uuid for uuid, one in rm.running.items() if one.node_id == node_id][:count]
    for uuid in ends:
        rm.release(rm.running[uuid].application_id, uuid)


def why(rm: RM, app: str) -> list[str]:
    """Return the details of the reasons that concern reservations."""
    found = next(iter(rm.scheduler.explain("rm", "default", app).values()))
    return [reason.detail for reason in found.reasons if reason.check == "reservation"]
