"""Made histories of any size: equal arguments make equal rows, and sums agree with the allocations.

    make_history(location, applications=1000, allocations=10_000, days=90)

A history has everything that a recorder writes: jobs, services and gangs of templates that run again and
again, by users who work by day; placeholders, preempted and failed tasks, rejected applications, what still
runs at the end; restarts, configurations, decisions of operators, faults and a gap.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from sqlalchemy import Text

from yunikorn_history.database import HistoryWriter, open_writer
from yunikorn_history.history_tables import (
    DAY,
    HOUR,
    LEVELS,
    METADATA,
    MINUTE,
    NODE_SERIES,
    PARTITION_SERIES,
    PLACEHOLDER,
    PREEMPTED,
    QUEUE_SERIES,
    USER_SERIES,
)
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch

UNTIL = 1_793_491_200_000
"""2026-11-01, midnight in UTC: the end of a made history."""
MEBI = 1 << 20
SHAPES = [(cores * 250, cores * memory * 256 * MEBI) for cores in (1, 2, 4, 8, 16) for memory in (2, 4, 8)]
"""Milli-vcores and bytes of tasks."""
TEMPLATES = (
    "etl",
    "spark-report",
    "train",
    "tune",
    "ingest",
    "backfill",
    "export",
    "notebook",
    "ci",
    "render",
)
CAUSES = ("nodes", "quota", "limit", "gang", "order", "predicates")
DEFAULTS = {
    table.name: [
        (column.name, None if column.nullable else "" if isinstance(column.type, Text) else 0)
        for column in table.c
    ]
    for table in METADATA.tables.values()
}
"""Columns with the values that rows without one have."""
ROWS = 20_000
"""Rows of a batch."""


@dataclass(frozen=True)
class MadeHistory:
    """Subjects of a made history."""

    location: str
    since: int
    until: int
    queues: list[str]
    """Leaf queues; their parents are the paths above them."""
    users: list[str]
    nodes: list[str]


def make_history(
    location: str,
    *,
    applications: int = 200,
    allocations: int = 2_000,
    queues: int = 8,
    users: int = 5,
    nodes: int = 20,
    days: int = 30,
    seed: int = 1,
    until: int = UNTIL,
    minutes: float = 0.1,
    hours: float = 90,
    running: int | None = None,
) -> MadeHistory:
    """Write a history of so many days to a new database.

    The series by minute and hour are those of the last days. At least `running` applications, a hundredth by
    default, still run at the end.
    """
    writer = open_writer(location)
    try:
        since = until - days * DAY
        keep = {1: until - int(minutes * DAY), 2: max(since, until - int(hours * DAY)), 3: since}
        maker = _Maker(writer, Random(seed), since, until, keep, queues, users, nodes)
        running = max(3, applications // 100) if running is None else running
        maker.make(applications, allocations, days, running)
    finally:
        writer.close()
    return MadeHistory(location, since, until, maker.leaves, maker.users, maker.nodes)


@dataclass(slots=True)
class _Sums:
    """Sums of a bucket: of a user in a queue, or of a node."""

    service: list[int] = field(default_factory=lambda: [0, 0])
    placeholder: list[int] = field(default_factory=lambda: [0, 0])
    lost: list[int] = field(default_factory=lambda: [0, 0])
    pending: list[int] = field(default_factory=lambda: [0, 0])
    started: int = 0
    ended: int = 0
    preempted: int = 0
    all_started: int = 0
    running: int = 0
    waiting: int = 0
    waits: dict[int, int] = field(default_factory=dict)

    def add(self, other: _Sums) -> None:
        """Add the sums of another bucket, user or queue."""
        for mine, theirs in (
            (self.service, other.service),
            (self.placeholder, other.placeholder),
            (self.lost, other.lost),
            (self.pending, other.pending),
        ):
            mine[0] += theirs[0]
            mine[1] += theirs[1]
        self.started += other.started
        self.ended += other.ended
        self.preempted += other.preempted
        self.running += other.running
        self.waiting += other.waiting
        for bound, count in other.waits.items():
            self.waits[bound] = self.waits.get(bound, 0) + count


def _amounts(pair: list[int] | tuple[int, int], divisor: int = 1) -> dict[str, int]:
    values = {"memory": pair[1] // divisor, "vcore": pair[0] // divisor}
    return {name: value for name, value in values.items() if value}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _bound(wait: int) -> int:
    """Return the smallest power of the square root of two that is not below a time, as a whole number."""
    exponent = math.ceil(2 * math.log2(wait)) if wait > 1 else 0
    return round(2 ** (exponent / 2))


def _service(pair: list[int]) -> str | None:
    return _text(_amounts(pair)) if any(pair) else None


Cells = dict[int, dict[int, _Sums]]
"""Sums by bucket, and by account or node in it."""


class _Maker:
    def __init__(
        self,
        writer: HistoryWriter,
        rng: Random,
        since: int,
        until: int,
        keep: dict[int, int],
        queues: int,
        users: int,
        nodes: int,
    ) -> None:
        self._rows, self._rng = RowWriter(writer), rng
        self._since, self._until, self._keep = since, until, keep
        self._names, self._shapes = Ids("names", {"": 0}), Ids("shapes", {})
        self._batch = RowBatch()
        parents = max(1, round(math.sqrt(queues) / 2))
        self.leaves = [f"root.dep{number % parents}.team{number}" for number in range(queues)]
        self.users = [f"user{number}" for number in range(users)]
        self.nodes = [f"node-{number:04d}" for number in range(nodes)]
        self._present: list[tuple[int, int]] = []
        """Times at which each node joined and left."""
        self._capacity = (0, 0)
        self._accounts: dict[int, Cells] = {level: {} for level in LEVELS}
        self._on_nodes: dict[int, Cells] = {level: {} for level in LEVELS}
        self._counts = dict.fromkeys(("allocations", "applications"), 0)
        name = self._names.of
        self._rm, self._partition = name("rm"), name("default")

    # -- rows --------------------------------------------------------------------------------------------

    def _add(self, table: str, *row: object, **others: object) -> None:
        """Add a row whose first columns are given; others are those named, or their defaults."""
        defaults = DEFAULTS[table][len(row) :]
        assert set(others) <= {name for name, _ in defaults}, table
        self._batch.add(table, (*row, *(others.get(name, default) for name, default in defaults)))

    def _write(self) -> None:
        self._names.move_to(self._batch)
        self._shapes.move_to(self._batch)
        self._rows.write(self._batch)
        self._batch = RowBatch()

    def make(self, applications: int, allocations: int, days: int, running: int) -> None:
        rng = self._rng
        self._make_frame(allocations, days)
        weights, total = [], 0.0
        for _ in range(applications):
            total += rng.expovariate(1)
            weights.append(total)
        before = 0
        for number in range(applications):
            share = (number + rng.random()) / applications * days * DAY
            submitted = self._since + int(share + DAY / 10 * math.sin(2 * math.pi * share / DAY))
            if number >= applications - running:
                submitted = self._until - int(rng.random() * HOUR / 6)  # and still runs at the end
            after = round(allocations * weights[number] / total)
            self._make_application(number, max(submitted, self._since), after - before)
            before = after
            if number % (ROWS // 20) == 0:
                self._write()
        self._write()
        self._make_series()
        self._write()

    def _make_frame(self, allocations: int, days: int) -> None:
        """Make nodes, runs, configurations and what operators did."""
        rng, name, since = self._rng, self._names.of, self._since
        # Capacity for twice the mean of what runs.
        mean = [sum(shape[place] for shape in SHAPES) / len(SHAPES) for place in (0, 1)]
        running = allocations * 1.2 * HOUR / (days * DAY)
        cores = max(16, math.ceil(2 * running * mean[0] / 1000 / len(self.nodes)))
        self._capacity = (cores * 1000, cores * 4096 * MEBI)
        shape = self._shapes.of(_text(_amounts(self._capacity)))
        for number, node in enumerate(self.nodes, 1):
            joined = since if number % 10 else since + days * DAY // 3
            left = since + days * DAY // 2 if number % 10 == 5 and number > 10 else None
            self._present.append((joined, left or self._until + DAY * days))
            changes = [[joined, "joined", ""], [joined + HOUR, "cordoned", "by maintenance"]]
            attributes = _text({"zone": f"zone{number % 3}"})
            self._add(
                *("nodes", number, self._rm, self._partition, name(node)),
                *(joined, left, shape, attributes, _text(changes)),
            )
        starts = [since + days * DAY * part // 4 for part in range(4)]
        for number, start in enumerate(starts, 1):
            end = starts[number] - MINUTE if number < 4 else None
            self._add("runs", number, start, end or self._until, end, f"1.{number}.0", "scheduler-0")
            text = f"partitions:\n  - name: default\n    queues:\n      - name: root # {number}\n"
            checksum = hashlib.sha256(text.encode()).hexdigest()
            by = name(self.users[number % len(self.users)])
            self._add(
                "configs", number, start, self._rm, name("queues"), text, checksum, name("ConfigMap"), by
            )
        operators = [name(f"operator{number}") for number in range(3)]
        for number in range(1, days + 1):
            time = since + (number - 1) * DAY + rng.randrange(DAY)
            target = _text({"queue": rng.choice(self.leaves)})
            outcome = name("refused" if number % 10 == 0 else "done")
            what, role = name(rng.choice(("stop queue", "start queue"))), name("admin")
            who = rng.choice(operators)
            self._add(
                "audit", number, time, who, role, "10.0.0.1", what, target, outcome, None, None, "maintenance"
            )
        self._add("faults", 1, name("filters"), "ValueError: no such label", since + DAY, since + 2 * DAY, 7)
        self._add("gaps", 1, starts[1] - 2 * HOUR, starts[1] - HOUR, 12)

    def _make_application(self, number: int, submitted: int, count: int) -> None:
        rng, name = self._rng, self._names.of
        template = rng.choice(TEMPLATES)
        leaf = rng.randrange(len(self.leaves))
        user = (leaf + int(rng.expovariate(1))) % len(self.users)
        account = leaf * len(self.users) + user
        row = number + 1
        app_id = f"{template}-{number:07d}"
        is_gang = template in ("train", "tune") and count > 1
        cause = rng.choice(CAUSES)
        last, first, longest, preempted, tasks = submitted, None, 0, 0, 0
        service, lost, placeholder = [0, 0], [0, 0], [0, 0]
        still_runs = False
        for flags, shape, placed, ended, wait in self._tasks(row, account, submitted, count, is_gang):
            amounts, length = SHAPES[shape], (ended or self._until) - placed
            longest = max(longest, wait)
            sums = placeholder if flags & PLACEHOLDER else lost if flags & PREEMPTED else service
            if not flags & PLACEHOLDER:
                tasks += 1
                preempted += bool(flags & PREEMPTED)
                first = placed if first is None else min(first, placed)
            if ended is None:
                still_runs = True
            else:
                sums[0] += amounts[0] * length
                sums[1] += amounts[1] * length
                last = max(last, ended)
        states, end = self._states(submitted, first, None if still_runs else last, count)
        reason = str(states[-1][2])
        self._book_application(account, submitted, first, end)
        groups = _text([f"team{user % 4}", "staff"])
        tags = _text({"account": f"account{user % 3}"})
        latest = str(states[-1][1])
        gang, gang_timeout = (name("Soft"), 900_000) if is_gang else (0, None)
        self._add(
            "applications",
            row,
            self._rm,
            self._partition,
            app_id,
            queue=name(self.leaves[leaf]),
            user=name(self.users[user]),
            groups=name(groups),
            template=name(f"{template}-*"),
            tags=name(tags),
            gang=gang,
            gang_timeout=gang_timeout,
            submitted=submitted,
            started=first,
            ended=end,
            state=name(latest),
            reason=name(reason),
            states=_text(states),
            waits=_text({cause: longest}) if longest else None,
            longest_wait=name(cause) if longest else 0,
            tasks=tasks,
            preempted=preempted,
            service=_service(service),
            lost_service=_service(lost),
            placeholder_service=_service(placeholder),
        )

    def _states(
        self, submitted: int, first: int | None, last: int | None, count: int
    ) -> tuple[list[list[object]], int | None]:
        """Return the states of an application, and its end."""
        chance = self._rng.random()
        states: list[list[object]] = [[submitted, "New", ""]]
        if count == 0 and chance < 0.5:
            return [*states, [submitted, "Rejected", "queue is full"]], submitted
        states.append([submitted, "Accepted", ""])
        if count == 0:
            last = submitted + MINUTE
        elif first is not None:
            states.append([first, "Running", ""])
        if last is None or last + 30_000 > self._until:
            return states, None
        end = last + 30_000
        if count and chance < 0.03:
            return [*states, [end, "Failed", "the driver failed"]], end
        return [*states, [last, "Completing", ""], [end, "Completed", ""]], end

    def _tasks(
        self, row: int, account: int, submitted: int, count: int, is_gang: bool
    ) -> Iterator[tuple[int, int, int, int | None, int]]:
        """Make the allocations of an application, and return flags, shape, times and wait of each."""
        rng, name, until = self._rng, self._names.of, self._until
        random, randrange = rng.random, rng.randrange
        shape = randrange(len(SHAPES))
        shape_id = self._shapes.of(_text(_amounts(SHAPES[shape])))
        typical = HOUR / 3 * rng.lognormvariate(0, 0.8)
        wait = int(2_000 * rng.lognormvariate(0, 1.5))
        replaced, by_rm = name("PLACEHOLDER_REPLACED"), name("STOPPED_BY_RM")
        by_preemption, failed = name("PREEMPTED_BY_SCHEDULER"), name("exit code 1")
        group = name("worker") if is_gang else 0
        for place in range(count):
            self._counts["allocations"] = number = self._counts["allocations"] + 1
            requested = min(submitted + int(random() * 5_000), until - 2)
            waited = int(wait * (0.5 + random()))
            placed = min(requested + waited, until - 1)
            flags, exit_type, reason, preemptor = 0, by_rm, 0, 0
            length = int(typical * (0.5 + random())) + 1_000
            if is_gang and place < count // 2:
                flags, exit_type, length = PLACEHOLDER, replaced, 5_000 + int(random() * 60_000)
            elif random() < 0.02:
                flags, exit_type = PREEMPTED, by_preemption
                preemptor = name(_text([f"train-{row // 50 * 50:07d}", "task-0"]))
                length //= 2
            elif random() < 0.02:
                reason = failed
            ended: int | None = placed + length
            if placed + length > until:
                ended, exit_type, reason, preemptor, flags = None, 0, 0, 0, flags & PLACEHOLDER
            node = self._node_at(randrange(len(self.nodes)), placed, placed + length)
            bits = f"{rng.getrandbits(128):032x}"
            key = f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"
            self._book(account, node, flags, SHAPES[shape], requested, placed, ended)
            self._add(
                "allocations",
                number,
                row,
                key,
                name(self.nodes[node]),
                shape_id,
                task_group=group,
                requested=requested,
                placed=placed,
                ended=ended,
                exit=exit_type,
                reason=reason,
                preemptor=preemptor,
                flags=flags,
            )
            yield flags, shape, placed, ended, placed - requested

    def _node_at(self, node: int, since: int, until: int) -> int:
        """Return the node, or the next one if it is not there all the time."""
        joined, left = self._present[node]
        return node if joined <= since and until <= left else (node + 1) % len(self.nodes)

    # -- sums --------------------------------------------------------------------------------------------

    def _book(
        self,
        account: int,
        node: int,
        flags: int,
        amounts: tuple[int, int],
        requested: int,
        placed: int,
        ended: int | None,
    ) -> None:
        until = ended if ended is not None else self._until
        for length, cells, on_nodes in self._levels(until):
            for bucket, part in _parts(placed, until, length):
                for sums in (_cell(cells, bucket, account), _cell(on_nodes, bucket, node)):
                    sums.service[0] += amounts[0] * part
                    sums.service[1] += amounts[1] * part
                    if flags:
                        portion = sums.placeholder if flags & PLACEHOLDER else sums.lost
                        portion[0] += amounts[0] * part
                        portion[1] += amounts[1] * part
            for bucket, part in _parts(requested, placed, length):
                pending = _cell(cells, bucket, account).pending
                pending[0] += amounts[0] * part
                pending[1] += amounts[1] * part
            if flags & PLACEHOLDER:
                continue
            sums = _cell(cells, placed - placed % length, account)
            sums.started += 1
            bound = _bound(placed - requested)
            sums.waits[bound] = sums.waits.get(bound, 0) + 1
            if ended is not None:
                sums = _cell(cells, ended - ended % length, account)
                sums.ended += 1
                sums.preempted += bool(flags & PREEMPTED)

    def _book_application(self, account: int, submitted: int, started: int | None, ended: int | None) -> None:
        end = ended if ended is not None else self._until
        for length, cells, _ in self._levels(end):
            for bucket, part in _parts(submitted, started if started is not None else end, length):
                _cell(cells, bucket, account).waiting += part
            for bucket, part in _parts(started if started is not None else end, end, length):
                _cell(cells, bucket, account).running += part

    def _levels(self, until: int) -> Iterator[tuple[int, Cells, Cells]]:
        for level, length in LEVELS.items():
            if until >= self._keep[level]:
                yield length, self._accounts[level], self._on_nodes[level]

    def _make_series(self) -> None:
        for level in LEVELS:
            accounts, on_nodes = self._accounts[level], self._on_nodes[level]
            for bucket in sorted(accounts.keys() | on_nodes.keys()):
                if bucket >= self._keep[level]:
                    self._make_bucket(level, bucket, accounts.get(bucket, {}), on_nodes.get(bucket, {}))
                if len(self._batch) > ROWS:
                    self._write()

    def _make_bucket(
        self, level: int, bucket: int, accounts: dict[int, _Sums], on_nodes: dict[int, _Sums]
    ) -> None:
        name, length = self._names.of, LEVELS[level]
        queues: dict[str, _Sums] = {}
        users: dict[int, _Sums] = {}
        for account, sums in sorted(accounts.items()):
            leaf, user = divmod(account, len(self.users))
            users.setdefault(user, _Sums()).add(sums)
            path = self.leaves[leaf]
            while path:
                queues.setdefault(path, _Sums()).add(sums)
                path = path.rpartition(".")[0]
            if level > 1:
                self._make_usage(level, bucket, leaf, user, sums)
        capacity = [amount * len(self.nodes) for amount in self._capacity]
        for path, sums in queues.items():
            share = 1 if path == "root" else path.count(".") * len(self.leaves)
            data = self._series_data(sums, length, running=True)
            data |= {"pending": _amounts(sums.pending, length), "preempted": sums.preempted}
            data |= {"guaranteed": _amounts(capacity, share), "max": _amounts(capacity, max(1, share // 3))}
            self._add(
                "series", QUEUE_SERIES, name(path), level, bucket, self._rm, self._partition, _text(data)
            )
        for user, sums in users.items():
            data = self._series_data(sums, length, running=True)
            self._add(
                "series",
                USER_SERIES,
                name(self.users[user]),
                level,
                bucket,
                self._rm,
                self._partition,
                _text(data),
            )
        for node, sums in on_nodes.items():
            data = {
                **self._series_data(sums, length),
                "capacity": _amounts(self._capacity),
                "schedulable": 1.0,
            }
            self._add(
                "series",
                NODE_SERIES,
                name(self.nodes[node]),
                level,
                bucket,
                self._rm,
                self._partition,
                _text(data),
            )
        whole = queues.get("root", _Sums())
        free = [amount - used // length for amount, used in zip(capacity, whole.service, strict=True)]
        waited = min(length, whole.waiting)
        idle = {"nodes": _amounts([max(0, amount) * waited for amount in free])} if waited else {}
        data = self._series_data(whole, length, running=True)
        data |= {"pending": _amounts(whole.pending, length), "preempted": whole.preempted, "idle": idle}
        data |= {"capacity": _amounts(capacity), "nodes": len(self.nodes)}
        self._add("series", PARTITION_SERIES, 0, level, bucket, self._rm, self._partition, _text(data))

    def _series_data(self, sums: _Sums, length: int, *, running: bool = False) -> dict[str, object]:
        data: dict[str, object] = {"n": length // 15_000, "used": _amounts(sums.service, length)}
        if running:
            data |= {"running": round(sums.running / length, 3), "waiting": round(sums.waiting / length, 3)}
            data |= {
                "started": sums.started,
                "waits": {str(key): sums.waits[key] for key in sorted(sums.waits)},
            }
        return data

    def _make_usage(self, level: int, bucket: int, leaf: int, user: int, sums: _Sums) -> None:
        name = self._names.of
        data: dict[str, object] = {"service": _amounts(sums.service)}
        if any(sums.placeholder):
            data["placeholder"] = _amounts(sums.placeholder)
        if any(sums.lost):
            data["lost"] = _amounts(sums.lost)
        counts = {"started": sums.started, "ended": sums.ended, "preempted": sums.preempted}
        data |= {key: count for key, count in counts.items() if count}
        groups = name(_text([f"team{user % 4}", "staff"]))
        tags = name(_text({"account": f"account{user % 3}"}))
        place = (name(self.leaves[leaf]), name(self.users[user]), groups, tags)
        self._add("usage", level, bucket, self._rm, self._partition, *place, _text(data))


def _cell(cells: Cells, bucket: int, key: int) -> _Sums:
    row = cells.get(bucket)
    if row is None:
        row = cells[bucket] = {}
    found = row.get(key)
    if found is None:
        found = row[key] = _Sums()
    return found


def _parts(since: int, until: int, length: int) -> Iterator[tuple[int, int]]:
    """Return the parts of a time in each bucket."""
    bucket = since - since % length
    while bucket < until:
        yield bucket, min(until, bucket + length) - max(since, bucket)
        bucket += length
