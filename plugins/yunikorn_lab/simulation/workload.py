"""Workloads: nodes, arriving applications, node events and reloads of the configuration.

All readers produce these plain values, and the engine simulates them. Times are nanoseconds of simulated
time, starting at 0. Quantities are as in `yunikorn.resources`.

Placements and use of resources in each hour, of a recording and of its simulation.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import INT64_MAX, NOTHING, Resource, Tally, grow, multiply, sum_of
from yunikorn_commands.config_source import LocatedText
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.simulation.distributions import Constant, DrawnAmounts
from yunikorn_lab.simulation.rng import Rng, streams
from yunikorn_lab.simulation.statistics import DIGITS, seconds

HOUR = 3600 * SECOND


class HourlyLoad:
    """Numbers of placed tasks, and their service, by the hour from the beginning of the simulation."""

    def __init__(self, end: int) -> None:
        """Count what happens before `end` (ns)."""
        self.end = end
        self.placements: Counter[int] = Counter()
        self.service: dict[int, Tally] = {}
        """Amounts times nanoseconds."""

    def place(self, moment: int) -> None:
        """Count a placement."""
        if 0 <= moment < self.end:
            self.placements[moment // HOUR] += 1

    def spend(self, since: int, until: int, amounts: Mapping[str, int]) -> None:
        """Add the service of a task from `since` to `until`."""
        since, until = max(since, 0), min(until, self.end)
        while since < until:
            hour = since // HOUR
            stop = min((hour + 1) * HOUR, until)
            grow(self.service.setdefault(hour, {}), amounts, stop - since)
            since = stop

    def placed(self, hour: int, width: int) -> int:
        """Return the number of placements in some hours, of which `hour` is the first one."""
        return sum(self.placements[one] for one in range(hour, hour + width))

    def use(self, hour: int, width: int) -> dict[str, float]:
        """Return the mean amounts that were used in some hours."""
        total: Tally = {}
        for one in range(hour, hour + width):
            grow(total, self.service.get(one, {}))
        span = min((hour + width) * HOUR, self.end) - hour * HOUR
        return {name: round(amount / span, DIGITS) for name, amount in sorted(total.items())}


FOREVER = INT64_MAX
"""Run time of a task that does not end by itself."""

NO_TAGS: Mapping[str, str] = {}
NO_DEVICES: Mapping[str, int] = {}

RESTART, FAIL = "restart", "fail"
PREEMPTED = (RESTART, FAIL)
"""Policies for preempted tasks: restart from the beginning, or fail."""


@attrs.frozen(slots=True)
class WorkloadNode:
    """A node as registered with the core."""

    name: str
    resources: Resource
    attributes: Mapping[str, str] = NO_TAGS
    partition: str = ""
    """Partition of the node; empty for the default partition."""
    speed: float = 1.0
    """Factor by which tasks run faster than their run time says."""
    devices: Mapping[str, int] = NO_DEVICES
    """Number of devices by class."""


class NodeEventKind(enum.Enum):
    """Kinds of node events."""

    ADD = "add"
    DRAIN = "drain"
    RESUME = "resume"
    REMOVE = "remove"
    CAPACITY = "capacity"


@attrs.frozen(slots=True)
class NodeEvent:
    """A node event; `resources` is the new capacity for the kind `CAPACITY`."""

    at: int
    change: NodeEventKind
    node: WorkloadNode
    """Node as registered; for other kinds than `ADD` the earlier registration."""
    resources: Resource = NOTHING


@attrs.frozen(slots=True)
class WorkloadTaskGroup:
    """Equal tasks of an application."""

    name: str
    count: int
    resources: Resource
    runtime: int
    """Run time (ns) of each task; `FOREVER` for tasks that do not end by themselves."""
    priority: int | None = None
    tags: Mapping[str, str] = NO_TAGS
    timeout: int = 0
    """Execution timeout (ns) after which the core ends a task; 0 for none."""
    startup: int | None = None
    """Time (ns) from placement to the begin of the run time; None for that of the workload."""
    claims: Mapping[str, int] = NO_DEVICES
    """Number of devices that each task needs, by class."""
    at_least: int = 0
    """Number of tasks with which an Atomic gang starts; 0 for all. The rest starts step by step."""
    step: int = 0
    """Number of tasks of a step; 0 for the default of the core."""
    delay: int = 0
    """Time (ns) from the submission of the application to the request of the tasks."""
    task_group: str = ""
    """Task group of a gang, which other groups of tasks may share; empty for one by the name of the group."""

    @property
    def least(self) -> int:
        """Number of tasks that are members of the gang; tasks that are requested later are none."""
        return 0 if self.delay else self.at_least or self.count

    @property
    def own_time(self) -> int:
        """Run time (ns) of each task on a node of speed 1, cut at its timeout; `FOREVER` without an end."""
        return min(self.runtime, self.timeout) if self.timeout else self.runtime


@attrs.frozen(slots=True)
class WorkloadApplication:
    """An application that is submitted at `submit` (ns) together with the asks for all its tasks."""

    id: str
    submit: int
    tasks: tuple[WorkloadTaskGroup, ...]
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    partition: str = ""
    tags: Mapping[str, str] = NO_TAGS
    gang: str = ""
    """Gang scheduling style, `Soft`, `Hard` or `Atomic`; empty for tasks that start one by one."""
    patience: int = 0
    """Placeholder timeout (ns) of a gang; 0 for the core's default."""
    timeout: int = 0
    """Execution timeout (ns) after which the core fails the application; 0 for none."""
    preempted: str = ""
    """Policy for preempted tasks, one of `PREEMPTED`; empty for the setting of the simulation."""
    recorded_wait: int | None = None
    """Wait from submission to start (ns) on the machine that a trace was recorded on; None if unknown."""
    after: tuple[str, ...] = ()
    """Ids of the predecessors: the application is submitted when all of them have ended."""
    think: int = 0
    """Think time (ns) between the end of the last predecessor and the submission."""

    @property
    def size(self) -> int:
        """Number of tasks."""
        return sum(group.count for group in self.tasks)

    @property
    def first_tasks(self) -> tuple[WorkloadTaskGroup, ...]:
        """Groups of the tasks that are requested at the submission."""
        return tuple(group for group in self.tasks if not group.delay)

    @property
    def has_placeholders(self) -> bool:
        """True if the application's tasks are asked for only after placeholders hold room for them."""
        return self.gang not in ("", ATOMIC)

    @property
    def total(self) -> Resource:
        """Sum of the resources of the tasks with which a gang starts: of all, unless it is elastic."""
        return sum_of(multiply(group.resources, group.least) for group in self.tasks)

    @property
    def least(self) -> int:
        """Number of tasks with which a gang starts."""
        return sum(group.least for group in self.tasks)

    @property
    def has_wrong_least(self) -> bool:
        """True if tasks start together that are none of an Atomic gang, or more than there are."""
        return any(one.at_least and (self.gang != ATOMIC or one.at_least > one.count) for one in self.tasks)

    @property
    def has_wrong_step(self) -> bool:
        """True if tasks follow in steps that no Atomic gang has, or that do not add up to all tasks."""
        stepped = [one for one in self.tasks if one.step]
        return any(self.gang != ATOMIC or one.least % one.step or one.count % one.step for one in stepped)


