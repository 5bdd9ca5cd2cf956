"""Kills of a real service under load, with a history whose database fails, and the comparison afterwards.

`python -m tests.history.killed_service --kills 50` runs it by hand, against SQLite, or PostgreSQL with
`--postgresql`. A resource manager keeps its own account of what ran. Whatever it has seen has one row
afterwards, except what began and ended after the latest event that the database had at a kill.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import grpc
import sqlalchemy as sa

from tests.history.postgresql_server import PostgresServer
from tests.history.recorded_core import read_rows
from tests.service.process import Service, Shim
from yunikorn.clock import MILLISECOND, SystemClock
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    RemoveApplicationRequest,
    TerminationType,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_history.database import HistoryError, open_reader
from yunikorn_history.history_tables import ALLOCATIONS, ESTIMATED_END, RECOVERED
from yunikorn_history.recording_thread import LONGEST_RETRY

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b}]
"""
NODES, SIZE = 4, Resource(vcore=1000)


def now() -> int:
    """Return the time in milliseconds."""
    return SystemClock().now() // MILLISECOND


@attrs.define(eq=False)
class Task:
    """A task of the account."""

    key: str
    app: str
    uuid: str = ""
    node: str = ""
    placed: int = 0
    ended: int = 0
    answered: int = 0
    """Time at which the scheduler had answered a later request: it had ended by then (ms)."""


@attrs.define(eq=False)
class Account:
    """Everything that a resource manager has requested, seen running, and ended."""

    tasks: dict[str, Task] = attrs.Factory(dict)
    apps: dict[str, tuple[int, int]] = attrs.Factory(dict)
    """Times of the submission and of the removal of applications; 0 while they are there."""
    accepted: dict[str, int] = attrs.Factory(dict)
    """Times at which the acceptance of applications was first seen (ms)."""
    gaps: list[tuple[int, int]] = attrs.Factory(list)
    """Times from the latest event that the database had to a kill: what began and ended in one is lost."""
    unanswered: dict[str, list[Task]] = attrs.Factory(dict)
    """Tasks that were released after the submission of an application, and before that of the next one."""
    lags: list[int] = attrs.Factory(list)
    """Time that the database was behind at each kill (ms), while it was there."""
    lock: Any = attrs.Factory(threading.Lock)

    def answer(self, app: str = "") -> None:
        """Note that the scheduler has accepted an application, and carried out all that was sent before.

        Without one, all that was sent.
        """
        with self.lock:
            for earlier in [one for one in self.unanswered if not app or _number(one) < _number(app)]:
                for task in self.unanswered.pop(earlier):
                    task.answered = now()


def _number(app: str) -> int:
    return int(app.removeprefix("job-"))


