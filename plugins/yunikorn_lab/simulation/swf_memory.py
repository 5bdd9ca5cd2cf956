"""Meaning of the memory columns of a trace: per processor, per node or per job, and their unit.

The format says KB per processor, but many logs count otherwise. The log itself shows which readings are
possible: the machine that it was recorded on has run its jobs. A reading is possible if

- nearly all jobs fit: a task into a node, the tasks of one node into this node, all tasks into the cluster;
- the offered load of memory is not above 1 (nor above that of processors, if the machine was overloaded);
- the jobs that ran at one time, by their recorded waits, did not have more memory than the cluster for longer
  than they had more processors.

The first possible reading counts, in this order: what the header says; per node if the jobs name their nodes
(`4:ppn=8`); KB per processor, per node, per job; bytes per processor, per node, per job. MB come first if no
job of the log would have had a thousandth of a node's memory by KB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from yunikorn_lab.simulation.swf_jobs import CANCELLED, SwfJob
from yunikorn_lab.simulation.workload import WorkloadNode

AUTO, NONE = "auto", "none"
UNITS = {"kb": 1024, "mb": 1024**2, "bytes": 1}
PROCESSOR, NODE, JOB = "processor", "node", "job"
OWNERS = (PROCESSOR, NODE, JOB)
SETTINGS: dict[str, tuple[str, str]] = {
    AUTO: ("", ""),
    NONE: ("", ""),
    **{owner: ("", owner) for owner in OWNERS},
    **{unit: (unit, PROCESSOR) for unit in UNITS},
    **{f"{owner}-{unit}": (unit, owner) for owner in OWNERS for unit in UNITS},
}
"""Unit and owner of the amounts by setting; an empty text is chosen by the log."""

LEAST_BYTES = 2**24
"""Smallest median that may be bytes; a smaller number of bytes is less than any process needs."""
TINY = 1000
"""A unit by which no job has this part of a node's memory (as a divisor) is too small."""
MANY = 20
"""Minimum number of jobs with memory for a conclusion from the largest one."""
UNFIT = 0.002
"""Part of the jobs that have run and may fit nowhere: a machine changes in the time of a log."""
OVER = 0.02
"""Part of the time in which jobs may have had more memory than the cluster, beyond that of processors."""
WAITS = 0.9
"""Part of the jobs whose recorded wait must be known to compare what ran at one time."""


