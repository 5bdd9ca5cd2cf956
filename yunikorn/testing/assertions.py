"""Assertions on a cluster whose messages contain the actual result and its reason."""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn.testing.cluster import Cluster


def assert_placed(cluster: Cluster, app_id: str, *, on: str | None = None, count: int | None = None) -> None:
    """Assert that the application has allocations: `count` if given, all on the node `on` if given."""
    __tracebackhide__ = True
    running = cluster.running(app_id)
    nodes = ", ".join(one.node for one in running)
    if not running:
        raise AssertionError(f"nothing of application {app_id} runs: {_reasons(cluster, app_id)}")
    if count is not None and len(running) != count:
        raise AssertionError(
            f"{len(running)} allocations of application {app_id} run (on {nodes}), not {count}: "
            f"{_reasons(cluster, app_id)}"
        )
    if on is not None and {one.node for one in running} != {on}:
        raise AssertionError(f"application {app_id} runs on {nodes}, not on {on}")


def assert_order(cluster: Cluster, *app_ids: str) -> None:
    """Assert that exactly these applications have allocations, in order of their first allocation."""
    __tracebackhide__ = True
    _assert_same("applications were first placed", (one.application for one in cluster.placements), app_ids)


def assert_node_order(cluster: Cluster, *node_ids: str) -> None:
    """Assert that exactly these nodes have allocations, in order of the first allocation."""
    __tracebackhide__ = True
    _assert_same("nodes were first used", (one.node for one in cluster.placements), node_ids)


def _assert_same(what: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    __tracebackhide__ = True
    first, order = list(dict.fromkeys(found)), list(wanted)
    if first != order:
        raise AssertionError(
            f"{what} in the order {', '.join(first) or 'of nobody'}; expected {', '.join(order)}"
        )


def assert_pending_because(cluster: Cluster, app_id: str, text: str, *, key: str | None = None) -> None:
    """Assert that requests of the application are pending for a reason that contains `text`.

    Applies to each pending request, or to that of `key`; ignores case. The possible reasons are listed in
    `docs/scheduling.md`.
    """
    __tracebackhide__ = True
    waiting = cluster.why(app_id)
    if key is not None:
        waiting = {name: why for name, why in waiting.items() if name == key}
    if not waiting:
        which = f"no request {key}" if key else "nothing"
        raise AssertionError(f"{which} of application {app_id} waits{_state(cluster, app_id)}")
    for name, why in waiting.items():
        reasons = [reason.detail for reason in why.reasons]
        if not any(text.lower() in reason.lower() for reason in reasons):
            found = "; ".join(reasons) or "nothing stops it: it is placed by the next run()"
            raise AssertionError(
                f"request {name} of application {app_id} waits because: {found}; expected: {text}"
            )


def assert_queue(cluster: Cluster, app_id: str, path: str) -> None:
    """Assert that the application was placed in this queue."""
    __tracebackhide__ = True
    if app_id in cluster.rejected:
        raise AssertionError(f"application {app_id} was refused: {cluster.rejected[app_id]}")
    found = cluster.queue_of(app_id)
    if found != path:
        raise AssertionError(f"application {app_id} is in queue {found or 'none'}, not in {path}")


def assert_rejected_because(cluster: Cluster, name: str, text: str) -> None:
    """Assert that an application or request was rejected for a reason that contains `text`; ignores case."""
    __tracebackhide__ = True
    reason = cluster.rejected.get(name)
    if reason is None:
        refused = ", ".join(cluster.rejected) or "nothing"
        raise AssertionError(f"{name} was not refused; refused: {refused}")
    if text.lower() not in reason.lower():
        raise AssertionError(f"{name} was refused because: {reason}; expected: {text}")


def _reasons(cluster: Cluster, app_id: str) -> str:
    if app_id in cluster.rejected:
        return f"it was refused: {cluster.rejected[app_id]}"
    texts = [
        f"request {name} waits because: "
        + ("; ".join(reason.detail for reason in why.reasons) or "nobody ran")
        for name, why in cluster.why(app_id).items()
    ]
    return ". ".join(texts) or f"it asks for nothing{_state(cluster, app_id)}"


def _state(cluster: Cluster, app_id: str) -> str:
    return f" (it is {cluster.state(app_id)}, with {len(cluster.running(app_id))} allocations running)"