class KilledRM:
    """A resource manager for one life of the service."""

    def __init__(self, address: str, account: Account, rng: random.Random) -> None:
        """Register, and report what the account has."""
        self._account, self._rng = account, rng
        self._shim = Shim(address)
        self._shim.register()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        alive = [app for app, (_, removed) in account.apps.items() if not removed]
        running = [one for one in account.tasks.values() if one.uuid and not one.ended]
        self._send(new_applications=[self._application(app) for app in alive])
        self._send(
            new_schedulable_nodes=[
                NewNodeInfo(
                    f"n{number}",
                    {},
                    Resource(vcore=200_000),
                    existing_allocations=[
                        Allocation(one.key, one.app, one.uuid, one.node, SIZE)
                        for one in running
                        if one.node == f"n{number}"
                    ],
                )
                for number in range(NODES)
            ]
        )
        waiting = [one for one in account.tasks.values() if not one.uuid and not one.ended]
        self._send(asks=[self._ask(one) for one in waiting])

    def _send(self, **entries: Any) -> None:
        self._shim.send(UpdateRequest("rm", **entries))

    @staticmethod
    def _application(app: str) -> AddApplicationRequest:
        queue = "root.a" if app.endswith("0") else "root.b"
        return AddApplicationRequest(app, queue, "", UserGroupInformation(f"user{len(app) % 3}", ["all"]), {})

    @staticmethod
    def _ask(task: Task) -> AllocationAsk:
        return AllocationAsk(task.key, task.app, "", SIZE, 1)

    def _read(self) -> None:
        try:
            while True:
                response = self._shim.read()
                for accepted in response.accepted_applications:
                    # Those that are reported again at the beginning come before all releases.
                    self._account.accepted.setdefault(accepted.application_id, now())
                    self._account.answer(accepted.application_id)
                with self._account.lock:
                    for one in response.new_allocations:
                        task = self._account.tasks[one.allocation_key]
                        assert not task.uuid, f"{task.key} was placed twice"
                        task.uuid, task.node, task.placed = one.uuid, one.node_id, now()
        except grpc.RpcError:
            pass  # the service was killed

    def step(self, tasks: int = 20) -> None:
        """Submit an application, and end some tasks, and applications without any."""
        account, rng = self._account, self._rng
        with account.lock:
            app = f"job-{len(account.apps)}"
            account.apps[app] = now(), 0
            made = [Task(f"{app}.{number}", app) for number in range(rng.randrange(1, tasks))]
            account.tasks |= {one.key: one for one in made}
            running = [one for one in account.tasks.values() if one.uuid and not one.ended]
            chosen = rng.sample(running, min(len(running), rng.randrange(tasks)))
            for one in chosen:
                one.ended = now()
            account.unanswered[app] = chosen
            busy = {one.app for one in account.tasks.values() if not one.ended}
            idle = [name for name, (_, removed) in account.apps.items() if not removed and name not in busy]
            for name in idle:
                account.apps[name] = account.apps[name][0], now()
        self._send(new_applications=[self._application(app)])
        self._send(asks=[self._ask(one) for one in made])
        stopped = TerminationType.STOPPED_BY_RM
        releases = [AllocationRelease(one.app, one.uuid, "", stopped, "done", one.key) for one in chosen]
        self._send(releases=AllocationReleasesRequest(releases, []))
        self._send(remove_applications=[RemoveApplicationRequest(name) for name in idle])

    def close(self) -> None:
        """End the connection."""
        self._shim.close()
        self._thread.join(10)


Trouble = Callable[[Service], Callable[[], None]]
"""Disturbs the database of a service; returns a function that ends the disturbance."""


def run(location: str, folder: Path, kills: int, rng: random.Random, trouble: Trouble) -> Account:
    """Kill a service again and again under load; `trouble` disturbs its database in some rounds."""
    config = folder / "queues.yaml"
    config.write_text(CONFIG)
    arguments = ("--config", str(config), "--grpc", "127.0.0.1:0", "--history", location)
    account, pause = Account(), threading.Event()
    for left in range(kills, -1, -1):
        service = Service(*arguments)
        try:
            rm = KilledRM(service.address, account, rng)
            kind = rng.choice(("none", "passing", "lasting")) if left else "none"
            steps = rng.randrange(20, 60)
            begin, end, calm = rng.randrange(steps), rng.randrange(steps), None
            for step in range(steps):
                if kind != "none" and step == begin:
                    calm = trouble(service)
                if kind == "passing" and calm is not None and step >= end:
                    calm = calm()
                rm.step()
                pause.wait(rng.random() * 0.05)
            if kind == "passing":
                if calm is not None:
                    calm()
                # The next attempt, and the rest.
                pause.wait(LONGEST_RETRY + 3)
            if left:
                service.signal(signal.SIGKILL)
                killed = now()
            else:
                # The recovery ends, and what remains is written.
                pause.wait(13)
                service.signal(signal.SIGTERM)
            status = service.end()
            assert status == (-signal.SIGKILL if left else 0), "".join(service.log)
            rm.close()
            account.answer()
            if kind == "lasting" and calm is not None:
                calm()
            if left:
                account.gaps.append((latest_event(location), killed))
            if left and kind == "none":
                account.lags.append(killed - account.gaps[-1][0])
        finally:
            service.close()
    return account


def latest_event(location: str) -> int:
    """Return the time of the latest placement or end in the database (ms): all before are there."""
    c = ALLOCATIONS.c
    try:
        reader = open_reader(location)
    except HistoryError:  # killed before the tables were made
        return 0
    with closing(reader), reader.reading() as connection:
        times = [
            connection.scalar(sa.select(sa.func.max(time)).where(c.flags.bitwise_and(flag) == 0))
            for time, flag in ((c.placed, RECOVERED), (c.ended, ESTIMATED_END))
        ]
    return max(filter(None, times), default=0)


