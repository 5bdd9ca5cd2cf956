"""Recognition of workloads in formats that are not read, with the way to bring them in.

Most of them are graphs of tasks: workflows, and jobs whose tasks wait for each other. Scenarios can express
these.
"""

from __future__ import annotations

import re

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
