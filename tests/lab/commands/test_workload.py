"""`yunikorn workload`: named distributions on the command line, a scenario on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn_lab.commands.workload import remark_lines
from yunikorn_lab.simulation.arrivals import Arrivals
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication

CONFIG = 'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: [{name: default}]}]}]\n'


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> object:
    """Run the command, and return the workload it wrote."""

    def run(*arguments: str) -> Workload:
        assert main(["workload", *arguments]) == 0
        path = tmp_path / "made.yaml"
        out, err = capsys.readouterr()
        assert err == ""
        path.write_text(out, "utf-8")
        return read_workload(path)

    return run


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the message of a refused call; assert that no output is written."""
    assert main(["workload", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_default_workload(made: object) -> None:
    assert callable(made)
    workload = made()
    assert (len(workload.applications), len(workload.nodes)) == (1000, 10)
    assert {app.queue for app in workload.applications} == {"root.default"}
    assert workload.nodes[0].resources == {"vcore": 16000, "memory": 64 * 2**30}


def test_every_option_changes_the_workload(made: object) -> None:
    assert callable(made)
    workload = made(
        *("--applications", "40", "--arrivals", "weibull,scale=1m,shape=0.5", "--seed", "3"),
        *("--tasks", "choice,1=5,4=3", "--size", "vcore=uniform,low=1,high=3,step=1", "--size", "memory=1Gi"),
        *(
            "--size",
            "gpu=choice,0,1",
            "--runtime",
            "constant,value=90",
            "--queue",
            "choice,root.a=2,root.b=1",
        ),
        *("--user", "zipf,names=user,count=4", "--gang", "Atomic", "--nodes", "3", "--node-size", "vcore=64"),
    )
    apps = list(workload.applications)
    tasks = [app.tasks[0] for app in apps]
    assert len(apps) == 40
    assert {group.count for group in tasks} == {1, 4}
    assert {group.resources["vcore"] for group in tasks} == {1000, 2000, 3000}
    assert {group.resources["gpu"] for group in tasks} == {0, 1}
    assert {group.runtime for group in tasks} == {90 * 10**9}
    assert {app.queue for app in apps} == {"root.a", "root.b"}
    assert {app.user for app in apps} <= {"user-1", "user-2", "user-3", "user-4"}
    assert {app.gang for app in apps} == {"Atomic"}
    assert [node.name for node in workload.nodes] == ["node-1", "node-2", "node-3"]
    assert workload.nodes[0].resources == {"vcore": 64000}


def test_output_depends_on_options_and_seed_only(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["workload", "--applications", "9", "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_printed_description_reproduces_the_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--during", "2h", "--arrivals", "daily,every=1m,peak=1h,swing=0.5", "--seed", "5"]
    assert main(["workload", *options, "--short"]) == 0
    short = tmp_path / "short.yaml"
    short.write_text(capsys.readouterr().out, "utf-8")
    assert main(["workload", *options]) == 0
    long = tmp_path / "long.yaml"
    long.write_text(capsys.readouterr().out, "utf-8")
    assert len(short.read_text("utf-8")) < 600
    assert list(read_workload(short).applications) == list(read_workload(long).applications)
    assert main(["workload", str(short), "--out", str(tmp_path / "again.yaml")]) == 0
    assert read_workload(tmp_path / "again.yaml").nodes == read_workload(short).nodes
    assert list(read_workload(tmp_path / "again.yaml").applications) == list(read_workload(long).applications)
    assert main(["workload", str(short), "--seed", "6", "--out", str(tmp_path / "other.yaml")]) == 0
    assert list(read_workload(tmp_path / "other.yaml").applications) != list(read_workload(long).applications)
    names = ["again.yaml", "long.yaml", "other.yaml", "short.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_generated_workload_can_be_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    path = tmp_path / "workload.yaml"
    assert main(["workload", "--applications", "20", "--short", "--out", str(path)]) == 0
    call = ["simulate", "--config", str(tmp_path / "queues.yaml"), "--workload", str(path), "--json"]
    assert main(call) == 0
    first = capsys.readouterr().out
    assert '"finished": 20' in first
    assert main([*call, "--seed", "0"]) == 0
    assert capsys.readouterr().out == first
    assert main([*call, "--seed", "1"]) == 0
    assert capsys.readouterr().out != first


@pytest.mark.parametrize("delay", ["90s", "lognormal,median=20s,sigma=1,max=5m", "choice,5s=1,1m=2"])
def test_start_up_times_are_part_of_a_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], delay: str
) -> None:
    (tmp_path / "queues.yaml").write_text(CONFIG, "utf-8")
    options = ["workload", "--applications", "5", "--seed", "3"]
    for name, more in {
        "without": ["--short"],
        "short": ["--startup-delay", delay, "--short"],
        "long": ["--startup-delay", delay],
    }.items():
        assert main([*options, *more, "--out", str(tmp_path / f"{name}.yaml")]) == 0

    def startup(name: str, *more: str) -> object:
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / f"{name}.yaml")]
        assert main(["simulate", *files, "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)["startup"]

    assert startup("without") is None
    assert startup("short") is not None
    assert startup("short") == startup("long") == startup("without", "--startup-delay", delay, "--seed", "3")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--startup-delay", "soon"), "--startup-delay: expected seconds or a duration such as 90, 30s"),
        (("--startup-delay", "lognormal,median=20s"), "--startup-delay: sigma: required, but missing"),
        (("--applications", "-3"), "--applications: expected a whole number from 1 to 10000000, got '-3'"),
        (("--runtime", "lognormal,median=x"), "--runtime: median: expected seconds or a duration"),
        (("--runtime", "lognormal,median=1m"), "--runtime: sigma: required, but missing"),
        (
            ("--runtime", "lognormel,median=1m"),
            "--runtime: no distribution is called 'lognormel'; known:",
        ),
        (("--runtime", "lognormal,median"), "--runtime: expected median=VALUE, got 'median'"),
        (
            ("--runtime", "long"),
            "--runtime: expected seconds or a duration such as 90, 30s, 1h30m or 1d, got 'long'",
        ),
        (
            ("--arrivals", "poison,every=1"),
            "--arrivals: process: unknown process 'poison', did you mean 'poisson'?",
        ),
        (("--size", "vcore"), "--size: expected TYPE=AMOUNT, such as vcore=2, got 'vcore'"),
        (("--node-size", "memory=1Zi"), "--node-size: memory: unknown suffix 'Zi'"),
        (("--tasks", "choice,x=1"), "--tasks: values: expected a number"),
        (("--gang", "Loose"), "--gang: expected"),
        (("--applications", "0"), "--applications: expected a whole number from 1"),
        (("--nodes", "0"), "--nodes: expected a whole number from 1"),
        (("--during", "soon"), "--during: expected seconds or a duration"),
        (("--during", "1h", "--arrivals", "regular,every=0"), "arrivals without a time between them need a"),
    ],
)
def test_errors_name_the_option(
    arguments: tuple[str, ...], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reported in refused(capsys, *arguments)


def test_description_excludes_most_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.yaml"
    path.write_text("nodes: [{name: n, resources: {vcore: 1}}]\n", "utf-8")
    assert "--node-size cannot be used with a description" in refused(
        capsys, str(path), "--node-size", "vcore=1"
    )
    assert "contains no applications" in refused(capsys, str(path))
    assert "cannot be read: No such file" in refused(capsys, str(tmp_path / "missing.yaml"))


def test_unwritable_file_is_reported_and_leaves_no_partial_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "missing" / "workload.yaml"
    assert f"cannot write {target}: No such file or directory" in refused(capsys, "--out", str(target))
    assert list(tmp_path.iterdir()) == []


class _Uncounted(Arrivals):
    """Applications of which only the number is known."""

    def __len__(self) -> int:
        return 5_000_000

    def __iter__(self) -> Iterator[WorkloadApplication]:
        raise AssertionError("the applications are not needed for their number")


def test_a_large_workload_says_what_it_takes_before_it_is_surveyed() -> None:
    workload = Workload("large", "scenario", [], _Uncounted())
    assert next(remark_lines(workload)) == (
        "note: 5,000,000 applications: a simulation takes about 50m 0s of processor time and 858 MiB of "
        "memory, more with several tasks each, or if many wait; --until ends it early"
    )
