"""The benchmarks run, place every task and print results; their speed is not tested here."""

from __future__ import annotations

import itertools
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

CHECKOUT = Path(__file__).parent.parent
if str(CHECKOUT) not in sys.path:
    # The benchmarks live in the checkout only; their path comes after all installed packages.
    sys.path.append(str(CHECKOUT))

from benchmarks.cases import CASES, LONG, Case, find  # noqa: E402
from benchmarks.command import main  # noqa: E402
from benchmarks.configuration import leaf_names  # noqa: E402
from benchmarks.failure import BenchmarkFailure  # noqa: E402
from benchmarks.growth import NODE_SORTS, STEPS, Step, table  # noqa: E402
from benchmarks.growth_plot import draw  # noqa: E402
from benchmarks.machine import python_build  # noqa: E402
from benchmarks.measurement import COLUMNS, Measurement, readable, table_head, table_line  # noqa: E402
from benchmarks.quantiles import quantile  # noqa: E402
from benchmarks.workload import Workload  # noqa: E402

NAMES = {
    "U-fair", "U-bin", "U-apps", "M-fair", "M-bin", "L-fair", "L-bin", "M-mixed", "L-mixed", "E-events",
    "O-own", "A-aware", "A-classes", "P-books", "P-predicates", "T-stranded", "B-backlog", "C-churn",
    "G-gang", "K-predicates", "X-preempt", "R-recover", "Q-reload", "I-idle", "W-wire", "S-rest", "S-start",
    "V-virtual",
}  # fmt: skip


def small(case: Case) -> Case:
    """Return the same case with minimal work."""
    load = case.workload
    return attrs.evolve(
        case,
        workload=attrs.evolve(
            load,
            nodes=40,
            tasks=400,
            queues=min(load.queues, 6),
            applications=min(load.applications, 12),
            sizes=min(load.sizes, 5),
            idle_rms=min(load.idle_rms, 5),
            samples=20 if case.name != "S-start" else 1,
        ),
    )


def test_all_cases_exist() -> None:
    assert {case.name for case in CASES} == NAMES
    titles = [case.title for case in (*CASES, *LONG)]
    assert len(titles) == len(set(titles))


