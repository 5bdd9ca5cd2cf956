"""Texts and tables of the commands for a running scheduler."""

from __future__ import annotations

import pytest

from tests.rest.commands.operator_kit import Run, answered, through
from tests.rest.kit import Rest
from tests.topology.racks import racks
from yunikorn.clock import SECOND
from yunikorn_commands.text_columns import TextColumn, laid_out, shortened
from yunikorn_rest.commands.answer_fields import age, amount_text, time_text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("vcore", 1500, "1.5"),
        ("vcore", -20, "-0.02"),
        ("vcore", 32000, "32"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 1 << 20, "1Mi"),
        ("memory", (1 << 30) - 1, "1Gi"),
        ("memory", 8388608000, "7.8Gi"),
        ("memory", (1 << 63) - 1, "8Ei"),
        ("gpu", 12345, "12345"),
    ],
)
def test_amounts_for_people(name: str, value: int, text: str) -> None:
    assert amount_text(name, value) == text


def test_ages_and_times() -> None:
    ages = [age(1, 1 + seconds * SECOND) for seconds in (0, 119, 120, 7199, 7200, 86400 * 2, 86400 * 400)]
    assert ages == ["0s", "119s", "2m", "119m", "2h0m", "2d", "400d"]
    assert age(0, SECOND) == "-"
    assert time_text(1_500_000_000) == "1970-01-01T00:00:01.500Z"
    assert time_text(10**40) == "-"


ROWS = [["root.analytics.team-one.nightly", "Running", "12", "vcore 1, memory 2Gi"]]
COLUMNS = [
    TextColumn("queue"),
    TextColumn("state"),
    TextColumn("tasks", right=True),
    TextColumn("pending", whole=True, optional=True),
]


def test_a_pipe_gets_full_texts() -> None:
    lines, left_out = laid_out(COLUMNS, ROWS, None)
    assert lines[1] == "root.analytics.team-one.nightly  Running     12  vcore 1, memory 2Gi"
    assert not left_out


@pytest.mark.parametrize("width", range(34, 90))
def test_a_table_fits_its_terminal(width: int) -> None:
    lines, left_out = laid_out(COLUMNS, ROWS, width)
    assert max(map(len, lines)) <= width
    assert left_out == (["pending"] if width < 49 else [])


def test_texts_are_shortened_in_their_middle() -> None:
    assert shortened("root.analytics.nightly", 12) == "root.…ightly"
    assert shortened("abc", 3) == "abc"
    assert laid_out([TextColumn("name")], [["\N{CJK UNIFIED IDEOGRAPH-4E00}" * 20]], 12)[0][1].endswith(
        "\u4e00"
    )


def test_nodes_of_a_topology_have_their_domain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rm = racks(blocks=1, per_block=1, nodes=1)
    rm.node("n1", gpu=1)
    answered(monkeypatch, through(Rest(rm)))
    _, out, _ = run("get", "nodes")
    rows = [line.split()[:3] for line in out.splitlines()]
    assert rows == [
        ["NODE", "STATE", "DOMAIN"],
        ["b1-r1-n1", "Schedulable", "b1/r1"],
        ["n1", "Schedulable", "-"],
    ]