def differences(location: str, account: Account) -> list[str]:
    """Return what the history has otherwise than the account."""
    apps = {row["id"]: row for row in read_rows(location, "applications")}
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(location, "allocations"):
        rows.setdefault(row["key"], []).append(row)
    found = [f"{key}: no such task" for key in rows if key not in account.tasks]
    for task in account.tasks.values():
        found += _of_task(task, rows.get(task.key, []), account.gaps)
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in apps.values():
        by_id.setdefault(row["app_id"], []).append(row)
        tasks = [one for several in rows.values() for one in several if one["app"] == row["id"]]
        if len(tasks) != row["tasks"]:
            found.append(f"{row['app_id']}: {row['tasks']} tasks, but {len(tasks)} rows")
        service = sum(one["ended"] - one["placed"] for one in tasks if one["ended"]) * SIZE["vcore"]
        if service != (row["service"] or {}).get("vcore", 0):
            found.append(f"{row['app_id']}: service {row['service']}, but the tasks have {service}")
    for app, (_, removed) in account.apps.items():
        several, accepted = by_id.get(app, []), account.accepted.get(app)
        is_lost = accepted is None or _is_lost(accepted, removed, account.gaps)
        if len(several) > 1 or (not several and not is_lost):
            found.append(f"{app}: {len(several)} rows, accepted {accepted}, removed {removed}")
        found += [
            f"{app}: ended {row['ended']}, removed {removed}"
            for row in several
            if bool(row["ended"]) != bool(removed)
        ]
    return found


def _is_lost(began: int, ended: int, gaps: list[tuple[int, int]]) -> bool:
    """Return True for what began and ended in the last moment before a kill, or before the next start."""
    return bool(ended) and any(since <= began and ended <= until for since, until in gaps)


def _of_task(task: Task, rows: list[dict[str, Any]], gaps: list[tuple[int, int]]) -> list[str]:
    if not task.uuid:
        # It was placed, perhaps, but the resource manager did not see that.
        return [f"{task.key}: never ran, but has {rows}"] if len(rows) > 1 else []
    if not rows:
        return [] if _is_lost(task.placed, task.ended, gaps) else [f"{task.key}: no row of {task}"]
    if len(rows) > 1:
        return [f"{task.key}: twice: {rows}"]
    (row,) = rows
    if bool(row["ended"]) != bool(task.ended):
        return [f"{task.key}: {task}, but {row}"]
    is_estimated = bool(row["flags"] & ESTIMATED_END)
    if is_estimated and not any(since <= task.answered and task.ended <= until for since, until in gaps):
        return [f"{task.key}: the end is estimated: {task}, but {row}"]
    if row["ended"] and not is_estimated and not task.ended <= row["ended"] <= task.answered:
        return [f"{task.key}: another end: {task}, but {row}"]
    return []


def disk_is_full(service: Service) -> Callable[[], None]:
    """Let the files of a service grow no more."""
    limits = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1 << 12, limits[1]))

    def calm() -> None:
        if service.process.poll() is None:
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limits)

    return calm


def server_is_killed(server: PostgresServer) -> Trouble:
    """Return a trouble: the server is killed, and starts again later."""

    def trouble(_: Service) -> Callable[[], None]:
        server.kill()
        return server.start

    return trouble


def main() -> None:
    """Run by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = PostgresServer() if options.postgresql else None
        try:
            if server is None:
                location = str(folder / "history.db")
                account = run(location, folder, options.kills, rng, disk_is_full)
            else:
                server.start()
                location = server.new_database()
                account = run(location, folder, options.kills, rng, server_is_killed(server))
            found = differences(location, account)
            print(f"longest time that the database was behind: {max(account.lags, default=0)} ms")
        finally:
            if server is not None:
                server.close()
    print(*found[:20], sep="\n")
    print(
        f"{options.kills} kills, {len(account.tasks)} tasks, {len(account.apps)} applications:"
        f" {len(found)} differences"
    )
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
