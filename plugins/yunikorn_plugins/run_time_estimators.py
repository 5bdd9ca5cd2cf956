"""Default estimators of run times: `request`, `learned` and `file`.

A partition names those to use, and the core takes the estimates of the one that is best in each queue:

    partitions:
      - name: default
        estimators:
          - request
          - learned
          - {name: file, path: /etc/yunikorn/past-runs.csv}

To write an estimator, copy one of these classes into a module with the hook at the end of this file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any

import attrs

from yunikorn.api import Allocation, Context, RunTime, RunTimeEstimator, Task, hookimpl
from yunikorn_plugins.application_template import template_of
from yunikorn_plugins.run_time_groups import GROUPS, RunTimes, bucket_of

LIMIT_TAG = "yunikorn.apache.org/run-time-limit"
"""Tag of a request or an application with the longest time that its tasks may run."""
LONGEST = 999_999_999
"""Longest time that is read (s)."""
SHARES = (0.1, 0.5, 0.9)
WIDENING = 0.1
"""Part of a power of e by which a run time outside of its interval widens the next ones on its side."""
WIDEST = 7.0
"""Bound of the logarithms of widths."""
_NANOSECONDS = 1_000_000_000
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PARTS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(d|h|ms|m|s)")
_DURATION = re.compile(rf"(?:{_PARTS.pattern})+")
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?")


def parse_seconds(text: str) -> float | None:
    """Return the seconds of a time: `90`, `1h30m`, or as Slurm prints it, `1-02:30:00` or `02:30:00`.

    Returns None for any other text, and for times of 0 or above 999,999,999 s.
    """
    text, found = text.strip()[:80], 0.0
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, *parts = (None if part is None else int(part) for part in clock.groups())
        given = [part for part in parts if part is not None]
        # After days the first number are hours; else the last one are seconds.
        places = range(len(given)) if days is not None else range(3 - len(given), 3)
        found = float((days or 0) * 86_400)
        found += sum(part * (3600, 60, 1)[place] for place, part in zip(places, given, strict=True))
    elif _DURATION.fullmatch(text):
        found = sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(text))
    return found if 0 < found <= LONGEST else None


@attrs.frozen
class RequestedRunTime(RunTimeEstimator):
    """The time limit of the request: its execution timeout, or a tag of the task or the application."""

    name = "request"
    tags: tuple[str, ...] = (LIMIT_TAG,)
    """Tags with the limit, the first that there is counts."""

    def estimate(self, task: Task, age: float) -> RunTime | None:
        """Return the smallest limit, or None if there is none."""
        texts = (owner.tags.get(tag, "") for tag in self.tags for owner in (task, task.app))
        found = next((limit for text in texts if (limit := parse_seconds(text)) is not None), None)
        if task.execution_timeout:
            found = min(found or LONGEST, task.execution_timeout / _NANOSECONDS)
        return None if found is None else RunTime(found, found, found)


_AT_LEAST_ONE: Any = attrs.validators.ge(1)


@attrs.define(eq=False)
class LearnedRunTimes(RunTimeEstimator):
    """The run times of earlier tasks of the same user, application template, queue and size.

    Where too few of them have ended, those of coarser groups count.
    """

    name = "learned"
    fewest: int = attrs.field(default=3, validator=_AT_LEAST_ONE)
    """Number of ended tasks from which on a group is enough for an estimate."""
    recent: int = attrs.field(default=20, validator=_AT_LEAST_ONE)
    """Number of tasks of a group after which earlier ones begin to count less."""
    _known: RunTimes = attrs.field(init=False)
    _widths: dict[tuple[str, ...], list[float]] = attrs.field(init=False, factory=dict)
    """Logarithms of the factors by which intervals are wider than the quantiles, downwards and upwards, by
    kind of group: so far they held the share of tasks that they should."""

    def __attrs_post_init__(self) -> None:
        """Know nothing at first."""
        self._known = RunTimes(recent=self.recent)

    def estimate(self, task: Task, age: float) -> RunTime | None:
        """Return quantiles of the run times of the first group with enough tasks, or of the largest one."""
        return self._estimate(names_of(task), age)[1]

    def _estimate(self, names: Mapping[str, str], age: float) -> tuple[tuple[str, ...], RunTime | None]:
        found = self._known.estimate(names, SHARES, fewest=self.fewest, age=round(age * 1000))
        if found is None:
            return (), None
        low, median, high = (time / 1000 for time in found.quantiles)
        down, up = self._widths.get(found.by, (0.0, 0.0))
        return found.by, RunTime(min(low * exp(-down), median), median, max(high * exp(up), median))

    def observe(self, task: Allocation, seconds: float) -> None:
        """Add the run time of a task to its groups, and widen or narrow such intervals as it had."""
        names = names_of(task)
        kind, said = self._estimate(names, 0.0)
        if said is not None:
            widths = self._widths.setdefault(kind, [0.0, 0.0])
            for side, is_outside in enumerate((seconds < said.low, seconds > said.high)):
                width = widths[side] + WIDENING * (is_outside - SHARES[0])
                widths[side] = min(max(width, -WIDEST), WIDEST)
        self._known.add([names[group] for group in GROUPS], bucket_of(round(seconds * 1000)))

    # -- over a restart -----------------------------------------------------------------------------

    def saved(self) -> dict[str, list[Any]]:
        """Return what was learned, as JSON takes it: for each group its kind, names and histogram."""
        groups = [
            [list(kind), list(names), [list(pair) for pair in sorted(buckets.items())]]
            for kind, groups in self._known.groups.items()
            for names, buckets in groups.items()
        ]
        return {"groups": groups, "widths": [[list(kind), *pair] for kind, pair in self._widths.items()]}

    def restored(self, state: Mapping[str, Sequence[Any]]) -> None:
        """Continue with what another object of the class has saved."""
        self._known = RunTimes(recent=self.recent)
        self._widths = {tuple(kind): [down, up] for kind, down, up in state["widths"]}
        for kind, names, buckets in state["groups"]:
            self._known.put(tuple(kind), tuple(names), {int(bucket): int(count) for bucket, count in buckets})


def names_of(task: Task) -> Mapping[str, str]:
    """Return the properties of a task by which run times are grouped."""
    app = task.app
    queue = "" if app.queue is None else app.queue.path
    return dict(zip(GROUPS, (app.user, queue, template_of(app.id), size_of(task.resource)), strict=True))


def size_of(amounts: Mapping[str, int]) -> str:
    """Return amounts as a text that is the same for equal ones."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))


