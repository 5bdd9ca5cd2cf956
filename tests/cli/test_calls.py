"""Calls with mistakes: repeated options, options of other formats, swapped files; colours; completion."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rest.commands.operator_kit import Run
from yunikorn_commands.output import has_colours
from yunikorn_lab.reporting.terminal_output import report_console

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
CONFIG, WORKLOAD = str(QUICKSTART / "queues.yaml"), str(QUICKSTART / "workload.yaml")
FILES = ("--config", CONFIG, "--workload", WORKLOAD)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("simulate", *FILES, "--config", CONFIG), "--config"),
        (("simulate", *FILES, "--until", "1", "--until=2"), "--until"),
        (("place", "--config", CONFIG, "--user", "a", "--user", "b"), "--user"),
        (("get", "apps", "--server", "x", "--server", "y"), "--server"),
        (("plugins", "--kind", "sink", "--kind", "sink"), "--kind"),
        (("plugins", "new", "x", "--in", "a", "--in", "b"), "--in"),
    ],
)
def test_a_repeated_option_is_refused(run: Run, arguments: tuple[str, ...], named: str) -> None:
    for _ in range(2):  # commands are imported once, and checked in every call
        status, _, err = run(*arguments)
        assert (status, err.splitlines()[-1]) == (2, f"Error: {named} is given 2 times: give it once")


def test_options_with_several_values_and_flags_may_be_repeated(run: Run) -> None:
    tags = ("--tag", "a=1", "--tag", "b=2", "--group", "x", "--group", "y")
    status, _, err = run("place", "--config", CONFIG, "--user", "a", "--json", "--json", *tags)
    assert (status, err) == (1, "")


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_options_of_other_formats_are_refused(run: Run, command: str) -> None:
    more = ("--set", "partitions[0].nodesortpolicy.type=fair") if command == "compare" else ()
    status, out, err = run(
        command, *FILES, *more, "--swf-queue", "root.a", "--openb-gpus", "whole", "--strict"
    )
    assert (status, out) == (2, "")
    text = "--swf-queue, --openb-gpus, --strict apply to another format: "
    assert err == f"Error: {text}{WORKLOAD} is a workload of format scenario\n"


def test_options_of_the_format_are_accepted(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "t.swf"
    trace.write_text("; MaxProcs: 2\n1 0 0 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n")
    found = run(
        "simulate", "--config", CONFIG, "--workload", str(trace), "--swf-queue", "root.research", "--strict"
    )
    assert found[0] == 0
    status, _, err = run("simulate", "--config", CONFIG, "--workload", str(trace), "--openb-gpus", "whole")
    assert (status, "--openb-gpus applies to another format" in err) == (2, True)


def test_swapped_files_are_recognised(run: Run) -> None:
    status, _, err = run("simulate", "--config", WORKLOAD, "--workload", CONFIG)
    assert status == 2
    assert err == (
        f"Error: {WORKLOAD}: is a workload, not a queues.yaml: were --config and --workload swapped?\n"
        f"{CONFIG}: is a queues.yaml, not a workload: were --config and --workload swapped?\n"
    )


RECORDING = '{"at": 0, "recording": {"version": 1, "start": "1970-01-01T00:00:00Z", "yunikorn": "1"}}\n'
DUMP = '{"timestamp": 1, "partitions": [{"name": "default"}], "applications": [], "nodes": []}'
PLATFORM = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM 's.dtd'>\n<platform version='4.1'></platform>"
OTHER_KINDS = {
    "state.json": (DUMP, "state dump", "/ws/v1/config"),
    "indented.json": ('{\n  "nodes": [],\n  "clusterInfo": []\n}', "state dump", "/ws/v1/config"),
    "calls.jsonl": (RECORDING, "recording", "yunikorn replay"),
    "platform.xml": (PLATFORM, "platform of SimGrid or Batsim", "docs/workloads.md"),
    "page.html": ("<html><body>not found</body></html>", "HTML", ""),
    "unknown.csv": ("vm,start,stop\na,1,2\n", "vm, start, stop", ""),
}


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", OTHER_KINDS)
def test_files_of_another_kind_are_named(run: Run, tmp_path: Path, name: str, *, is_packed: bool) -> None:
    text, known_as, advice = OTHER_KINDS[name]
    path = tmp_path / (f"{name}.gz" if is_packed else name)
    path.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    for option, other, expected in (
        ("--workload", ("--config", CONFIG), "not a workload"),
        ("--config", ("--workload", WORKLOAD), "not a queues.yaml"),
    ):
        status, out, err = run("simulate", option, str(path), *other)
        assert (status, out) == (2, "")
        assert err.startswith(f"Error: {path}: is ")
        assert len(err.splitlines()) == 1
        assert known_as in err
        assert expected in err
    assert advice in err
    status, out, err = run("validate", str(path))
    assert (status, known_as in out + err) == (1, True)


def test_nodes_of_another_kind_and_lists_in_the_wrong_place_are_named(run: Run, tmp_path: Path) -> None:
    platform, nodes, pod = (tmp_path / name for name in ("platform.xml", "nodes.csv", "pod.yaml"))
    platform.write_text(PLATFORM, "utf-8")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,1000,1000,0,\n", "utf-8")
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "utf-8")
    for arguments, named in (
        ((*FILES, "--nodes", str(platform)), "is a platform"),
        (("--config", CONFIG, "--workload", str(nodes)), "give it with --nodes"),
        (("--config", CONFIG, "--workload", str(pod)), "is a manifest of Kubernetes (Pod), not a workload"),
    ):
        status, _, err = run("simulate", *arguments)
        assert (status, named in err) == (2, True)


@pytest.mark.parametrize("text", ['{"nb_res": 1, "jobs": [], "profiles": {}}', "JobID|State\n1|COMPLETED\n"])
def test_traces_are_recognised_where_a_configuration_is_expected(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text, "utf-8")
    status, _, err = run("simulate", "--config", str(path), "--workload", WORKLOAD)
    assert (status, "is a workload, not a queues.yaml" in err) == (2, True)


def test_a_packed_configuration_is_refused_as_such(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml.gz"
    path.write_bytes(gzip.compress(Path(CONFIG).read_bytes()))
    status, _, err = run("simulate", "--config", str(path), "--workload", WORKLOAD)
    assert (status, "compressed with gzip" in err) == (2, True)


FOREIGN = {
    "batch_task.csv": ("M1,1,j_1,1,Terminated,1,6,100,0.5\nR2_1,2,j_1,1,Terminated,6,9,100,0.5\n", "2018"),
    "with_header.csv": ("task_name,instance_num,job_name,task_type\nM1,1,j_1,1\n", "2018"),
    "instances.csv": ("ins_1,M1,j_1,1,Terminated,1,6,m_1,1,1,1,1,1,1\n", "task instances"),
    "wfcommons.json": ('{"name": "w", "workflow": {"tasks": [{"id": "a", "parents": []}]}}', "WfCommons"),
    "flow.dax": ('<?xml version="1.0"?>\n<adag name="w"><job id="a" runtime="1"/></adag>', "DAX"),
    "flow.yml": ('pegasus: "5.0"\njobs: []\njobDependencies: [{id: a, children: [b]}]\n', "Pegasus"),
    "graph.dot": ("digraph w { a -> b }", "DOT"),
    "argo.yaml": ("apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n", "Argo"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_graphs_of_tasks_in_other_formats_say_what_to_do(run: Run, tmp_path: Path, name: str) -> None:
    text, known_as = FOREIGN[name]
    path = tmp_path / name
    path.write_text(text, "utf-8")
    for command in (("simulate", "--config", CONFIG, "--workload", str(path)), ("workload", str(path))):
        status, out, err = run(*command)
        assert (status, out) == (2, "")
        assert err.startswith(f"Error: {path}: is ")
        assert known_as in err
        assert "with `after` for their predecessors" in err


def test_a_queues_yaml_is_no_description_of_a_workload(run: Run) -> None:
    status, _, err = run("workload", CONFIG)
    assert (status, err) == (2, f"Error: {CONFIG}: is a queues.yaml, not a workload\n")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("validate", WORKLOAD), 1),
        (("diff", CONFIG, WORKLOAD), 2),
        (("place", "--config", WORKLOAD, "--user", "ann"), 2),
    ],
)
def test_a_workload_is_not_read_as_a_queues_yaml(run: Run, command: tuple[str, ...], status: int) -> None:
    found, out, err = run(*command)
    assert found == status
    assert "is a workload, not a queues.yaml" in out + err
    assert "unknown key" not in out + err


def test_a_workload_that_is_rejected_whole_says_so_first(run: Run, tmp_path: Path) -> None:
    workload = tmp_path / "w.yaml"
    workload.write_text(
        "nodes: [{name: n, resources: {vcore: 1}}]\napplications:\n"
        "  - {id: a, queue: root.resaerch, tasks: [{resources: {vcore: 1}, runtime: 5}]}\n"
    )
    status, out, err = run("simulate", "--config", CONFIG, "--workload", str(workload))
    assert status == 0
    assert err.splitlines()[-1].startswith(
        "warning: the application was rejected: no placement rule matched (provided: queue root.resaerch"
        " does not exist (near: root.research), and the rule does not create it"
    )
    assert "near: root.research" in " ".join(out.split())


# -- colours ------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Output that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_the_environment_decides_on_colours(environment: dict[str, str], terminal: bool, pipe: bool) -> None:
    assert (has_colours(Terminal(), environment), has_colours(io.StringIO(), environment)) == (terminal, pipe)


def test_no_color_sends_no_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for value, escapes in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        stream = Terminal()
        report_console(80, stream).print("text", style="bold italic")
        assert ("\x1b[" in stream.getvalue()) == escapes


# -- completion ---------------------------------------------------------------------------------------

TRY = """
eval "$(yunikorn completion bash)"
eval "$(yunikorn completion bash)"
complete -p yunikorn
COMP_WORDS=(yunikorn val); COMP_CWORD=1
_yunikorn_completion yunikorn; echo "${COMPREPLY[@]}"
COMPREPLY=(); COMP_WORDS=(yunikorn simulate --fail-on ''); COMP_CWORD=3
_yunikorn_completion yunikorn; echo "${COMPREPLY[@]}"
"""


def in_shell(folder: Path, *call: str) -> list[str]:
    """Run a shell that finds `yunikorn`, in the folder of the examples; return its lines."""
    program = folder / "yunikorn"
    start = "import sys; from yunikorn.cli.main import main; sys.exit(main())"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{start}' \"$@\"\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        call, capture_output=True, text=True, cwd=QUICKSTART.parents[1], check=True, env=environment
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_after_loading_the_script_twice(tmp_path: Path) -> None:
    registered, commands, values = in_shell(tmp_path, "bash", "--norc", "-c", TRY)
    assert registered == "complete -o nosort -F _yunikorn_completion yunikorn"
    assert commands == "validate"
    assert values == "rejected waiting failed"


TRY_ZSH = """
eval "$(yunikorn completion zsh)"
eval "$(yunikorn completion zsh)"
print -r -- $_comps[yunikorn]
compadd() { shift $#; print -r -- $completions }
_describe() { print -r -- ${(P)4} }
words=(yunikorn simulate --fail-on ''); CURRENT=4
_yunikorn_completion
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_without_a_start_file(tmp_path: Path) -> None:
    # The line of the documentation is enough: the script turns the completion of zsh on.
    registered, values = in_shell(tmp_path, "zsh", "-f", "-c", TRY_ZSH)
    assert registered == "_yunikorn_completion"
    assert values == "rejected waiting failed"


TRY_FISH = """
yunikorn completion fish | source
yunikorn completion fish | source
complete -C "yunikorn val"
complete -C "yunikorn simulate --fail-on "
"""


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_after_loading_the_script_twice(tmp_path: Path) -> None:
    command, *values = in_shell(tmp_path, "fish", "--no-config", "-c", TRY_FISH)
    assert command.startswith("validate\t")
    assert sorted(values) == ["failed", "rejected", "waiting"]


@pytest.mark.parametrize(("shell", "part"), [("zsh", "#compdef yunikorn"), ("fish", "complete --no-files")])
def test_other_shells_have_their_scripts(run: Run, shell: str, part: str) -> None:
    status, out, err = run("completion", shell)
    assert (status, err) == (0, "")
    assert part in out
    assert f"_YUNIKORN_COMPLETE={shell}_complete" in out
    found = shutil.which(shell)
    if found is not None:
        subprocess.run([found, "-n"], input=out, text=True, check=True)


def test_unknown_shells_are_refused(run: Run) -> None:
    assert run("completion", "ksh")[0] == 2
