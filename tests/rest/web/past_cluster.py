"""A cluster with a history of a day for tests of pages: what ran, how much was used, and who changed what."""

from __future__ import annotations

from typing import Any

from tests.core.kit import RM, configuration, queue
from tests.history.written_history import WrittenHistory
from tests.rest.web.kit import Web, eventful
from yunikorn.clock import MILLISECOND
from yunikorn_history.history_tables import (
    AUDIT,
    CONFIGS,
    DAY,
    HOUR,
    MINUTE,
    NODE_SERIES,
    NODES,
    ORIGINATOR,
    PARTITION_SERIES,
    PLACEHOLDER,
    PREEMPTED,
    QUEUE_SERIES,
    RUNS,
    SERIES,
    USER_SERIES,
)
from yunikorn_rest.kept_history import KeptHistory

NOW = 1_795_788_000_000
"""2026-11-27 14:00 UTC (ms)."""
GIB = 1 << 30
ROOT = "partitions:\n- name: default\n  queues:\n  - name: root\n"
LONG = "<script>alert(1)</script>&\"'/..%2F?#"


def series(history: WrittenHistory, kind: int, name: str, time: int, level: int = 2, **data: Any) -> None:
    """Add a bucket: of an hour, if no level is given."""
    history.add(SERIES, kind=kind, name=name, level=level, time=time, data={"n": 60, **data})


def written() -> WrittenHistory:
    """Return the history of the day before `NOW`, with two hours in which nothing ran."""
    history = WrittenHistory()
    begin = NOW - DAY
    times = {"version": "1", "host": "h"}
    history.add(RUNS, started=begin, seen=begin + 10 * HOUR, ended=begin + 10 * HOUR, **times)
    history.add(RUNS, started=begin + 12 * HOUR, seen=NOW, ended=None, **times)
    for hour in (*range(10), *range(12, 24)):
        time = begin + hour * HOUR
        used = {"vcore": 1000.0 * (hour + 1), "memory": float(GIB)}
        sizes: dict[str, Any] = {
            "guaranteed": {"vcore": 10_000},
            "max": {"vcore": 20_000 if hour < 12 else 24_000},
        }
        waits = {"waits": {"1000": 18, "60000": 2}, "started": 20, "preempted": int(hour == 3) * 4}
        queue_data: dict[str, Any] = {
            "used": used,
            "pending": {"vcore": 500.0},
            "running": 2.0,
            "waiting": 1.0,
            **waits,
        }
        for path in ("root.a", "root.gone"):
            series(history, QUEUE_SERIES, path, time, **queue_data, **sizes)
        series(history, USER_SERIES, "user", time, used=used, running=1.0, waits={"1000": 3})
        series(history, NODE_SERIES, "n1", time, used=used, capacity={"vcore": 32_000})
        series(history, PARTITION_SERIES, "", time, **queue_data, capacity={"vcore": 64_000}, nodes=2)
    for minute in range(60):
        time = NOW - HOUR + minute * MINUTE
        series(history, PARTITION_SERIES, "", time, 1, used={"vcore": 3000.0}, capacity={"vcore": 64_000})
    for number in range(2):
        text = f"{ROOT}    properties: {{a: {number}}}\n"
        by = {"by": "ann", "source": "REST"} if number else {"source": "file"}
        history.add(CONFIGS, time=begin + number * 12 * HOUR, rm="rm", text=text, checksum=f"{number}c", **by)
    history.add(
        AUDIT,
        time=begin + HOUR,
        operator="ann",
        role="admin",
        address="10.0.0.1",
        what="stop queue",
        target={"queue": "root.a"},
        outcome="done",
        before="Active",
        after="Stopped",
        reason="a repair",
    )
    history.add(AUDIT, time=begin, operator="bob", address="", what="stop node", target={}, outcome="refused")
    shape, changes = {"vcore": 8000}, [[begin, "joined", ""], [begin + HOUR, "drained", "by ann"]]
    history.add(
        NODES,
        name="old",
        partition="default",
        joined=begin,
        left=begin + 2 * HOUR,
        shape=shape,
        changes=changes,
    )
    series(history, NODE_SERIES, "old", begin, used={"vcore": 10.0}, capacity={"vcore": 8000})
    add_applications(history, begin)
    return history


def add_applications(history: WrittenHistory, begin: int) -> None:
    """Add applications of one template, of others, and one with hostile names."""
    for number in range(60):
        submitted = begin + number * MINUTE
        history.application(
            f"etl-{number}",
            submitted,
            queue="root.a" if number % 2 else "root.gone",
            user="user",
            template="etl",
            started=submitted + 5_000,
            ended=submitted + HOUR,
            tasks=1,
        )
    history.application("app", begin, queue="root.a", user="user", ended=begin + MINUTE, tasks=3)
    submitted = begin + 5 * HOUR
    train = history.application(
        "train-7",
        submitted,
        queue="root.a",
        user="eve",
        groups=["team", "all"],
        tags={"cost": "high"},
        started=submitted + 90_000,
        ended=submitted + 2 * HOUR,
        state="Failed",
        reason="the driver <b>died</b>",
        states=[
            [submitted, "New", ""],
            [submitted + 90_000, "Running", ""],
            [submitted + 2 * HOUR, "Failed", "the driver <b>died</b>"],
        ],
        waits={"over the quota": 80_000, "no node fits": 8_000},
        longest_wait="over the quota",
        tasks=2,
        preempted=1,
        service={"vcore": 4000 * HOUR, "memory": 2 * GIB * HOUR},
        lost_service={"vcore": 500 * HOUR},
    )
    placed = submitted + 90_000
    end = {"ended": submitted + HOUR, "exit": "PREEMPTED_BY_SCHEDULER", "preemptor": '["etl-1","k"]'}
    history.task(
        train, "driver", placed, node="n1", flags=ORIGINATOR, ended=submitted + 2 * HOUR, exit="STOPPED_BY_RM"
    )
    history.task(train, "worker", placed, node="n2", flags=PREEMPTED, reason="made way", **end)
    history.task(
        train, "tg-0", placed, node="n1", flags=PLACEHOLDER, task_group="tg", ended=placed + 1, exit="TIMEOUT"
    )
    odd = history.application(
        LONG, begin, queue=f"root.{LONG}", user=LONG, reason=LONG, state="Rejected", ended=begin
    )
    history.task(odd, LONG, begin + 1, node=LONG, reason=LONG, ended=begin + 2, exit=LONG, preemptor=LONG)


def cluster() -> RM:
    """Return a cluster at `NOW` with a queue `root.a`, and an application `app` that runs in it."""
    rm, _ = eventful(configuration(queue("a"), queue("b")))
    rm.clock.set(NOW * MILLISECOND)
    rm.node("n1", vcore=8000)
    rm.app()
    rm.ask(key="small", vcore=1000)
    rm.schedule()
    return rm


def past_web(location: str, history: WrittenHistory | None = None) -> Web:
    """Return the pages of a cluster whose history is written to a location."""
    (history or written()).write(location)
    return Web(cluster(), None, KeptHistory(location, lambda: NOW * MILLISECOND))