@attrs.frozen(slots=True)
class ConfigEvent:
    """A replacement of the configuration at time `at` (ns)."""

    at: int
    file: str
    """Source file, as printed in messages."""
    source: LocatedText
    code: CodePermission = attrs.field(factory=CodePermission)
    """Plugins that the configuration may load."""

    @property
    def text(self) -> str:
        """Text of the queues.yaml."""
        return self.source.text


@attrs.frozen(slots=True)
class Reloaded:
    """The result of loading a configuration at `at` (ns); `refused` is the reason of a refusal."""

    at: int
    file: str
    text: str
    refused: str = ""

    def listed(self) -> ReloadReport:
        """Convert to the entry of the report."""
        return ReloadReport(seconds(self.at), self.file, not self.refused, self.refused)


@attrs.frozen
class ReloadReport:
    """A configuration that was loaded or refused during the simulation."""

    time: float
    """Time of loading, in seconds."""
    config: str
    """File name, as given in the scenario."""
    taken: bool
    reason: str
    """Reason of a refusal, else empty."""


def describe_reload(report: ReloadReport) -> str:
    """Describe the result of loading a configuration as text."""
    when = spell_duration(round(report.time * SECOND))
    if report.taken:
        return f"at {when} the configuration {report.config} was loaded"
    return (
        f"at {when} the configuration {report.config} was refused, and the previous one stays active: "
        f"{report.reason}"
    )


