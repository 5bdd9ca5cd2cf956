"""Workloads of the simulator Batsim: JSON with jobs, and with the profiles of what the jobs run.

Profiles that last for a fixed time are read: delays, and sequences of such profiles. The time of all others
depends on the platform that Batsim simulates, so that a workload with jobs of such profiles is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import Problem
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn.text import suggest
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.machines import MAX_NODES
from yunikorn_lab.simulation.trace_dependencies import PREFIX, follow, read_dependencies
from yunikorn_lab.simulation.trace_line import (
    MAX_PROCESSORS,
    MAX_SECONDS,
    UNKNOWN,
    BadLine,
    TraceApplications,
    check_templates,
    limit_tag,
    queue_template,
)
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode, WorkloadTaskGroup

FIELDS = ("profile", "queue", "user")
DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")
READ = "delays and sequences of delays (delay, DelayProfile, composed, SequentialCompositionProfile)"
MOST_NESTED = 100

CUT = "jobs ended by their walltime"

CORE = Resource({"vcore": 1000})


@attrs.frozen
class BatsimOptions:
    """Settings for the conversion of jobs to applications.

    `queue` and `user` are templates with the fields `{profile}`, the name of the job's profile, and `{queue}`
    and `{user}`, keys that a job or its `extra_data` may have.
    """

    queue: str = "root.default"
    user: str = "nobody"

    def check(self) -> None:
        """Raise `UsageError` for a template with an unknown field."""
        check_templates({"--batsim-queue": self.queue, "--batsim-user": self.user}, FIELDS)


def read_batsim(
    text: str,
    file: str,
    name: str,
    options: BatsimOptions,
    nodes: list[WorkloadNode],
    *,
    strict: bool = False,
) -> Workload:
    """Read a workload; without `nodes`, each of the `nb_res` resources is a node with one core.

    Invalid jobs are skipped and counted. With `strict`, they raise `InputError`. Profiles that cannot be read
    raise `InputError` in both cases.
    """
    options.check()
    document = _parse(text, file)
    jobs, profiles = document.get("jobs"), document.get("profiles")
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        what = "expected an array 'jobs' and an object 'profiles'"
        raise InputError(file, [Problem("", f"is no Batsim workload: {what}")])
    reader = _Jobs(options, profiles)
    problems: list[Problem] = []
    for index, job in enumerate(jobs):
        try:
            reader.take(job)
        except BadLine as error:
            problems.append(Problem(f"jobs[{index}]", str(error)))
    if reader.refused:
        refused = [Problem(f"profiles.{name}", text) for name, text in reader.refused.items()]
        raise InputError(file, [*refused, *problems])
    remarks = reader.check(file, problems, "contains no jobs", strict=strict)
    reader.applications, ignored = follow(reader.applications, file, reader.counts)
    remarks += ignored
    return reader.workload(name, "batsim", nodes or _nodes(document, file, remarks), remarks)


def _parse(text: str, file: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = Problem("", f"is not valid JSON: {error.msg}", error.lineno, error.colno)
        raise InputError(file, [problem]) from error
    except (ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(file, [Problem("", f"is not valid JSON: {what}")]) from error
    if not isinstance(document, dict):
        raise InputError(
            file, [Problem("", f"is no Batsim workload: expected an object, got {_shown(document)}")]
        )
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _nodes(document: Mapping[str, Any], file: str, remarks: list[str]) -> list[WorkloadNode]:
    try:
        count = _whole(document, "nb_res", MAX_NODES)
    except BadLine as error:
        what_to_do = "correct it, or specify the nodes with --nodes FILE"
        raise InputError(file, [Problem("nb_res", f"{error}: {what_to_do}")]) from error
    remarks.append(f"{file}: each of the {count} resources (nb_res) is a node with 1 vcore (see --nodes)")
    return [WorkloadNode(f"node-{number}", CORE) for number in range(1, count + 1)]


class _Jobs(TraceApplications):
    """Conversion of jobs to applications."""

    skipped = "jobs skipped"

    def __init__(self, options: BatsimOptions, profiles: Mapping[str, Any]) -> None:
        super().__init__()
        self.refused: dict[str, str] = {}
        """Reasons why profiles cannot be read, by name; each names the first job with that profile."""
        self._queue = queue_template(options.queue)
        self._user = options.user
        self._profiles = profiles
        self._times: dict[str, Fraction] = {}
        self._known: set[str] = set()

    def take(self, job: Any) -> None:
        """Add a job; raises `BadLine`."""
        if not isinstance(job, dict):
            raise BadLine(f"expected an object, got {_shown(job)}")
        number = job.get("id")
        if isinstance(number, bool) or not isinstance(number, (str, int)) or number == "":
            raise BadLine(f"expected an 'id' that is a text or a whole number, got {_shown(number)}")
        name = str(number)
        if name in self._known:
            raise BadLine(f"the id '{name}' was already used")
        submit = _seconds(job, "subtime")
        count = _whole(job, "res", MAX_PROCESSORS)
        limit = _walltime(job)
        profile = job.get("profile")
        if not isinstance(profile, str):
            raise BadLine(f"expected the name of a profile in 'profile', got {_shown(profile)}")
        runtime = self._runtime(profile, name)
        extra = _extra(job)
        after = read_dependencies(job, extra)
        self._known.add(name)
        if runtime is None:
            return
        if limit is not None and limit < runtime:
            runtime = limit
            self.counts[CUT] += 1
        named = {key: _text(job.get(key, extra.get(key))) for key in FIELDS}
        self.applications.append(
            WorkloadApplication(
                id=f"{PREFIX}{name}",
                submit=round(submit * SECOND),
                tasks=(WorkloadTaskGroup("task", count, CORE, round(runtime * SECOND)),),
                tags=limit_tag(float(limit or 0)),
                queue=self._queue(named),
                user=self._user.format_map(named),
                gang=ATOMIC if count > 1 else "",
                after=after,
            )
        )

    def _runtime(self, profile: str, job: str) -> Fraction | None:
        """Return the run time (s) of a profile; None if the profile cannot be read, which is noted once."""
        if profile not in self._times and profile not in self.refused:
            try:
                self._times[profile] = self._measure(profile, ())
            except BadLine as error:
                self.refused[profile] = f"{error}; first used by job '{job}'"
        return self._times.get(profile)

    def _measure(self, name: str, parents: tuple[str, ...]) -> Fraction:
        profile = self._profiles.get(name)
        if profile is None:
            raise BadLine(f"there is no such profile{suggest(name, self._profiles)}")
        if not isinstance(profile, dict):
            raise BadLine(f"expected an object, got {_shown(profile)}")
        if name in parents or len(parents) > MOST_NESTED:
            raise BadLine(f"the sequence contains itself: {' > '.join([*parents, name][:10])}")
        kind = profile.get("type")
        if kind in DELAYS:
            return _seconds(profile, "delay")
        if kind not in SEQUENCES:
            what = f"the run time of type {_shown(kind)} depends on the platform of Batsim"
            raise BadLine(f"{what if isinstance(kind, str) else 'the type is missing'}; {READ} can be read")
        parts = profile.get("seq")
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise BadLine(f"expected a list of names of profiles in 'seq', got {_shown(parts)}")
        repeat = "nb" if "nb" in profile else "repeat"
        times = _whole(profile, repeat, MAX_SECONDS) if repeat in profile else 1
        each = {part: self._part(part, (*parents, name)) for part in dict.fromkeys(parts)}
        total = times * sum((each[part] for part in parts), Fraction(0))
        if total > MAX_SECONDS:
            raise BadLine(f"the sequence takes longer than {MAX_SECONDS} s")
        return total

    def _part(self, name: str, parents: tuple[str, ...]) -> Fraction:
        if name not in self._times:
            try:
                self._times[name] = self._measure(name, parents)
            except BadLine as error:
                raise BadLine(f"in '{name}': {error}") from error
        return self._times[name]


def _extra(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `extra_data` of a job, which is an object, or a text that may be JSON of an object."""
    extra = job.get("extra_data")
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except (ValueError, RecursionError):
            return {}
    return extra if isinstance(extra, dict) else {}


def _text(value: Any) -> str:
    is_plain = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value) if is_plain and value != "" else UNKNOWN


def _walltime(job: Mapping[str, Any]) -> Fraction | None:
    if job.get("walltime") in (None, -1):
        return None
    limit = _seconds(job, "walltime")
    if not limit:
        raise BadLine("expected a 'walltime' above 0 seconds, got 0")
    return limit


def _seconds(values: Mapping[str, Any], key: str) -> Fraction:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_SECONDS:
        raise BadLine(f"expected seconds from 0 to {MAX_SECONDS} in '{key}', got {_shown(value)}")
    return Fraction(str(value)) if math.isfinite(value) else Fraction(0)


def _whole(values: Mapping[str, Any], key: str, most: int) -> int:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadLine(f"expected a whole number from 1 to {most} in '{key}', got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}..."
