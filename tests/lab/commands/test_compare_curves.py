"""Curves of `yunikorn compare`: figures over the numbers of a setting, with their range over the seeds."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.cli.main import main

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch}
          - {name: web}
"""
# One task after the other: the wait is proportional to the cores that the queue may use.
LISTED = """
nodes: [{name: n, count: 8, resources: {vcore: 1, memory: 4Gi}}]
applications:
  - {id: b, count: 8, queue: root.batch, tasks: [{resources: {vcore: 1, memory: 1Gi}, runtime: 60}]}
"""
DRAWN = """
nodes: [{name: n, count: 8, resources: {vcore: 1, memory: 4Gi}}]
generate:
  - {id: b, count: 12, arrivals: {process: poisson, every: 30s}, queue: root.batch,
     tasks: [{resources: {vcore: 1, memory: 1Gi}, runtime: {distribution: exponential, mean: 2m}}]}
"""
LIMIT = "root.batch.resources.max.vcore"
WAIT = "wait, first task, mean"

Call = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `yunikorn compare` in this process; return its JSON, and standard error."""

    def run(*arguments: str, workload: str = LISTED, config: str = CONFIG) -> Any:
        (tmp_path / "queues.yaml").write_text(config, "utf-8")
        (tmp_path / "workload.yaml").write_text(workload, "utf-8")
        files = ["--config", str(tmp_path / "queues.yaml"), "--workload", str(tmp_path / "workload.yaml")]
        status = main(["compare", *files, "--jobs", "1", "--json", *arguments])
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out), err

    return run


def bands(curve: Any, section: str, name: str) -> list[Any]:
    """Return the bands of one figure of a curve in JSON."""
    (found,) = [one for one in curve["figures"] if (one["section"], one["name"]) == (section, name)]
    return list(found["bands"])


def test_amounts_make_a_curve_in_their_order(call: Call) -> None:
    found, _ = call("--set", f"{LIMIT}=4,500m,8,2")
    (curve,) = found["curves"]
    assert (curve["setting"], curve["rest"], curve["kind"]) == (LIMIT, "", "amount")
    assert curve["values"] == ["500m", "2", "4", "8"]
    assert curve["numbers"] == [500, 2000, 4000, 8000]
    waits = bands(curve, "root.batch", WAIT)
    assert waits[0] is None  # half a core starts nothing
    # 8 tasks of a minute, so many at a time: in waves of 2, 4 and 8.
    assert [one["mean"] for one in waits[1:]] == [90, 30, 0]
    assert [(one["low"], one["high"], one["runs"]) for one in waits[1:]] == [
        (90, 90, 1),
        (30, 30, 1),
        (0, 0, 1),
    ]
    assert [one["mean"] for one in bands(curve, "totals", "applications finished")] == [0, 8, 8, 8]


def test_the_band_is_the_range_over_the_seeds(call: Call) -> None:
    found, _ = call("--set", f"{LIMIT}=1,2,4", "--seeds", "1-3", workload=DRAWN)
    (curve,) = found["curves"]
    for number, band in enumerate(bands(curve, "applications", WAIT)):
        waits = [report["figures"]["wait"]["mean"] for report in found["reports"][number]]
        assert len(set(waits)) > 1
        assert band["low"] == pytest.approx(min(waits))
        assert band["high"] == pytest.approx(max(waits))
        assert band["mean"] == pytest.approx(sum(waits) / 3)
        assert band["runs"] == 3


def test_one_curve_for_each_combination_of_the_rest(call: Call) -> None:
    policy = "root.batch.properties.application.sort.policy"
    found, _ = call("--set", f"{policy}=fifo,fair", "--set", f"{LIMIT}=2,4,8")
    assert [(one["setting"], one["rest"]) for one in found["curves"]] == [
        (LIMIT, f"{policy}=fifo"),
        (LIMIT, f"{policy}=fair"),
    ]


@pytest.mark.parametrize(
    ("setting", "kind", "numbers"),
    [
        ("root.batch.properties.preemption.delay=5m,30s,1h", "duration", [30, 300, 3600]),
        ("root.batch.properties.priority.offset=10,-5,0", "number", [-5, 0, 10]),
        ("root.batch.resources.max.memory=4Gi,1Gi,512Mi", "amount", [2**29, 2**30, 2**32]),
    ],
)
def test_kinds_of_numbers(call: Call, setting: str, kind: str, numbers: list[float]) -> None:
    found, _ = call("--set", setting)
    (curve,) = found["curves"]
    assert (curve["kind"], curve["numbers"]) == (kind, numbers)


@pytest.mark.parametrize(
    "setting",
    [
        "root.batch.properties.application.sort.policy=fifo,fair,stateaware",
        f"{LIMIT}=2,4",
        f"{LIMIT}=2,2000m,4",
        "root.batch.resources.max={vcore: 2},{vcore: 3},{vcore: 4}",
    ],
)
def test_no_curve_of_words_or_of_two_numbers(call: Call, setting: str, tmp_path: Path) -> None:
    found, _ = call("--set", setting, "--out", str(tmp_path / "out"), "--no-plots")
    assert found["curves"] == []
    assert not (tmp_path / "out" / "curve.csv").exists()


def test_the_empty_value_is_named_beside_the_curve(call: Call, tmp_path: Path) -> None:
    found, _ = call("--set", "root.batch.maxapplications=,2,4,8", "--out", str(tmp_path / "out"))
    assert [one["values"] for one in found["curves"]] == [["2", "4", "8"]]
    page = (tmp_path / "out" / "compare.html").read_text("utf-8")
    assert "without the empty value, which is no number" in page


def test_curves_are_in_the_files(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    found, _ = call("--set", f"{LIMIT}=2,4,8", "--out", str(folder))
    with (folder / "curve.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["section"] == "root.batch"]
    assert [(row["value"], row["number"], float(row["mean"])) for row in rows] == [
        ("2", "2000", 90.0),
        ("4", "4000", 30.0),
        ("8", "8000", 0.0),
    ]
    assert json.loads((folder / "compare.json").read_text("utf-8"))["curves"] == found["curves"]
    assert (folder / "compare-curve-1.png").read_bytes().startswith(b"\x89PNG")
    assert f"Curve of {LIMIT}" in (folder / "compare.html").read_text("utf-8")
    # A later comparison without a curve removes it.
    call("--set", f"{LIMIT}=2,4", "--out", str(folder))
    assert not (folder / "curve.csv").exists()
    assert not (folder / "compare-curve-1.png").exists()
