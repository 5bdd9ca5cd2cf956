"""Conversion of the options of `yunikorn workload` to the description of a scenario."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yunikorn.errors import Problem, UsageError
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.distributions import DISTRIBUTIONS, DrawnAmounts
from yunikorn_lab.simulation.scenario_generate import PROCESSES
from yunikorn_lab.simulation.scenario_reader import read_startup_text
from yunikorn_lab.simulation.scenario_values import CHOICE, LIMITS, ZIPF

APPLICATIONS = 1000
ARRIVALS = "poisson,every=30s"
SIZE = ("vcore=1", "memory=4Gi")
RUNTIME = "lognormal,median=10m,sigma=1"
NODES = 10
NODE_SIZE = ("vcore=16", "memory=64Gi")
QUEUE = "root.default"
STARTUP = "--startup-delay"
"""Option of all commands that run or write a workload."""

_PLAIN = re.compile(r"-?[A-Za-z0-9][\w./-]*\Z")
_NAMED = (*LIMITS, "exponent", "names", "count")
_PLACES = (
    ("generate[0].tasks[0].resources", "--size"),
    ("generate[0].tasks[0].count", "--tasks"),
    ("generate[0].tasks[0].runtime", "--runtime"),
    ("generate[0].arrivals", "--arrivals"),
    ("generate[0].count", "--applications"),
    ("generate[0].during", "--during"),
    ("generate[0].queue", "--queue"),
    ("generate[0].user", "--user"),
    ("generate[0].gang", "--gang"),
    ("nodes[0].count", "--nodes"),
    ("nodes[0].resources", "--node-size"),
    ("startup", STARTUP),
)
"""Paths in the description, with the options that set them."""


def describe(options: Mapping[str, Any], seed: int) -> str:
    """Return the text of a scenario; raises `UsageError` for an option that cannot be parsed."""
    tasks = {
        "count": _drawn("--tasks", options.get("tasks", "1")),
        "resources": _sizes("--size", options.get("size", SIZE)),
        "runtime": _drawn("--runtime", options.get("runtime", RUNTIME)),
    }
    entry = {
        "id": "app",
        "count": str(options.get("applications", "" if "during" in options else APPLICATIONS)),
        "during": options.get("during", ""),
        "arrivals": _arrivals(options.get("arrivals", ARRIVALS)),
        "queue": _drawn("--queue", options.get("queue", QUEUE)),
        "user": _drawn("--user", options["user"]) if "user" in options else "",
        "gang": options.get("gang", ""),
        "tasks": [tasks],
    }
    node = {
        "name": "node",
        "count": str(options.get("nodes", NODES)),
        "resources": _sizes("--node-size", options.get("node_size", NODE_SIZE)),
    }
    lines = [f"seed: {seed}", "nodes:", *_entry(node), "generate:", *_entry(entry)]
    if "startup_delay" in options:
        lines.insert(1, _startup(options["startup_delay"]))
    return "\n".join(lines) + "\n"


def _startup(text: str) -> str:
    return f"startup: {_flow(_drawn(STARTUP, text))}"


def startup_times(text: str) -> DrawnAmounts:
    """Return the times that `text` describes, a time or a distribution; raises `UsageError`."""
    try:
        return read_startup_text(f"{_startup(text)}\n")
    except InputError as error:
        reasons = "; ".join(
            ": ".join(filter(None, (problem.path.removeprefix("startup").lstrip("."), problem.message)))
            for problem in error.problems
        )
        raise UsageError(f"{STARTUP} '{text}': {reasons}") from error


def by_option(problem: Problem) -> str:
    """Return the text of a problem in the description, with the name of the responsible option."""
    for place, option in _PLACES:
        if problem.path.startswith(place):
            rest = problem.path[len(place) :].lstrip(".")
            return f"{option}: {rest}: {problem.message}" if rest else f"{option}: {problem.message}"
    return str(problem)


def _drawn(option: str, text: str) -> Any:
    name, *parts = text.split(",")
    if name not in (*DISTRIBUTIONS, CHOICE, ZIPF):
        if parts:
            known = ", ".join((*DISTRIBUTIONS, CHOICE, ZIPF))
            raise UsageError(f"{option}: no distribution is called '{name}'; known: {known}")
        return text
    return {"distribution": name, **_options(option, name, parts)}


def _arrivals(text: str) -> Any:
    name, *parts = text.split(",")
    if name in DISTRIBUTIONS and name not in PROCESSES:
        return {"process": "gaps", "gap": _drawn("--arrivals", text)}
    return {"process": name, **_options("--arrivals", name, parts)}


def _options(option: str, name: str, parts: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    weights: dict[str, str] = {}
    values: list[str] = []
    for part in parts:
        key, sign, value = part.partition("=")
        if not key:
            raise UsageError(f"{option}: expected {name},OPTION=VALUE,..., got '{part}'")
        if name in (CHOICE, ZIPF) and key not in _NAMED:
            values.append(key)
            weights[key] = value if sign else "1"
        elif not sign:
            raise UsageError(f"{option}: expected {key}=VALUE, got '{part}'")
        else:
            found[key] = value
    if values:
        found["values"] = values if name == ZIPF else weights
    return found


def _sizes(option: str, texts: Sequence[str]) -> dict[str, Any]:
    found = {}
    for text in texts:
        kind, sign, amount = text.partition("=")
        if not kind or not sign or not amount:
            raise UsageError(f"{option}: expected TYPE=AMOUNT, such as vcore=2, got '{text}'")
        found[kind] = _drawn(option, amount)
    return found


def _entry(fields: Mapping[str, Any]) -> Iterator[str]:
    written = [f"{key}: {_flow(value)}" for key, value in fields.items() if value != ""]
    yield f"  - {written[0]}"
    yield from (f"    {line}" for line in written[1:])


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return value if _PLAIN.match(value) else json.dumps(value)
