"""Rows of applications and allocations that have not ended, in the memory of the recorder.

Names, such as those of queues and users, are ids of `names`. Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import msgspec

from yunikorn.clock import MILLISECOND
from yunikorn.model.application import Application
from yunikorn.model.gang import ATOMIC
from yunikorn.states import ACCEPTED, COMPLETING, NEW, RUNNING, STARTING
from yunikorn_history.history_tables import ESTIMATED_END, PLACEHOLDER, PREEMPTED, UNUSUAL, USUAL_EXITS
from yunikorn_history.rows import LONGEST_NAME, Ids, Row

REMOVED = "Removed"
"""State of an application that ended without a final state, because its resource manager removed it."""
LONGEST_STATES = 128
"""Number of states that a row has at most: the first and the latest ones, as in the core."""

_PROGRESS = {NEW: 0, ACCEPTED: 1, STARTING: 2, RUNNING: 3}
"""States through which a recovered application comes again."""
_REACHED = _PROGRESS | {COMPLETING: _PROGRESS[STARTING]}

_encoder = msgspec.json.Encoder(order="sorted")


def json_text(value: object) -> str:
    """Return compact JSON with sorted keys."""
    return _encoder.encode(value).decode("utf-8", "surrogatepass")


def fitting_json(values: Mapping[str, str] | Sequence[str]) -> str:
    """Return JSON of texts for `names`, without the last of those that are too long together."""
    text = json_text(values)
    while len(text) > LONGEST_NAME:
        kept = [*values][:-1]
        values = {name: values[name] for name in kept} if isinstance(values, Mapping) else kept
        text = json_text(values)
    return text


def _json_or_none(value: Mapping[str, Any]) -> str | None:
    return json_text(value) if value else None


def _read_json(text: Any) -> Any:
    return msgspec.json.decode(text) if text else {}


@attrs.define(eq=False)
class OpenApplication:
    """An application whose row may change."""

    id: int
    rm: str
    partition: str
    app_id: str
    rm_name: int
    partition_name: int
    queue: int = 0
    user: int = 0
    groups: int = 0
    template: int = 0
    tags: int = 0
    gang: int = 0
    gang_timeout: int | None = None
    submitted: int = 0
    started: int | None = None
    ended: int | None = None
    state: int = 0
    reason: int = 0
    states: list[list[Any]] = attrs.Factory(list)
    """Time, state and reason of each state, oldest first."""
    waits: dict[str, int] = attrs.Factory(dict)
    """Time with a waiting request, by cause."""
    longest_wait: int = 0
    tasks: int = 0
    preempted: int = 0
    service: dict[str, int] = attrs.Factory(dict)
    lost_service: dict[str, int] = attrs.Factory(dict)
    placeholder_service: dict[str, int] = attrs.Factory(dict)
    doubts: list[Any] = attrs.Factory(list)
    """Each `Doubt`, oldest first."""
    source: Any = None
    """Application of the core; None until it is reported in this process."""
    alive: int = 0
    """Latest time at which it was known to be there, while it is awaited (ms)."""
    is_written: bool = False
    """True if its row is in the database, or on its way."""

    @property
    def latest(self) -> str:
        """Name of the latest state; empty before the first one."""
        return str(self.states[-1][1]) if self.states else ""

    def describe(self, one: Application, names: Ids, kept: Sequence[str]) -> None:
        """Take the properties of an application, which are complete when it is accepted."""
        self.source, chain = one, one.chain
        self.queue = names.of(chain[0].path if chain else one.queue_name)
        self.user = names.of(one.user)
        self.groups = names.of(fitting_json(one.groups))
        tags = {name: one.tags[name] for name in kept if name in one.tags}
        self.tags = names.of(fitting_json(tags)) if tags else 0
        gang = one.gang
        if gang is not None:
            self.gang, self.gang_timeout = names.of(gang.style), gang.timeout // MILLISECOND
        elif one.atomic is not None:
            self.gang = names.of(ATOMIC)

    def is_before(self, state: str) -> bool:
        """Return True unless a recovered application comes again through a state that it had before."""
        return _is_before(self.latest, state)

    def enter(self, time: int, state: str, reason: str) -> None:
        """Append a state; times never go back, whatever the clock did between two runs."""
        states = self.states
        states.append([max(time, states[-1][0]) if states else time, state, reason])
        if len(states) > LONGEST_STATES:
            del states[LONGEST_STATES // 2]

    def copy(self) -> OpenApplication:
        """Return a copy without doubts, which does not change with this one."""
        return attrs.evolve(
            self,
            states=[*self.states],
            doubts=[],
            waits={**self.waits},
            service={**self.service},
            lost_service={**self.lost_service},
            placeholder_service={**self.placeholder_service},
        )

    def reopen(self, names: Ids) -> None:
        """Take the end back, which was estimated too early."""
        self.ended, self.reason = None, 0
        self.states.pop()
        self.state = names.of(self.latest)

    def confirm(self, known: OpenAllocation | None, placed: int) -> None:
        """End doubts, because an allocation was reported, with or without a row, that was placed (ms) before.

        What was submitted after the allocation is the same application.
        """
        if known is None:
            number = sum(one.time <= placed for one in self.doubts)
        else:
            number = next((place for place, one in enumerate(self.doubts, 1) if known in one.placed), 0)
        number = min(number, len(self.doubts) - self.doubts[-1].is_new)
        self.doubts, later = self.doubts[:number], self.doubts[number:]
        for one in later if number else ():
            self.doubts[-1].add(one)

    def forget_waits(self) -> None:
        """End the latest doubts that are about a wait alone: the row continues."""
        while self.doubts and not self.doubts[-1].differs(self):
            self.doubts.pop()

    def begin_anew(self, number: int, states: list[list[Any]], before: OpenApplication) -> None:
        """Become another application, with what has been added to a row since it was as `before`."""
        self.id, self.states, self.submitted = number, states, states[0][0]
        self.waits = {
            cause: left
            for cause, time in self.waits.items()
            if (left := time - before.waits.get(cause, 0)) > 0
        }
        self.started, self.tasks, self.preempted = None, 0, 0
        self.service, self.lost_service, self.placeholder_service = {}, {}, {}

    def row(self) -> Row:
        """Return the row of `applications`."""
        return (
            self.id,
            self.rm_name,
            self.partition_name,
            self.app_id,
            self.queue,
            self.user,
            self.groups,
            self.template,
            self.tags,
            self.gang,
            self.gang_timeout,
            self.submitted,
            self.started,
            self.ended,
            self.state,
            self.reason,
            json_text(self.states),
            _json_or_none(self.waits),
            self.longest_wait,
            self.tasks,
            self.preempted,
            _json_or_none(self.service),
            _json_or_none(self.lost_service),
            _json_or_none(self.placeholder_service),
            json_text([one.values() for one in self.doubts]) if self.doubts else None,
        )

    @classmethod
    def of_row(cls, row: tuple[Any, ...], texts: Mapping[int, str]) -> OpenApplication:
        """Return the application of a row; `texts` has the names by id."""
        number, rm, partition, app_id, *rest = row
        fields: list[Any] = [number, texts[rm], texts[partition], app_id, rm, partition, *rest]
        for name, read in _JSON_FIELDS.items():
            place = _APPLICATION_FIELDS.index(name)
            fields[place] = read(fields[place])
        app = cls(*fields)
        app.is_written = True
        return app


def _is_before(latest: str, state: str) -> bool:
    return _PROGRESS.get(state, 4) > _REACHED.get(latest, -1)


@attrs.define(eq=False)
class Doubt:
    """Submission of an id of which it is not known yet whether it is the application of its row.

    Until an allocation from before is reported, or the recovery is over, the row continues. Then what has
    been added to it is the same application, or becomes that of another one.
    """

    before: OpenApplication
    """The row as it was before."""
    time: int
    """Time of the submission (ms)."""
    states: list[list[Any]]
    """Time, state and reason of each state since."""
    placed: dict[OpenAllocation, None] = attrs.Factory(dict)
    """Allocations that were placed since."""
    number: int = 0
    """Id of the row that it gets; 0 until it is known to be another application."""
    is_new: bool = False
    """True for a submission of the present session, in which what exists was placed before."""

    def differs(self, app: OpenApplication) -> bool:
        """Return True unless the row can continue as if nothing but a wait had been before."""
        return bool(self.placed) or app.user != self.before.user

    def add(self, later: Doubt) -> None:
        """Add a later submission of the same application."""
        self.placed |= later.placed
        self.states += [one for one in later.states if _is_before(self.states[-1][1], one[1])]

    def values(self) -> Mapping[str, Any]:
        """Return the values for JSON."""
        placed = [one.id for one in self.placed]
        values = {"time": self.time, "states": self.states, "placed": placed, "alive": self.before.alive}
        return {"before": self.before.row(), **values}

    @classmethod
    def of_values(
        cls, values: Mapping[str, Any], texts: Mapping[int, str], tasks: Mapping[int, OpenAllocation]
    ) -> Doubt:
        """Return the doubt with these values; `texts` has the names by id, and `tasks` the allocations."""
        before = OpenApplication.of_row(tuple(values["before"]), texts)
        before.alive = values["alive"]
        placed = {tasks[number]: None for number in values["placed"] if number in tasks}
        return cls(before, values["time"], values["states"], placed)


_APPLICATION_FIELDS = [field.name for field in attrs.fields(OpenApplication)]
_JSON_FIELDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("waits", "service", "lost_service", "placeholder_service"), _read_json),
    "states": msgspec.json.decode,
    "doubts": lambda text: _read_json(text) or [],
}


@attrs.define(eq=False)
class OpenAllocation:
    """An allocation whose row may change."""

    id: int
    app: OpenApplication
    key: str
    node: int
    shape: int
    task_group: int
    priority: int
    requested: int
    placed: int
    resource: Mapping[str, int]
    """Amounts of the shape."""
    flags: int = 0
    ended: int | None = None
    exit: int = 0
    reason: int = 0
    preemptor: int = 0
    """Request for which it is to end, from the decision on."""
    sizes: list[list[Any]] = attrs.Factory(list)
    """Ends and amounts of the earlier sizes, oldest first."""
    usage_key: Any = None
    """Key under which the service is counted; None before the row is first written."""
    counted_end: tuple[list[Any], bool] | None = None
    """Periods of the end that is counted, and whether it was preempted; None while counted as running."""
    unseen: tuple[int, Mapping[str, int]] | None = None
    """Time and amounts of an earlier placement, which never reached the resource manager."""
    alive: int = 0
    """Latest time at which it was known to run, while it is awaited (ms)."""
    counted_sizes: int = 0
    """Number of earlier sizes that are counted."""
    is_written: bool = False
    """True if its row is in the database, or on its way."""

    @property
    def is_placeholder(self) -> bool:
        """True for a placeholder."""
        return bool(self.flags & PLACEHOLDER)

    def begin(self) -> None:
        """Add the task to the application."""
        app = self.app
        if not self.is_placeholder:
            app.tasks += 1
            if app.started is None or self.placed < app.started:
                app.started = self.placed

    def reopen(self) -> None:
        """Take the end back, which was estimated too early."""
        assert self.ended is not None
        self.end(self.ended, -1)
        self.ended, self.exit, self.reason = None, 0, 0
        self.flags &= ~(ESTIMATED_END | PREEMPTED | UNUSUAL)

    def leave(self, exit_type: str, names: Ids) -> None:
        """Note how it ended."""
        self.exit = names.of(exit_type)
        if exit_type not in USUAL_EXITS and not self.flags & (ESTIMATED_END | PREEMPTED):
            self.flags |= UNUSUAL

    def end(self, time: int, sign: int = 1) -> None:
        """Add the service until the end to the application; with -1, take it back."""
        app = self.app
        if self.is_placeholder:
            total = app.placeholder_service
        elif self.flags & PREEMPTED:
            total = app.lost_service
            app.preempted += sign
        else:
            total = app.service
        since = self.placed
        for until, amounts in [*self.sizes, (time, self.resource)]:
            duration = (until - since) * sign
            since = until
            for name, amount in amounts.items():
                if amount and duration:
                    total[name] = total.get(name, 0) + amount * duration

    def resize(self, time: int, resource: Mapping[str, int], shape: int) -> None:
        """Change the size."""
        begin = self.sizes[-1][0] if self.sizes else self.placed
        self.sizes.append([max(time, begin), dict(self.resource)])
        self.resource, self.shape = resource, shape

    def row(self) -> Row:
        """Return the row of `allocations`."""
        return (
            self.id,
            self.app.id,
            self.key,
            self.node,
            self.shape,
            json_text(self.sizes) if self.sizes else None,
            self.task_group,
            self.priority,
            self.requested,
            self.placed,
            self.ended,
            self.exit,
            self.reason,
            self.preemptor,
            self.flags,
        )

    @classmethod
    def of_row(cls, row: tuple[Any, ...], app: OpenApplication, shapes: Mapping[int, str]) -> OpenAllocation:
        """Return the allocation of a row; `shapes` has the amounts by id."""
        number, _, key, node, shape, sizes, group, priority, requested, placed, *end, flags = row
        amounts = _read_json(shapes.get(shape))
        one = cls(number, app, key, node, shape, group, priority, requested, placed, amounts, flags, *end)
        one.sizes = msgspec.json.decode(sizes) if sizes else []
        one.counted_sizes, one.is_written = len(one.sizes), True
        return one
