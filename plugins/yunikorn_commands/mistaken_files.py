"""Recognition of files that are not what a command expects, with the way out.

They are configurations where a workload is expected, the other way round, files of other kinds such as state
dumps and recordings, and workloads in formats that are not read.
"""

from __future__ import annotations

import re
import zlib

import attrs

from yunikorn.errors import UsageError
from yunikorn_commands.input_files import GZIP
from yunikorn_commands.input_source import InputError
from yunikorn_commands.workload_formats import NODE_COLUMNS, POD_COLUMNS, is_batsim, is_slurm

LOOKED_AT = 1 << 16
"""Number of characters at the beginning of a text that are looked at."""
_CONFIG = re.compile(r"^[\"'{ ]{0,4}partitions[\"']?\s*:", re.MULTILINE)
_WORKLOAD = re.compile(r"^(?:[\"'{ ]{0,4}(?:applications|generate|nodes)[\"']?\s*:|;)", re.MULTILINE)
QUEUES_YAML = "a queues.yaml"
ADVICE = "were --config and --workload swapped?"


def is_config(text: str) -> bool:
    """Return True if a text looks like a queues.yaml, and not like a workload."""
    start = text[:LOOKED_AT]
    return bool(_CONFIG.search(start)) and not _WORKLOAD.search(start)


def is_workload(text: str) -> bool:
    """Return True if a text looks like a scenario or a trace, and not like a queues.yaml."""
    start = text[:LOOKED_AT]
    if _CONFIG.search(start):
        return False
    content = start.encode("utf-8", "replace")
    return bool(_WORKLOAD.search(start)) or is_batsim(content) or is_slurm(content)


def not_a_config(content: bytes) -> str:
    """Return the kind of a file where a queues.yaml is expected, with what to do; empty if it may be one."""
    is_packed = content.startswith(GZIP)
    text = (_unpacked_start(content) if is_packed else content).decode("utf-8-sig", "replace")
    known = other_kind(text, QUEUES_YAML)
    if known:
        return known
    if is_workload(text):
        return f"is a workload, not {QUEUES_YAML}: {ADVICE}"
    return "is compressed with gzip, and a configuration is read uncompressed: unpack it" if is_packed else ""


def explained(error: InputError, text: str, name: str, *, has_config: bool = True) -> InputError | UsageError:
    """Return a better error for a workload that is a file of another kind or in a format that is not read.

    Other errors stay as they are. `has_config` says that the command reads a queues.yaml, too.
    """
    foreign = foreign_format(text[:LOOKED_AT])
    if foreign:
        return UsageError(f"{name}: {describe_foreign(foreign)}")
    known = other_kind(text, "a workload")
    if known:
        return UsageError(f"{name}: {known}")
    if is_config(text):
        return UsageError(f"{name}: is {QUEUES_YAML}, not a workload{f': {ADVICE}' if has_config else ''}")
    known = _manifest(text[:LOOKED_AT]) or _list_of_nodes(text) or _unknown_list(text, "a workload")
    return UsageError(f"{name}: {known}") if known else error


def explained_nodes(error: InputError, text: str) -> InputError | UsageError:
    """Return a better error for a file of nodes that is a file of another kind."""
    known = other_kind(text, "a list of nodes")
    return UsageError(f"{error.file}: {known}") if known else error