COLUMNS = ("user", "queue", "application", "seconds")


@attrs.define(eq=False)
class RunTimesOfFile(LearnedRunTimes):
    """Run times of a CSV file, and of the tasks that end from then on."""

    name = "file"
    path: str = attrs.field(kw_only=True)
    """CSV file with a header and the columns `user`, `queue`, `application` and `seconds`."""

    def opened(self, context: Context) -> None:
        """Read the file; raises `ValueError` with all problems, or `OSError`."""
        self._known = RunTimes(recent=self.recent)
        problems: list[str] = []
        with Path(self.path).open(encoding="utf-8-sig", newline="") as lines:
            try:
                for names, seconds in _rows(csv.reader(lines), problems):
                    self._known.add(names, bucket_of(round(seconds * 1000)))
            except (csv.Error, UnicodeDecodeError) as error:
                problems.append(f"it is no CSV file with texts of at most 131,072 characters: {error}")
        if problems:
            more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise ValueError(f"{self.path}: {'; '.join(problems[:5])}{more}")


def _rows(reader: Iterator[list[str]], problems: list[str]) -> Iterator[tuple[list[str], float]]:
    """Yield the names and the seconds of each row; append what is wrong to `problems`."""
    header = [column.strip().lower() for column in next(reader, [])]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        problems.append(f"line 1: no column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
        return
    places = [header.index(column) for column in COLUMNS]
    for number, row in enumerate(reader, 2):
        if not row:
            continue
        if len(row) != len(header):
            problems.append(f"line {number}: {len(row)} columns instead of {len(header)}")
            continue
        user, queue, app, text = (row[place].strip() for place in places)
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST:
            problems.append(f"line {number}: {text[:40]!r} is no number of seconds from 0 to {LONGEST}")
            continue
        yield [user, queue, template_of(app), ""], seconds


@hookimpl
def yunikorn_run_time_estimators() -> list[type[RunTimeEstimator]]:
    """Return the default estimators."""
    return [RequestedRunTime, LearnedRunTimes, RunTimesOfFile]
