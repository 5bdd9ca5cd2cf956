"""Plots of any result; results without content have none."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.mpl import amount_scale, paper, png, shorten, stack, styled
from yunikorn_lab.reporting.page import Drawing, draw
from yunikorn_lab.reporting.palette import LIGHT, queue_colours
from yunikorn_lab.reporting.plot_waits import plot_distributions
from yunikorn_lab.reporting.plots import plot_cluster, plot_lengths, plot_nodes, plot_queues
from yunikorn_lab.reporting.result_files import PICTURES
from yunikorn_lab.reporting.sections.report_sections import report_sections

Observe = Callable[..., FullReport]
APP = "  - {id: x%d, queue: root.q%d, user: u%d, tasks: [{count: 3, resources: {vcore: 1}, runtime: 20}]}\n"


def scenario(queues: int, submit: str = "") -> str:
    """Return a scenario with one application in each of `count` queues."""
    nodes = "nodes: [{name: n, count: 70, resources: {vcore: 1, memory: 4Gi, $\\gpu_x$: 1}}]\n"
    apps = "".join(APP % (number, number, number) for number in range(queues))
    return f"{nodes}applications:\n{apps}".replace(", user", f"{submit}, user")


def leaves(queues: int) -> str:
    """Return this many queues with guarantees and limits."""
    resources = "{guaranteed: {vcore: 1}, max: {vcore: 2}}"
    return "\n".join(f"          - {{name: q{number}, resources: {resources}}}" for number in range(queues))


def drawings(result: FullReport) -> dict[str, Drawing]:
    """Return all plots of a result."""
    return draw(report_sections(result), queue_colours([result.history]))


def texts(figure: Figure | None) -> set[str]:
    """Return all texts of a figure, including those of its axes, which exist only after drawing."""
    assert figure is not None
    png(figure)
    return {found.get_text() for found in figure.findobj(Text) if isinstance(found, Text)} - {""}


@pytest.mark.parametrize("queues", [1, 50])
def test_every_plot_works_for_any_number_of_queues(observe: Observe, queues: int, tmp_path: Path) -> None:
    drawn = drawings(observe(scenario(queues), leaves(queues)))
    optional = {"calibration.png", "gantt.png", "idle.png", *(["users.png"] if queues == 1 else ())}
    assert set(PICTURES) - optional <= set(drawn) <= set(PICTURES)
    for name, drawing in drawn.items():
        with Image.open(io.BytesIO(drawing.png)) as image:
            colours = image.convert("RGB").getcolors(1 << 24)
            assert image.width == 1100, name
            assert image.height < 1500, name
            assert colours is not None
            assert len(colours) > 10, name


def test_axes_have_units_and_lines_have_names(observe: Observe) -> None:
    result = observe(scenario(2), leaves(2))
    history = result.history
    with styled():
        assert {"used", "capacity", "cores", "GiB", "memory", "vcore"} <= texts(plot_cluster(history))
        found = texts(plot_queues(history, queue_colours([history])))
        assert {"root.q0", "root.q1", "used", "guaranteed", "limit", "cores", "vcore by queue"} <= found
        assert {"simulated time", "10s"} <= found
        assert {"Waiting tasks by queue", "tasks", "root.q0"} <= texts(
            plot_lengths(history, queue_colours([history]))
        )
        found = texts(plot_distributions(result.curves))
        assert {"waited no longer than", "share of the applications", "≤ 1s", "10s"} <= found
        assert "root.q0\n= root.q1" in found
        assert any("each row is 2 nodes" in text for text in texts(plot_nodes(history)))


@pytest.mark.parametrize("runtime", [20, 2_000])
def test_slowdown_ticks_are_plain_numbers(observe: Observe, runtime: int) -> None:
    few = scenario(1).replace("count: 70", "count: 2").replace("runtime: 20", f"runtime: {runtime}")
    late = (APP % (1, 0, 1)).replace("runtime: 20", "runtime: 10")
    curves = observe(few + late, leaves(1)).curves
    with styled():
        found = texts(plot_distributions(curves))
    assert not [text for text in found if "$" in text]
    assert {"1", "2"} <= found or {"1", "10", "100"} <= found


def test_omitted_series_are_reported(observe: Observe) -> None:
    result = observe(scenario(50), leaves(50))
    history = result.history
    with styled():
        assert any(
            "38 more are in queues.csv" in text
            for text in texts(plot_queues(history, queue_colours([history])))
        )
        assert "42 more queues" in texts(plot_lengths(history, queue_colours([history])))
        assert any(
            f"{50 - len(LIGHT)} not shown" in text for text in texts(plot_distributions(result.curves))
        )


def test_without_slowdowns_there_is_no_empty_plot(observe: Observe) -> None:
    task = "tasks: [{resources: {vcore: 1}, runtime: forever}]"
    endless = (
        "nodes: [{name: n, resources: {vcore: 1}}]\n"
        "events: [{at: 1m, node: late, action: add, resources: {vcore: 1}}]\n"
        f"applications:\n  - {{id: x, queue: root.q0, {task}}}\n"
    )
    assert plot_distributions(observe(endless, "          - {name: q0}").curves) is None
    result = observe(f"{endless}  - {{id: y, queue: root.q0, {task}}}\n", "          - {name: q0}")
    with styled():
        found = texts(plot_distributions(result.curves))
    assert "waited no longer than" in found
    assert "Bounded slowdown" not in found
    (waits, *_) = [one for section in report_sections(result) for one in section.pictures]
    assert "slowed down" not in waits.caption


def test_amounts_are_written_out(observe: Observe) -> None:
    large = scenario(1).replace("$\\gpu_x$: 1", "gpu: 900000")
    with styled():
        found = texts(plot_cluster(observe(large, leaves(1)).history))
    assert "60000000" in found
    assert not [text for text in found if text.startswith("1e")]


def test_parts_of_a_stack_that_are_zero_have_no_edge() -> None:
    with styled():
        _, (axes,) = paper(2)
        above = stack(axes, [0, 1, 2, 3], [1, 1, 1], [0, 2, 0], fill=True)
    assert above == [1, 3, 1]
    (patch,) = axes.patches
    assert patch.get_path().get_extents().bounds == (1, 1, 1, 2)


def test_an_empty_simulation_has_no_plots(observe: Observe) -> None:
    assert drawings(observe(scenario(1, ", submit: 10"), leaves(1), until=1)) == {}


def test_limit_far_above_usage_is_a_label_and_not_a_line(observe: Observe) -> None:
    result = observe(scenario(1), leaves(1).replace("max: {vcore: 2}", "max: {vcore: 900}"))
    with styled():
        found = texts(plot_queues(result.history, queue_colours([result.history])))
    assert "limit 900 (not drawn)" in found
    assert "limit" not in found


def test_amounts_have_fitting_units() -> None:
    assert amount_scale("vcore", 5) == (1000, "cores")
    assert amount_scale("memory", 5 * 2**40) == (2**40, "TiB")
    assert amount_scale("memory", 0) == (1, "bytes")
    assert amount_scale("nvidia.com/gpu", 8) == (1, "nvidia.com/gpu")


def test_long_and_unusual_names_are_shortened() -> None:
    assert shorten("root.a", 10) == "root.a"
    assert shorten("root.very.long.path", 10) == "…long.path"
    assert shorten("a\x1bb", 10) == "a?b"
