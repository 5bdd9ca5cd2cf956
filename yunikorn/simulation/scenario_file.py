"""Streaming reader for long scenarios with one application per line, each written as JSON.

`yunikorn workload` writes such files. The head, up to `applications:`, is read like any scenario. The
applications are read once for validation and again in every simulation, and are never all in memory. This
reader refuses nothing: it leaves files with any unusual content to the general reader of scenarios, which
handles every form and reports errors.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import attrs

from yunikorn.config.quantities import parse_quantity
from yunikorn.errors import Problem, QuantityError
from yunikorn.model.gang import STYLES
from yunikorn.resources import Resource
from yunikorn.simulation.arrivals import Arrivals
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.scenario_applications import INT32_MAX, INT32_MIN, MAX_COUNT, NOBODY
from yunikorn.simulation.scenario_values import ALWAYS, parse_time
from yunikorn.simulation.source import GZIP
from yunikorn.simulation.workload import FOREVER, NO_TAGS, PREEMPTED, WorkloadApplication, WorkloadTaskGroup

START = "applications:"
ENTRY = '- {"'
SHARED = 20_000
"""Maximum number of cached resource amounts that equal tasks share."""

LONGEST_HEAD = 2_000_000
"""Maximum number of lines before the applications."""


class Unusual(Exception):
    """Content that only the general reader of scenarios handles."""


@attrs.frozen
class ScenarioFile:
    """A scenario whose applications are read on demand."""

    head: str
    """Text of the scenario up to the applications."""
    applications: FileApplications


def open_scenario_file(path: Path) -> ScenarioFile | None:
    """Open the scenario at `path`; returns None unless it has one application per line in the usual form."""
    try:
        with _open(path) as file:
            head = _read_head(file)
            size = _check(_entries(file))
    except (OSError, EOFError, ValueError, Unusual):
        return None
    return ScenarioFile(head, FileApplications(path, head.count("\n") + 1, size))


class FileApplications(Arrivals):
    """The applications of a file, in the order of the file, which is the order of submission."""

    def __init__(self, path: Path, skip: int, size: int) -> None:
        """Prepare the iteration; `skip` is the number of lines before the first application."""
        self._path = path
        self._skip = skip
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[WorkloadApplication]:
        left = self._size
        try:
            with _open(self._path) as file:
                for application in islice(_entries(islice(file, self._skip, None)), left):
                    yield application
                    left -= 1
        except (OSError, EOFError, ValueError, Unusual) as error:
            raise self._changed() from error
        if left:
            raise self._changed()

    def _changed(self) -> InputError:
        what = "has changed since the simulation started: the file must not change during the run"
        return InputError(str(self._path), [Problem("", what)])


def _open(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


def _read_head(file: Iterator[str]) -> str:
    lines: list[str] = []
    for line in islice(file, LONGEST_HEAD):
        if line.rstrip() == START:
            return "".join(lines)
        lines.append(line)
    raise Unusual


def _entries(lines: Iterator[str]) -> Iterator[WorkloadApplication]:
    form = _Form()
    for line in lines:
        if line.startswith(ENTRY):
            yield form.application(json.loads(line[2:], object_pairs_hook=_once, **_AS_TEXT))
        elif line.strip():
            raise Unusual


_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str}
"""Options that keep numbers as text, because a scenario's amounts and times are parsed from text."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unusual
    return found


def _check(applications: Iterator[WorkloadApplication]) -> int:
    """Return the number of applications; raises `Unusual` unless ids are unique and times ascend."""
    names: set[str] = set()
    latest = 0
    for application in applications:
        if application.submit < latest:
            raise Unusual
        latest = application.submit
        before = len(names)
        names.add(application.id)
        if len(names) == before:
            raise Unusual
    if not names:
        raise Unusual
    return len(names)


class _Form:
    """Conversion of JSON values to applications; equal amounts are shared."""

    def __init__(self) -> None:
        self._amounts: dict[tuple[tuple[str, str], ...], Resource] = {}

    def application(self, found: dict[str, Any]) -> WorkloadApplication:
        """Convert an application; raises `Unusual` for anything but plain valid values."""
        try:
            made = WorkloadApplication(
                id=_text(found.pop("id")),
                submit=_time(found.pop("submit", "0")),
                tasks=tuple([self._group(each) for each in found.pop("tasks")]),
                queue=_text(found.pop("queue", "")),
                user=_text(found.pop("user", "")) or NOBODY,
                groups=tuple(map(_text, found.pop("groups", ()))),
                partition=_text(found.pop("partition", "")),
                tags=_tags(found.pop("tags", NO_TAGS)),
                gang=_text(found.pop("gang", "")),
                patience=_time(found.pop("gangtimeout", "0")),
                timeout=_time(found.pop("timeout", "0")),
                preempted=_text(found.pop("preempted", "")),
            )
        except (KeyError, TypeError, ValueError, QuantityError, AttributeError) as error:
            raise Unusual from error
        if found or not made.id or not made.tasks or not _makes_sense(made):
            raise Unusual
        return made

    def _group(self, found: dict[str, Any]) -> WorkloadTaskGroup:
        runtime = _text(found.pop("runtime"))
        priority = found.pop("priority", None)
        made = WorkloadTaskGroup(
            name=_text(found.pop("name")),
            count=int(found.pop("count", "1")),
            resources=self._resources(found.pop("resources")),
            runtime=FOREVER if runtime == ALWAYS else parse_time(runtime),
            priority=None if priority is None else int(priority),
            tags=_tags(found.pop("tags", NO_TAGS)),
            timeout=_time(found.pop("timeout", "0")),
        )
        in_bounds = 1 <= made.count <= MAX_COUNT and INT32_MIN <= (made.priority or 0) <= INT32_MAX
        if found or not made.name or not in_bounds:
            raise Unusual
        return made

    def _resources(self, found: dict[str, Any]) -> Resource:
        key = tuple(found.items())
        known = self._amounts.get(key)
        if known is None:
            if len(self._amounts) >= SHARED:
                self._amounts.clear()
            known = Resource({kind: parse_quantity(kind, _text(amount)) for kind, amount in key})
            if not any(known.values()):
                raise Unusual
            self._amounts[key] = known
        return known


def _makes_sense(made: WorkloadApplication) -> bool:
    names = {group.name for group in made.tasks}
    one_time = not made.timeout if made.has_placeholders else not made.patience
    return (
        len(names) == len(made.tasks)
        and made.gang in ("", *STYLES)
        and made.preempted in ("", *PREEMPTED)
        and one_time
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unusual
    return value


def _time(value: Any) -> int:
    return parse_time(_text(value))


def _tags(value: Any) -> Any:
    return value if value is NO_TAGS else {key: _text(text) for key, text in value.items()}
