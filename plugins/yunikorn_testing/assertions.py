"""Assertions on a cluster whose messages contain the actual result and its reason."""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn_testing.cluster import Cluster


def assert_placed(cluster: Cluster, app_id: str, *, on: str | None = None, count: int | None = None) -> None:
    """Assert that the application has allocations: `count` if given, all on the node `on` if given."""
    __tracebackhide__ = True
    running = cluster.running(app_id)
    nodes = ", ".join(one.node for one in running)
    if not running:
        raise AssertionError(f"application {app_id} has no allocations: {_reasons(cluster, app_id)}")
    if count is not None and len(running) != count:
        raise AssertionError(
            f"application {app_id} has {_count(len(running))} (on {nodes}), expected {count}: "
            f"{_reasons(cluster, app_id)}"
        )
    if on is not None and {one.node for one in running} != {on}:
        raise AssertionError(f"application {app_id} runs on {nodes}, expected {on}")


def assert_order(cluster: Cluster, *app_ids: str) -> None:
    """Assert that exactly these applications have allocations, in order of their first allocation."""
    __tracebackhide__ = True
    _assert_same("applications", (one.application for one in cluster.placements), app_ids)


def assert_node_order(cluster: Cluster, *node_ids: str) -> None:
    """Assert that exactly these nodes have allocations, in order of the first allocation."""
    __tracebackhide__ = True
    _assert_same("nodes", (one.node for one in cluster.placements), node_ids)


def _assert_same(what: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    __tracebackhide__ = True
    first, order = list(dict.fromkeys(found)), list(wanted)
    if first != order:
        raise AssertionError(
            f"{what} in order of their first allocation: {', '.join(first) or 'none'}; "
            f"expected: {', '.join(order)}"
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
        which = f"pending request {key}" if key else "pending request"
        raise AssertionError(f"application {app_id} has no {which}{_state(cluster, app_id)}")
    for name, why in waiting.items():
        reasons = [reason.detail for reason in why.reasons]
        if not any(text.lower() in reason.lower() for reason in reasons):
            found = "; ".join(reasons) or "no reason, the next run() allocates it"
            raise AssertionError(
                f"request {name} of application {app_id} is pending because: {found}; expected: {text}"
            )


def assert_queue(cluster: Cluster, app_id: str, path: str) -> None:
    """Assert that the application was placed in this queue."""
    __tracebackhide__ = True
    if app_id in cluster.rejected:
        raise AssertionError(f"application {app_id} was rejected: {cluster.rejected[app_id]}")
    found = cluster.queue_of(app_id)
    if found != path:
        raise AssertionError(f"application {app_id} is in queue {found or 'none'}, expected {path}")


def assert_rejected_because(cluster: Cluster, name: str, text: str) -> None:
    """Assert that an application or request was rejected for a reason that contains `text`; ignores case."""
    __tracebackhide__ = True
    reason = cluster.rejected.get(name)
    if reason is None:
        rejected = ", ".join(cluster.rejected) or "none"
        raise AssertionError(f"{name} was not rejected; rejected: {rejected}")
    if text.lower() not in reason.lower():
        raise AssertionError(f"{name} was rejected because: {reason}; expected: {text}")


def _reasons(cluster: Cluster, app_id: str) -> str:
    if app_id in cluster.rejected:
        return f"the application was rejected: {cluster.rejected[app_id]}"
    texts = [
        f"request {name} is pending because: "
        + ("; ".join(reason.detail for reason in why.reasons) or "run() was not called")
        for name, why in cluster.why(app_id).items()
    ]
    return ". ".join(texts) or f"no request is pending{_state(cluster, app_id)}"


def _state(cluster: Cluster, app_id: str) -> str:
    return f" (state {cluster.state(app_id)}, {_count(len(cluster.running(app_id)))})"


def _count(allocations: int) -> str:
    return f"{allocations} allocation" if allocations == 1 else f"{allocations} allocations"
