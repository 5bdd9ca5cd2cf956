"""Recognition of files that are not what a command expects, with the way out.

They are configurations where a workload is expected, the other way round, and workloads in formats that are
not read.
"""

from __future__ import annotations

import re

from yunikorn.errors import UsageError
from yunikorn.simulation.input_source import InputError

LOOKED_AT = 1 << 16
"""Number of characters at the beginning of a text that are looked at."""
_CONFIG = re.compile(r"^[\"'{ ]{0,4}partitions[\"']?\s*:", re.MULTILINE)
_WORKLOAD = re.compile(r"^(?:[\"'{ ]{0,4}(?:applications|generate|nodes)[\"']?\s*:|;)", re.MULTILINE)
NOT_A_CONFIG = "is a workload, not a queues.yaml"
ADVICE = "were --config and --workload swapped?"


def is_config(text: str) -> bool:
    """Return True if a text looks like a queues.yaml, and not like a workload."""
    start = text[:LOOKED_AT]
    return bool(_CONFIG.search(start)) and not _WORKLOAD.search(start)


def is_workload(text: str) -> bool:
    """Return True if a text looks like a scenario or a trace, and not like a queues.yaml."""
    start = text[:LOOKED_AT]
    return bool(_WORKLOAD.search(start)) and not _CONFIG.search(start)


def check_config_text(text: str, name: str) -> None:
    """Raise `UsageError` if a text that should be a queues.yaml is a workload."""
    if is_workload(text):
        raise UsageError(f"{name}: {NOT_A_CONFIG}: {ADVICE}")


def explained(error: InputError, text: str, name: str, *, has_config: bool = True) -> InputError | UsageError:
    """Return a better error for a workload that is a queues.yaml or in a format that is not read.

    Other errors stay as they are. `has_config` says that the command reads a queues.yaml, too.
    """
    if is_config(text):
        return UsageError(f"{name}: is a queues.yaml, not a workload{f': {ADVICE}' if has_config else ''}")
    foreign = foreign_format(text[:LOOKED_AT])
    return UsageError(f"{name}: {describe_foreign(foreign)}") if foreign else error


# -- formats that are not read ---------------------------------------------------------------------------
# Most of them are graphs of tasks: workflows, and jobs whose tasks wait for each other. Scenarios can express
# these.

STATES = "Terminated|Failed|Running|Waiting|Ready|Interrupted|Cancelled"
_FORMATS = (
    (
        "a list of batch tasks of the Alibaba cluster trace 2018",
        re.compile(
            rf"\A(?:task_name,instance_num,job_name|[^,\n]*,\d*,j_\d+,[^,\n]*,(?:{STATES}),)", re.IGNORECASE
        ),
    ),
    (
        "a list of task instances of the Alibaba cluster trace 2018",
        re.compile(rf"\A(?:instance_name,task_name,job_name|[^,\n]*,[^,\n]*,j_\d+,[^,\n]*,(?:{STATES}),)"),
    ),
    ("a workflow of WfCommons", re.compile(r"\A\s*\{.*[\"']workflow[\"']\s*:", re.DOTALL)),
    ("a workflow of Pegasus (DAX)", re.compile(r"\A\s*<.*<adag\b", re.DOTALL)),
    ("a workflow of Pegasus", re.compile(r"^(?:x-pegasus|jobDependencies|pegasus)\s*:", re.MULTILINE)),
    ("a graph of Graphviz (DOT)", re.compile(r"\A\s*(?:strict\s+)?digraph\b")),
    ("a workflow of Argo", re.compile(r"^kind\s*:\s*[\"']?(?:Cron)?Workflow\b", re.MULTILINE)),
)


def foreign_format(text: str) -> str:
    """Return the name of the format of the beginning of a file, or an empty text if it is not known."""
    start = text.removeprefix("\ufeff")
    return next((name for name, pattern in _FORMATS if pattern.search(start)), "")


def describe_foreign(name: str) -> str:
    """Return what to do with a file in this format."""
    return (
        f"is {name}, a format that is not read: write its tasks as applications of a scenario, with `after` "
        "for their predecessors (docs/workloads.md#dependencies), or as jobs of a trace with preceding jobs "
        "(column 17)"
    )
