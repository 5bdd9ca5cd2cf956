"""The key `generate` of a scenario: descriptions of applications that are drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from yunikorn.config.reading import Table
from yunikorn.simulation.arrivals import (
    DAY,
    Bursts,
    Daily,
    Gaps,
    Poisson,
    Process,
    Regular,
    Uniformly,
)
from yunikorn.simulation.distributions import Constant
from yunikorn.simulation.generator import MANY, Amounts, ApplicationPlan, TaskPlan
from yunikorn.simulation.scenario_entries import (
    APPLICATION_KEYS,
    INT32_MAX,
    INT32_MIN,
    TASK_KEYS,
    check_times,
    read_pattern,
)
from yunikorn.simulation.scenario_values import (
    COUNT,
    TIME,
    read_amounts,
    read_count,
    read_names,
    read_priorities,
    read_sizes,
    read_time,
)
from yunikorn.text import suggest

ENTRY_KEYS = (*(key for key in APPLICATION_KEYS if key != "every"), "arrivals", "during")
GROUP_KEYS = (*TASK_KEYS, "sizes")
_ONE = Amounts(Constant(1), 1, 1, 1)


def read_plans(document: Table, taken: Collection[str]) -> list[ApplicationPlan]:
    """Read the entries of `generate`; `taken` are the ids of explicitly listed applications."""
    plans: dict[str, ApplicationPlan] = {}
    for table in document.tables("generate"):
        table.only(ENTRY_KEYS)
        plan = _read_plan(table)
        name = plan.pattern.id
        if name in plans:
            table.findings.problem(table.spot("id"), f"duplicate id '{name}' in generate")
        for other in taken:
            stem, dash, number = other.rpartition("-")
            if name and stem == name and dash and number.isdigit():
                what = f"the generated ids clash with the id '{other}' in applications"
                table.findings.problem(table.spot("id"), what)
                break
        plans[name] = plan
    return list(plans.values())


def _read_plan(table: Table) -> ApplicationPlan:
    queue, user = read_names(table, "queue"), read_names(table, "user")
    named = (name if isinstance(name, str) else "" for name in (queue, user))
    pattern = read_pattern(table, *named)
    check_times(table, pattern)
    count = read_count(table, MANY) if "count" in table else None
    during = read_time(table, "during") if "during" in table else None
    if count is None and during is None:
        what = "required, but missing: set count (how many arrive), during (for how long), or both"
        table.findings.problem(table.spot("count"), what)
    process = _read_process(table, count, during)
    if count is None and process == Regular(0):
        what = "required, but missing: arrivals without a time between them need a count"
        table.findings.problem(table.spot("count"), what)
    return ApplicationPlan(
        pattern=pattern,
        process=process,
        tasks=_read_tasks(table),
        count=MANY if count is None else count,
        during=during,
        queue=None if isinstance(queue, str) else queue,
        user=None if isinstance(user, str) else user,
    )


def _read_tasks(table: Table) -> tuple[TaskPlan, ...]:
    wrong = len(table.findings.problems)
    groups: dict[str, TaskPlan] = {}
    for number, inner in enumerate(table.tables("tasks"), 1):
        inner.only(GROUP_KEYS)
        name = inner.text("name") or f"task-{number}"
        if name in groups:
            what = f"duplicate task name '{name}' in this application"
            inner.findings.problem(inner.spot("name"), what)
        groups[name] = TaskPlan(
            name=name,
            count=read_amounts(inner, "count", COUNT) if "count" in inner else _ONE,
            resources=read_sizes(inner),
            runtime=read_amounts(inner, "runtime", TIME),
            priority=read_priorities(inner, "priority", INT32_MIN, INT32_MAX),
            tags=inner.pairs("tags"),
            timeout=read_time(inner, "timeout", 0),
        )
    if not groups and len(table.findings.problems) == wrong:
        table.findings.problem(table.spot("tasks"), "an application needs tasks")
    return tuple(groups.values())


# -- arrivals -----------------------------------------------------------------------------------------


def _read_process(table: Table, count: int | None, during: int | None) -> Process:
    arrivals = table.table("arrivals")
    if arrivals is None:
        if "arrivals" not in table:
            what = f"required, but missing: a mapping with a process, one of {', '.join(_PROCESSES)}"
            table.findings.problem(table.spot("arrivals"), what)
        return Regular(0)
    name = arrivals.text("process")
    if name == UNIFORM:
        return _read_uniform(table, arrivals, count, during)
    if name not in _PROCESSES:
        what = f"unknown process '{name}'{suggest(name, _PROCESSES)}; known: {', '.join(_PROCESSES)}"
        if "process" not in arrivals:
            what = f"required, but missing: one of {', '.join(_PROCESSES)}"
        arrivals.findings.problem(arrivals.spot("process"), what)
        return Regular(0)
    options, read = _PROCESSES[name]
    arrivals.only(("process", *options))
    return read(arrivals)


def _read_uniform(table: Table, arrivals: Table, count: int | None, during: int | None) -> Process:
    arrivals.only(("process",))
    for key, value in (("count", count), ("during", during)):
        if value is None:
            what = "required, but missing: uniform arrivals need count and during"
            table.findings.problem(table.spot(key), what)
    return Uniformly(count or 1, during or 0)


def _read_regular(table: Table) -> Process:
    return Regular(read_time(table, "every"))


def _read_poisson(table: Table) -> Process:
    return Poisson(_read_every(table))


def _read_gaps(table: Table) -> Process:
    return Gaps(read_amounts(table, "gap", TIME).distribution)


def _read_bursts(table: Table) -> Process:
    size = read_amounts(table, "size", COUNT)
    return Bursts(_read_every(table), size.distribution, read_time(table, "gap", 0))


def _read_daily(table: Table) -> Process:
    usual = Daily(1)
    peak = read_time(table, "peak", usual.peak)
    if peak >= DAY:
        table.findings.problem(table.spot("peak"), "expected a time of the day, such as 14h")
    return Daily(
        _read_every(table),
        peak % DAY,
        _read_part(table, "swing", usual.swing, 1.0),
        _read_part(table, "weekend", usual.weekend, 100.0),
    )


def _read_every(table: Table) -> int:
    wrong = len(table.findings.problems)
    every = read_time(table, "every")
    if not every and len(table.findings.problems) == wrong:
        table.findings.problem(table.spot("every"), "expected a time above 0")
    return max(every, 1)


def _read_part(table: Table, key: str, default: float, most: float) -> float:
    value = table.number(key) if key in table else default
    if value is not None and not 0 <= value <= most:
        table.findings.problem(table.spot(key), f"expected a number from 0 to {most:g}")
    return min(max(value or 0.0, 0.0), most)


UNIFORM = "uniform"
_PROCESSES: dict[str, tuple[tuple[str, ...], Callable[[Table], Process]]] = {
    "regular": (("every",), _read_regular),
    "poisson": (("every",), _read_poisson),
    "gaps": (("gap",), _read_gaps),
    UNIFORM: ((), _read_regular),
    "bursts": (("every", "size", "gap"), _read_bursts),
    "daily": (("every", "peak", "swing", "weekend"), _read_daily),
}
"""Options and reader of each process, by name."""

PROCESSES = tuple(_PROCESSES)