@attrs.frozen
class StartUp:
    """Start-up times of tasks without a time of their own: from placement to the begin of the run time.

    A task that was placed pulls its image and starts its container before it works. Its resources are used
    meanwhile. The n-th start of a task of one group of an application takes equally long under every policy:
    each group has its own random stream.
    """

    amounts: DrawnAmounts | None = None
    """Times (ns), fixed or drawn; None for tasks that begin at once."""
    seed: int = 0

    def draw(self, application: str, group: str, known: dict[str, Rng]) -> int:
        """Return the next time (ns) of a group; `known` keeps the streams of the application."""
        if self.amounts is None:
            return 0
        if isinstance(self.amounts.distribution, Constant):
            return self.amounts.draw(_no_random)
        rng = known.get(group)
        if rng is None:
            rng = known[group] = streams(self.seed)(f"startup {application} {group}")
        return self.amounts.draw(rng)


def _no_random() -> float:
    return 0.0


@attrs.define
class Workload:
    """Input of a simulation, and remarks of the reader.

    `applications`, `events` and `reloads` are in order of time, and in the order of the input within one
    instant. `applications` may be a sequence that generates equal applications in every iteration: memory
    then does not grow with their number, but only iteration is fast.
    """

    name: str
    format: str
    nodes: list[WorkloadNode]
    applications: Sequence[WorkloadApplication]
    events: list[NodeEvent] = attrs.Factory(list)
    remarks: list[str] = attrs.Factory(list)
    """Remarks for the user in the order of the input, such as bad lines and replaced values."""
    counts: dict[str, int] = attrs.Factory(dict)
    """Numbers of skipped or replaced items of the input, by kind."""
    origin: float = 0.0
    """Time in the input (seconds) that corresponds to 0 of simulated time."""
    began: float | None = None
    """Unix time (seconds) that corresponds to 0 of simulated time; None if the input has no dates."""
    reloads: list[ConfigEvent] = attrs.Factory(list)
    """Configurations that replace the initial one, with their times."""

    seed: int | None = None
    """Seed of drawn values; None if nothing is drawn."""
    resampled: str = ""
    """Blocks drawn from a recording: weeks, days or users, or the order of its applications."""
    startup: StartUp = attrs.Factory(StartUp)
    """Start-up times of tasks without a time of their own."""
    recorded: HourlyLoad | None = None
    """Placements and use as they were recorded; None if the input does not have them."""

    surveyed: Any = attrs.field(default=None, init=False, eq=False, repr=False)
    """The `survey.Survey`, kept because a survey reads the whole workload; None before."""

    def all_nodes(self) -> Iterator[WorkloadNode]:
        """Yield all nodes that occur, in each capacity that occurs."""
        yield from self.nodes
        for event in self.events:
            if event.change is NodeEventKind.ADD:
                yield event.node
            elif event.change is NodeEventKind.CAPACITY:
                yield attrs.evolve(event.node, resources=event.resources)