def test_a_run_of_all_cases_leaves_out_the_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(case: Case, *_: object) -> Measurement:
        ran.append(case.title)
        return Measurement(case.name, case.variant, {}, {case.counts: 1.0}, 1.0, 1.0)

    monkeypatch.setattr("benchmarks.command.run_in_new_process", run)
    CliRunner().invoke(main, [], catch_exceptions=False)

    assert ran == [case.title for case in CASES]
    CliRunner().invoke(main, ["--case", LONG[0].title], catch_exceptions=False)
    assert ran[-1] == LONG[0].title


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("'--enable-optimizations' '--with-lto'", "PGO and LTO"),
        ("'--enable-optimizations' '--with-lto=no'", "PGO"),
        ("'--prefix=/usr' '--enable-shared'", "no optimisation recorded"),
        (None, "build unknown"),
    ],
)
def test_figures_name_the_python_and_its_build(
    options: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_config_var", {"CONFIG_ARGS": options}.get)

    assert python_build() == f"{platform.python_implementation()} {platform.python_version()}, {text}"


def test_title_selects_one_case() -> None:
    """The new process of a case is started with its title."""
    assert [case.title for case in (*CASES, *LONG) if find(case.title) != [case]] == []


@pytest.mark.parametrize("case", [*CASES, *LONG], ids=lambda case: case.title)
def test_every_small_case_decides_correctly(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.machine.TURNS", 1_000)
    found = small(case).run()

    assert found.figures
    assert all(value > 0 for value in found.figures.values())
    assert case.counts in found.figures
    assert found.yardstick > 0
    assert Measurement.from_json(found.to_json()).title == case.title


def test_a_wrong_result_is_a_failure() -> None:
    load = Workload(nodes=2, tasks=4)
    everything = {f"t{task}": ("u", "n00000") for task in range(4)}
    spread = {f"t{task}": ("u", f"n{task % 2:05}") for task in range(4)}

    load.verify(spread)
    with pytest.raises(BenchmarkFailure, match="1 of 4 tasks got no place"):
        load.verify({key: place for key, place in spread.items() if key != "t3"})
    with pytest.raises(BenchmarkFailure, match="node n00000 was given"):
        load.verify(everything)


def test_workload_has_the_described_dimensions() -> None:
    one = Workload(nodes=500, tasks=10_000)
    many = Workload(nodes=10, tasks=7, sizes=3)

    assert one.capacity == {"memory": 210, "vcore": 21}
    assert many.asked == [
        {"memory": 10, "vcore": 3},
        {"memory": 20, "vcore": 2},
        {"memory": 30, "vcore": 1},
    ]
    assert many.demand == {"memory": 30 + 40 + 60, "vcore": 9 + 4 + 2}
    assert many.capacity == {"memory": int(1.25 * 130 / 10) + 60, "vcore": int(1.25 * 15 / 10) + 6}
    assert leaf_names(5) == ["root.p0.q0", "root.p1.q1", "root.p2.q2", "root.p0.q3", "root.p1.q4"]


def test_name_selects_all_its_variants() -> None:
    assert [case.variant for case in find("U-bin")] == ["500", "1000", "2000", "5000"]
    assert [case.title for case in find("U-bin/500")] == ["U-bin/500"]
    assert find("nobody") == []


def test_quantiles_are_of_the_nearest_rank() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(value) for value in range(1, 101)], 0.99) == 99.0
    assert quantile([5.0], 0.0) == 5.0


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("tasks_per_s", 48_000.4, "48,000 tasks/s"),
        ("idle_s", 1.47e-6, "idle 1.47 µs"),
        ("release_p50_s", 0.0025, "release p50 2.5 ms"),
        ("load_s", 2.0, "load 2 s"),
        ("idle_s", 0.5e-6, "idle 0.5 µs"),
    ],
)
def test_figures_are_formatted_readably(name: str, value: float, text: str) -> None:
    assert readable(name, value) == text


def test_lines_of_the_table_are_equally_long() -> None:
    found = Measurement("U-fair", "500", {"nodes": 500}, {"tasks_per_s": 1.0}, 40.0, 2.5)
    lines = [*table_head(), table_line(found.cells())]

    assert len({len(line) for line in lines}) == 1
    assert lines[0].count("|") == len(COLUMNS) + 1


def steps() -> list[Step]:
    """Return the steps that --growth could find."""
    return [
        Step(axis, value, node_sort, 1e-5 * number, 1.5e-5 * number, 50.0, 2.5)
        for axis in ("nodes", "tasks", "queues")
        for node_sort in NODE_SORTS
        for number, value in enumerate((1_000, 2_000, 4_000), start=1)
    ]


def test_growth_doubles_from_step_to_step() -> None:
    for values in STEPS.values():
        assert all(after == 2 * before for before, after in itertools.pairwise(values))
    assert {STEPS["nodes"][0], STEPS["nodes"][-1]} == {1_000, 16_000}


def test_the_table_of_growth_compares_with_half_the_size() -> None:
    head, *lines = table(steps())

    assert len({len(line) for line in (head, *lines)}) == 1
    assert [line.split()[4] for line in lines[:3]] == ["15.0", "2.00", "1.50"]
    assert lines[3].split()[:3] == ["nodes", "1,000", "binpacking"]
    assert "2.00" not in lines[3]


def test_growth_is_plotted(tmp_path: Path) -> None:
    file = tmp_path / "images" / "growth.png"

    draw(steps(), file, "a machine")

    assert file.read_bytes().startswith(b"\x89PNG")


Run = Callable[..., subprocess.CompletedProcess[str]]