def _unpacked_start(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(content, LOOKED_AT)
    except zlib.error:
        return b""


# -- files that are neither a workload nor a configuration ------------------------------------------------


@attrs.frozen
class _Kind:
    """Kind of files that are neither a workload nor a configuration."""

    name: str
    pattern: re.Pattern[str]
    instead: str
    """Advice where a workload or nodes are expected."""
    instead_of_config: str
    """Advice where a queues.yaml is expected."""


FORMATS_PAGE = "docs/workloads.md lists the formats that are read"
_REPLAY = "`yunikorn replay FILE` runs it again"
_KINDS = (
    _Kind(
        "a state dump of a scheduler",
        re.compile(
            r"\A\s*\{\s*\"timestamp\"\s*:\s*\d+\s*,\s*\"partitions\""
            r"|\A\s*\{(?=.*\"(?:clusterInfo|rmDiagnostics|containerHistory|appHistory)\"\s*:)",
            re.DOTALL,
        ),
        "it has the state of one moment, without arrivals and run times; record calls with "
        "`yunikorn serve --record FILE`, and run them again with `yunikorn replay FILE`",
        "GET /ws/v1/config of that scheduler answers with its configuration",
    ),
    _Kind(
        "a recording of a scheduler's calls",
        re.compile(r"\A\s*\{\s*\"at\"\s*:\s*\d+\s*,[^\n]{0,200}\"recording\"\s*:"),
        _REPLAY,
        f"{_REPLAY}, under another configuration with --config",
    ),
    _Kind(
        "a platform of SimGrid or Batsim (XML)",
        re.compile(r"\A\s*<.*<platform\b|\A\s*<platform\b", re.DOTALL),
        "give the jobs (JSON) with --workload, and the nodes as `nodes` of a YAML file with --nodes "
        "(docs/workloads.md)",
        "a configuration has queues, and the nodes belong to the workload (docs/workloads.md)",
    ),
    _Kind("an XML or HTML file", re.compile(r"\A\s*<(?:[?!]|html\b)", re.IGNORECASE), FORMATS_PAGE, ""),
)
_SEPARATORS = ",;\t|"
_COLUMN = re.compile(r"\"?[A-Za-z_][\w .()/%#-]*\"?")
SHOWN_COLUMNS = 12
"""Maximum number of columns of an unknown list that a message names."""


def other_kind(text: str, expected: str) -> str:
    """Return the kind of a file that is neither a workload nor a configuration, and what to do; or nothing.

    `expected` says what the file should be.
    """
    start = text[:LOOKED_AT].removeprefix("\ufeff")
    is_expected_config = expected == QUEUES_YAML
    for kind in _KINDS:
        if kind.pattern.search(start):
            advice = kind.instead_of_config if is_expected_config else kind.instead
            return f"is {kind.name}, not {expected}{f': {advice}' if advice else ''}"
    return _unknown_list(text, expected) if is_expected_config and not is_workload(text) else ""


def _manifest(start: str) -> str:
    """Describe a manifest of Kubernetes, or a list of objects as kubectl prints it."""
    if not re.search(r"^[\"'{ -]{0,4}apiVersion[\"']?\s*:", start, re.MULTILINE):
        return ""
    kind = re.search(r"[\"' ]?\bkind[\"']?\s*:\s*[\"']?(\w+)", start)
    named = f" ({kind[1]})" if kind else ""
    return (
        f"is a manifest of Kubernetes{named}, not a workload: write what the pods ask for as applications of "
        "a scenario (docs/workloads.md)"
    )


def _list_of_nodes(text: str) -> str:
    if set(NODE_COLUMNS) <= set(_columns(text)):
        return (
            "is a list of nodes, not a workload: give it with --nodes, and the list of pods with --workload"
        )
    return ""


def _unknown_list(text: str, expected: str) -> str:
    """Describe a list with unknown columns."""
    columns = _columns(text)
    if not columns or set(POD_COLUMNS) <= set(columns) or "JobID" in columns:
        return ""
    named = ", ".join(columns[:SHOWN_COLUMNS])
    more = f" and {len(columns) - SHOWN_COLUMNS} more" if len(columns) > SHOWN_COLUMNS else ""
    advice = (
        ""
        if expected == QUEUES_YAML
        else f"; lists of pods need {', '.join(POD_COLUMNS)}, lists of Slurm JobID, and {FORMATS_PAGE}"
    )
    return f"is a list (CSV) with the columns {named}{more}, not {expected}{advice}"


def _columns(text: str) -> list[str]:
    """Return the columns of a list with a header; none if the text is not such a list."""
    lines = text[:LOOKED_AT].removeprefix("\ufeff").splitlines()[:2]
    separator = max(_SEPARATORS, key=lines[0].count) if lines else ","
    if not lines or not lines[0].count(separator) or any(one[:1] == ";" for one in lines):
        return []
    if len(lines) > 1 and lines[1].count(separator) != lines[0].count(separator):
        return []
    names = [name.strip() for name in lines[0].rstrip(separator).split(separator)]
    return [name.strip('"') for name in names] if all(map(_COLUMN.fullmatch, names)) else []


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