@attrs.frozen
class MemoryReading:
    """A unit, and the owner of an amount: a processor, a node or a whole job."""

    unit: str
    owner: str

    def __str__(self) -> str:
        return f"{self.unit if self.unit == 'bytes' else self.unit.upper()} per {self.owner}"

    def per_task(self, job: SwfJob, node_processors: int) -> int:
        """Return the bytes per processor of a job; `node_processors` are those of the largest node."""
        amount = max(job.memory, 0) * UNITS[self.unit]
        if self.owner == NODE:
            return -(-amount // tasks_per_node(job, node_processors))
        return -(-amount // job.processors) if self.owner == JOB else amount


FORMAT = MemoryReading("kb", PROCESSOR)
"""Reading that the format prescribes."""


def tasks_per_node(job: SwfJob, node_processors: int) -> int:
    """Return the processors of a job on each of its nodes; on as few nodes as possible if unknown."""
    if job.nodes:
        return -(-job.processors // job.nodes)
    return max(min(job.processors, node_processors), 1)


@attrs.frozen
class Machine:
    """The nodes, as far as memory is concerned."""

    processors: int
    memory: int
    node_processors: int
    node_memory: int
    """Processors and memory of the largest node."""

    @classmethod
    def of(cls, nodes: Iterable[WorkloadNode]) -> Machine:
        """Return the sums and the largest amounts of nodes."""
        sizes = [(node.resources.get("vcore", 0) // 1000, node.resources.get("memory", 0)) for node in nodes]
        processors, memories = zip(*sizes, strict=True)
        return cls(sum(processors), sum(memories), max(processors), max(memories))


@attrs.frozen
class MemoryVerdict:
    """Consequences of a reading."""

    reading: MemoryReading
    load: float
    """Offered load of memory."""
    unfit: float
    """Part of the jobs with memory that fit nowhere."""
    over: float
    """Part of the time in which the running jobs had more memory than the cluster."""
    highest_load: float
    """Offered load that is possible."""
    most_over: float

    @property
    def is_possible(self) -> bool:
        """True if the recorded machine could have run its jobs."""
        return self.unfit <= UNFIT and self.load <= self.highest_load and self.over <= self.most_over

    def reason(self) -> str:
        """Return why the reading is impossible."""
        if self.unfit > UNFIT:
            return f"{self.unfit:.{int(self.unfit < 0.01)}%} of the jobs would fit nowhere"
        if self.load > self.highest_load:
            return f"the offered load of memory would be {self.load:.2f}"
        return f"for {self.over:.0%} of the time the running jobs would have more memory than the cluster"


class Evidence:
    """The jobs of a log with their memory, on the nodes that it was recorded on."""

    def __init__(self, jobs: Iterable[SwfJob], nodes: Sequence[WorkloadNode]) -> None:
        self.machine = Machine.of(nodes)
        self._jobs = list(jobs)
        known = [job for job in self._jobs if job.memory > 0]
        self._known = sum(1 for job in known if _has_run(job))
        self.median = sorted(job.memory for job in known)[len(known) // 2] if known else 0
        # Memory of a whole job counts for each of its nodes.
        largest = max((job.memory / self._nodes_of(job) for job in known), default=0)
        self.is_tiny_in_kb = len(known) >= MANY and TINY * UNITS["kb"] * largest < self.machine.node_memory
        self.has_nodes = 2 * sum(1 for job in known if job.nodes) > len(known)
        first = min(job.submit for job in self._jobs)
        last = max(job.submit for job in self._jobs)
        self._span = max(last - first, *(runtime_of(job) for job in self._jobs), 1)
        self._changes = self._recorded_changes()
        self._load = self._load_of(lambda job: job.processors) / max(self.machine.processors, 1)
        self._busy = self._time_over(lambda job: job.processors, self.machine.processors)

    def _nodes_of(self, job: SwfJob) -> int:
        return job.nodes or -(-job.processors // max(self.machine.node_processors, 1))

    def _recorded_changes(self) -> list[tuple[float, int, SwfJob]]:
        """Return starts and ends of the jobs in order of time; empty if too few waits were recorded."""
        ran = [job for job in self._jobs if job.wait >= 0 and job.runtime > 0]
        if not ran or len(ran) < WAITS * sum(1 for job in self._jobs if job.runtime > 0):
            return []
        starts = [(job.submit + job.wait, 1, job) for job in ran]
        ends = [(job.submit + job.wait + job.runtime, -1, job) for job in ran]
        return sorted(starts + ends, key=lambda change: change[:2])

    def _load_of(self, amount: Callable[[SwfJob], int]) -> float:
        return sum(amount(job) * runtime_of(job) for job in self._jobs) / self._span

    def _time_over(self, amount: Callable[[SwfJob], int], capacity: int) -> float:
        """Return the part of the recorded time in which jobs had more than the capacity."""
        if not self._changes:
            return 0.0
        used, over, since = 0, 0.0, self._changes[0][0]
        for moment, sign, job in self._changes:
            if used > capacity:
                over += moment - since
            since = moment
            used += sign * amount(job)
        return over / max(since - self._changes[0][0], 1)

    def judge(self, reading: MemoryReading) -> MemoryVerdict:
        """Return the consequences of a reading."""
        machine = self.machine

        def memory(job: SwfJob) -> int:
            return job.processors * reading.per_task(job, machine.node_processors)

        unfit = sum(1 for job in self._jobs if _has_run(job) and not self._fits(job, reading))
        return MemoryVerdict(
            reading,
            load=self._load_of(memory) / max(machine.memory, 1),
            unfit=unfit / max(self._known, 1),
            over=self._time_over(memory, machine.memory),
            highest_load=max(self._load, 1.0),
            most_over=self._busy + OVER,
        )

    def _fits(self, job: SwfJob, reading: MemoryReading) -> bool:
        machine = self.machine
        task = reading.per_task(job, machine.node_processors)
        together = job.nodes or reading.owner == NODE
        side_by_side = tasks_per_node(job, machine.node_processors) if together else 1
        return task * side_by_side <= machine.node_memory and task * job.processors <= machine.memory


def _has_run(job: SwfJob) -> bool:
    # Requests that no machine could satisfy occur in every log, and are cancelled.
    return job.memory > 0 and job.runtime != 0 and job.status != CANCELLED


def runtime_of(job: SwfJob) -> float:
    """Return the run time that counts for the load; that of a job without any is 0."""
    return job.runtime if job.runtime >= 0 else max(job.requested_time, 0)


@attrs.frozen
class MemoryChoice:
    """The chosen reading, None if memory is left out, and a note that explains it."""

    reading: MemoryReading | None
    note: str = ""


def choose(
    setting: str,
    jobs: Iterable[SwfJob],
    nodes: Sequence[WorkloadNode],
    header: Sequence[str],
    where: str = "",
) -> MemoryChoice:
    """Choose the reading of the memory columns.

    `jobs` may be iterated several times; `header` are the lines before the first job, and `where`
    names the columns with the nodes of the jobs.
    """
    if setting == NONE or not any(job.memory > 0 for job in jobs):
        return MemoryChoice(None)
    without = [node.name for node in nodes if not node.resources.get("memory", 0)]
    if without:
        more = f" and {len(without) - 1} more nodes have" if len(without) > 1 else " has"
        return MemoryChoice(
            None, f"the memory of jobs is left out, because node {without[0]}{more} no memory"
        )
    evidence = Evidence(jobs, nodes)
    unit, owner = SETTINGS[setting]
    hint = Hint() if setting != AUTO else find_hint(header)
    if unit and owner:
        return MemoryChoice(MemoryReading(unit, owner))
    tried: list[MemoryVerdict] = []
    for reading in _readings(unit or hint.unit, owner or hint.owner, evidence, is_fixed=setting != AUTO):
        if any(one.reading == reading for one in tried):
            continue
        tried.append(evidence.judge(reading))
        if tried[-1].is_possible:
            return MemoryChoice(reading, _note(tried, hint, evidence, where))
    return _least_impossible(tried)


def _readings(unit: str, owner: str, evidence: Evidence, *, is_fixed: bool) -> Iterator[MemoryReading]:
    """Yield the readings in the order in which they are tried; `is_fixed` allows only this unit and owner."""
    owners = list(OWNERS)
    if evidence.has_nodes:
        owners.sort(key=lambda each: each != NODE)
    owners = [owner] if owner else owners
    units = [unit] if unit else _units(evidence)
    yield from (MemoryReading(one, other) for one in units for other in owners)
    if not is_fixed and (unit or owner):
        yield from _readings("", "", evidence, is_fixed=True)


def _units(evidence: Evidence) -> list[str]:
    if evidence.is_tiny_in_kb:
        return ["mb", "kb"]
    return ["kb", "bytes"] if evidence.median >= LEAST_BYTES else ["kb"]


def _note(tried: Sequence[MemoryVerdict], hint: Hint, evidence: Evidence, where: str) -> str:
    *refused, taken = tried
    reading = taken.reading
    text = f"the memory of jobs is read as {reading}"
    if hint.agrees_with(reading):
        text += f", as the header says: '{hint.line}'"
    elif reading == FORMAT:
        text += ", as the format says"
    elif evidence.has_nodes and reading.owner == NODE:
        text += f", because the jobs name their nodes{where}"
    elif reading.unit == "mb" and evidence.is_tiny_in_kb:
        text += ", because as KB no job would have a thousandth of a node's memory"
    if not refused and reading != FORMAT:
        refused = [evidence.judge(FORMAT)]
    if refused and refused[0].is_possible:
        text += f"; {FORMAT}, as the format says, would be possible too"
    elif refused:
        text += f"; as {refused[0].reading} {refused[0].reason()}"
    return f"{text} (offered load of memory {taken.load:.2f}; see --swf-memory)"


def _least_impossible(tried: Sequence[MemoryVerdict]) -> MemoryChoice:
    best = min(tried, key=lambda one: (round(one.unfit, 2), one.load))
    if best.unfit > 0.5:
        note = (
            f"the memory of jobs is left out, because no reading of it is possible: as {best.reading} "
            f"{best.reason()} (see --swf-memory)"
        )
        return MemoryChoice(None, note)
    note = (
        f"no reading of the memory of jobs is possible; it is read as {best.reading}, although "
        f"{best.reason()} (see --swf-memory)"
    )
    return MemoryChoice(best.reading, note)


# -- headers ----------------------------------------------------------------------------------------------


@attrs.frozen
class Hint:
    """A line of the header about the memory of jobs; empty texts for what it does not say."""

    unit: str = ""
    owner: str = ""
    line: str = ""

    def agrees_with(self, reading: MemoryReading) -> bool:
        """Return True if the line says something, and nothing else than the reading."""
        return bool(self.line) and self.unit in ("", reading.unit) and self.owner in ("", reading.owner)


_MEMORY = re.compile(r"\b(memory|mem|ram)|(memory|mem|ram)\b", re.IGNORECASE)
_OF_MACHINE = re.compile(r"\d\s*[kmgt]i?b?(ytes?)?\b|[:=]\s*-?\d+\s*$", re.IGNORECASE)
"""Sizes of the machine, such as `4 GB` or `MaxMemory: 1048576`, which say nothing about the columns."""
_UNIT = {
    "kb": re.compile(r"\b(kb|kib|kilo-?bytes?|kbytes?)\b", re.IGNORECASE),
    "mb": re.compile(r"\b(mb|mib|mega-?bytes?|mbytes?)\b", re.IGNORECASE),
    "bytes": re.compile(r"\bbytes?\b", re.IGNORECASE),
}
_OWNER = {
    NODE: re.compile(r"(per|/|each|every)[ _-]*(\w+ )?(node|host|machine|server)", re.IGNORECASE),
    PROCESSOR: re.compile(r"(per|/|each|every)[ _-]*(\w+ )?(proc|cpu|core|task|pe\b)", re.IGNORECASE),
    JOB: re.compile(r"(per|/|each|every|whole|entire)[ _-]*(\w+ )?job", re.IGNORECASE),
}


def find_hint(header: Iterable[str]) -> Hint:
    """Return what the header says about the memory of jobs; the first line that says something counts."""
    found = Hint()
    for line in header:
        line = " ".join(line.lstrip(";#").split())
        if not _MEMORY.search(line) or _OF_MACHINE.search(line):
            continue
        unit = next((name for name, pattern in _UNIT.items() if pattern.search(line)), "")
        owner = next((name for name, pattern in _OWNER.items() if pattern.search(line)), "")
        if unit or owner:
            found = Hint(found.unit or unit, found.owner or owner, found.line or line[:120])
    return found