def test_command_runs_a_case_in_a_new_process(run_python: Run) -> None:
    done = run_python(
        "-m", "benchmarks", "--json", "--case", "M-bin", "--nodes", "20", "--tasks", "100", cwd=CHECKOUT
    )

    assert done.returncode == 0, done.stderr
    entry = json.loads(done.stdout)
    assert (entry["case"], entry["nodes"], entry["tasks"]) == ("M-bin", 20, 100)
    assert entry["tasks_per_s"] > 0
    assert entry["peak_mb"] > 0
    assert entry["yardstick"] > 0
    assert entry["python"] == python_build()


def test_options_define_a_custom_benchmark(run_python: Run) -> None:
    options = ["--nodes", "20", "--tasks", "100", "--sizes", "3", "--app-sort", "fair"]
    done = run_python("-m", "benchmarks", "--here", *options, cwd=CHECKOUT)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(python_build())
    assert "tasks/s" in done.stdout
    assert "fair / fair" in done.stdout


@pytest.mark.parametrize(
    ("title", "one", "other"),
    [
        ("U-fair/500", {"tasks_per_s": 9.0, "cpu_s": 2.0}, {"tasks_per_s": 8.0, "cpu_s": 1.0}),
        ("B-backlog/scraps", {"idle_s": 2.0, "release_p50_s": 1.0}, {"idle_s": 1.0, "release_p50_s": 2.0}),
        ("C-churn", {"tasks_per_s": 8.0, "decision_p99_s": 1.0}, {"tasks_per_s": 9.0, "decision_p99_s": 2.0}),
        ("Q-reload", {"load_s": 2.0, "reload_s": 1.0}, {"load_s": 1.0, "reload_s": 2.0}),
        ("S-start", {"validate_s": 2.0, "help_s": 1.0}, {"validate_s": 1.0, "help_s": 2.0}),
    ],
)
@pytest.mark.parametrize("best_first", [True, False])
def test_best_of_multiple_runs_is_kept_by_the_main_figure(
    title: str,
    one: dict[str, float],
    other: dict[str, float],
    best_first: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = iter([one, other] if best_first else [other, one])

    def run(case: Case, *_: object) -> Measurement:
        return Measurement(case.name, case.variant, {}, next(runs), 1.0, 1.0)

    monkeypatch.setattr("benchmarks.command.run_in_new_process", run)
    done = CliRunner().invoke(main, ["--json", "--repeat", "2", "--case", title], catch_exceptions=False)

    assert one.items() <= json.loads(done.stdout).items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "Z-zero"], "no case is called 'Z-zero'; known: U-fair"),
        (["--here", "--nodes", "5", "--node-sort", "binpack"], "binpacking"),
        (["--nodes", "0"], "'--nodes'"),
    ],
)
def test_invalid_calls_are_reported(run_python: Run, arguments: list[str], message: str) -> None:
    done = run_python("-m", "benchmarks", *arguments, cwd=CHECKOUT)

    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_case_runs_with_the_keys_of_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "partitions: [{name: other, nodesortpolicy: {type: most-free}, predicates: [any-rack],"
        " queues: [{name: root, properties: {application.sort.policy: least-held}, queues: [{name: x}]}]}]\n"
        "events: {sinks: [ignoring]}\n",
        "utf-8",
    )
    load = attrs.evolve(small(find("U-apps")[0]).workload, config=str(path), plugins=True)
    (partition,) = json.loads(load.configuration())["partitions"]
    assert partition["nodesortpolicy"] == {"type": "most-free"}
    assert partition["queues"][0]["properties"]["application.sort.policy"] == "least-held"
    assert partition["queues"][0]["queues"][0]["name"] == "p0"
    assert find("U-apps")[0].measure(load)["tasks_per_s"] > 0
    path.write_text("queues: []", "utf-8")
    with pytest.raises(BenchmarkFailure, match=r"is no queues\.yaml: it has no partitions"):
        load.configuration()
