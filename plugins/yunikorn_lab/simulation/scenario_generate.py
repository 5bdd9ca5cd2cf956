"""The key `generate` of a scenario: descriptions of applications that are drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import attrs

from yunikorn.config.yaml_reading import YamlTable
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn_lab.simulation.arrivals import (
    DAY,
    Bursts,
    Daily,
    Gaps,
    Poisson,
    Process,
    Regular,
    Uniformly,
)
from yunikorn_lab.simulation.dependencies import ScenarioDependencies
from yunikorn_lab.simulation.distributions import Constant, Distribution, DrawnAmounts
from yunikorn_lab.simulation.generator import MANY, ApplicationPlan, TaskPlan
from yunikorn_lab.simulation.scenario_entries import check_times, read_tasks
from yunikorn_lab.simulation.scenario_keys import (
    APPLICATION,
    APPLICATION_KEYS,
    NOBODY,
    TASK_KEYS,
    read_keys,
)
from yunikorn_lab.simulation.scenario_values import (
    COUNT,
    TIME,
    missing,
    read_amounts,
    read_count,
    read_names,
    read_priorities,
    read_sizes,
    read_time,
    unknown,
)
from yunikorn_lab.simulation.workload import WorkloadApplication

ENTRY_KEYS = (*(key for key in APPLICATION_KEYS if key != "every"), "arrivals", "during")
GROUP_KEYS = (*TASK_KEYS, "sizes")
_FIXED = tuple(key for key in APPLICATION if key.name not in ("queue", "user"))
_ONE = DrawnAmounts(Constant(1), 1, 1, 1)


def known_count(table: YamlTable) -> int:
    """Return the number of applications of an entry of `generate` as written; 0 if others decide it, too."""
    if "count" not in table or "during" in table:
        return 0
    wrong = len(table.findings.problems)
    count = read_count(table, MANY)
    # The plan is read later, and reports a number that is none.
    del table.findings.problems[wrong:]
    return count


def read_plans(
    tables: Sequence[YamlTable], taken: Collection[str], entries: ScenarioDependencies
) -> list[ApplicationPlan]:
    """Read the entries of `generate`.

    `taken` are the ids of explicitly listed applications, `entries` their entries, the only ones that can be
    predecessors of generated applications.
    """
    plans: dict[str, ApplicationPlan] = {}
    for table in tables:
        table.only(ENTRY_KEYS)
        plan = _read_plan(table, tuple(entries.predecessors(table)))
        name = plan.pattern.id
        if name in plans:
            table.problem("id", f"duplicate id '{name}' in generate")
        for other in taken:
            stem, dash, number = other.rpartition("-")
            if name and stem == name and dash and number.isdigit():
                table.problem("id", f"the generated ids clash with the id '{other}' in applications")
                break
        plans[name] = plan
    return list(plans.values())


def _read_plan(table: YamlTable, after: tuple[str, ...]) -> ApplicationPlan:
    queue, user = read_names(table, "queue"), read_names(table, "user")
    pattern = WorkloadApplication(
        **{**read_keys(table, _FIXED), "after": after},
        tasks=(),
        queue=queue if isinstance(queue, str) else "",
        user=user if isinstance(user, str) and user else NOBODY,
    )
    check_times(table, pattern)
    count = read_count(table, MANY) if "count" in table else None
    during = read_time(table, "during") if "during" in table else None
    if count is None and during is None:
        missing(table, "count", "set count (how many arrive), during (for how long), or both")
    process = _read_process(table, count, during)
    if count is None and process == Regular(0):
        missing(table, "count", "arrivals without a time between them need a count")
    return ApplicationPlan(
        pattern=pattern,
        process=process,
        tasks=read_tasks(table, _read_task),
        count=MANY + 1 if count is None else count,
        during=during,
        queue=None if isinstance(queue, str) else queue,
        user=None if isinstance(user, str) else user,
    )


def _read_task(table: YamlTable, name: str) -> TaskPlan:
    table.only(GROUP_KEYS)
    return TaskPlan(
        name=name,
        count=read_amounts(table, "count", COUNT) if "count" in table else _ONE,
        resources=read_sizes(table),
        runtime=read_amounts(table, "runtime", TIME),
        priority=read_priorities(table, "priority", INT32_MIN, INT32_MAX),
        tags=table.pairs("tags"),
        timeout=read_time(table, "timeout", 0),
        startup=read_time(table, "startup", 0) if "startup" in table else None,
    )


# -- arrivals -----------------------------------------------------------------------------------------


def _read_every(table: YamlTable, key: str) -> int:
    wrong = len(table.findings.problems)
    every = read_time(table, key)
    if not every and len(table.findings.problems) == wrong:
        table.problem(key, "expected a time above 0")
    return max(every, 1)


def _read_gap(table: YamlTable, key: str) -> Distribution:
    return read_amounts(table, key, TIME).distribution


def _read_size(table: YamlTable, key: str) -> Distribution:
    return read_amounts(table, key, COUNT).distribution


def _read_pause(table: YamlTable, key: str) -> int:
    return read_time(table, key, 0)


def _read_peak(table: YamlTable, key: str) -> int:
    peak = read_time(table, key, Daily(1).peak)
    if peak >= DAY:
        table.problem(key, "expected a time of the day, such as 14h")
    return peak % DAY


def _part(default: float, most: float) -> Callable[[YamlTable, str], float]:
    def read(table: YamlTable, key: str) -> float:
        value = table.number(key) if key in table else default
        if value is not None and not 0 <= value <= most:
            table.problem(key, f"expected a number from 0 to {most:g}")
        return min(max(value or 0.0, 0.0), most)

    return read


UNIFORM = "uniform"
_PROCESSES: dict[str, tuple[type[Any], dict[str, Callable[[YamlTable, str], Any]]]] = {
    "regular": (Regular, {"every": read_time}),
    "poisson": (Poisson, {"every": _read_every}),
    "gaps": (Gaps, {"gap": _read_gap}),
    UNIFORM: (Uniformly, {}),
    "bursts": (Bursts, {"size": _read_size, "every": _read_every, "gap": _read_pause}),
    "daily": (
        Daily,
        {
            "every": _read_every,
            "peak": _read_peak,
            "swing": _part(Daily(1).swing, 1.0),
            "weekend": _part(Daily(1).weekend, 100.0),
        },
    ),
}
"""Class of each process, by name, and the readers of its options in the order of their problems."""

PROCESSES = tuple(_PROCESSES)


def _read_process(table: YamlTable, count: int | None, during: int | None) -> Process:
    arrivals = table.table("arrivals")
    if arrivals is None:
        if "arrivals" not in table:
            missing(table, "arrivals", f"a mapping with a process, one of {', '.join(PROCESSES)}")
        return Regular(0)
    name = arrivals.text("process")
    if name not in _PROCESSES:
        unknown(arrivals, "process", name, PROCESSES)
        return Regular(0)
    kind, options = _PROCESSES[name]
    arrivals.only(("process", *(field.name for field in attrs.fields(kind) if field.name in options)))
    if name == UNIFORM:
        for key, value in (("count", count), ("during", during)):
            if value is None:
                missing(table, key, "uniform arrivals need count and during")
        return Uniformly(count or 1, during or 0)
    process: Process = kind(**{option: read(arrivals, option) for option, read in options.items()})
    return process
