"""Plots that compare variants of one workload."""

from __future__ import annotations

from collections.abc import Collection

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from yunikorn_lab.reporting.comparison_result import Comparison, FigureRow
from yunikorn_lab.reporting.figures import MEAN_WAIT
from yunikorn_lab.reporting.mpl import (
    INK,
    amount_scale,
    different_curves,
    label_durations,
    label_times,
    line,
    paper,
    shared_origin,
    shorten,
    steps,
    top,
)
from yunikorn_lab.reporting.palette import LIGHT, line_style
from yunikorn_lab.reporting.plot_waits import plot_distributions
from yunikorn_lab.reporting.plots import busiest_type
from yunikorn_lab.reporting.run_figures import Curves
from yunikorn_lab.reporting.run_history import QueueHistory, RunHistory

SHOWN = len(LIGHT)
"""Maximum number of drawn variants, the first ones; each has a colour of its own."""
QUEUES = 8
TICKS = 5
"""Maximum number of steps between ticks of an axis of half the width."""
BARS = (
    (MEAN_WAIT, "Wait until the last task started, mean", True),
    ("bounded slowdown, mean", "Bounded slowdown, mean", False),
)


def plot_all_waits(comparison: Comparison) -> Figure | None:
    """Plot the distributions of waits and slowdowns, with a line for each variant."""
    variants = comparison.variants[:SHOWN]
    curves = [variant.results[0].curves for variant in variants]
    names = [variant.name for variant in variants]
    waits = {name: curve.all_waits for name, curve in zip(names, curves, strict=True)}
    slowdowns = {name: curve.all_slowdowns for name, curve in zip(names, curves, strict=True)}
    return plot_distributions(Curves(waits, slowdowns, [], []), what="variants")


def plot_bars(comparison: Comparison) -> Figure | None:
    """Plot waits and slowdowns of each queue, with a bar for each variant."""
    found = [(title, is_time, _rows(comparison, name)) for name, title, is_time in BARS]
    if not any(rows for _, _, rows in found):
        return None
    most = max(len(rows) for _, _, rows in found)
    variants = comparison.variants[:SHOWN]
    figure, axes = paper(1.4 + 0.22 * most * (len(variants) + 1), 1, 2)
    for one, (title, is_time, rows) in zip(axes, found, strict=True):
        _bars(one, rows, len(variants))
        one.set_title(title if is_time else f"{title} (times)")
        if is_time:
            label_durations(one.xaxis, 0, one.get_xlim()[1], TICKS)
    handles, _ = axes[0].get_legend_handles_labels()
    labels = [shorten(variant.name, 40) for variant in variants]
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3))
    return figure


def _rows(comparison: Comparison, name: str) -> list[FigureRow]:
    leaves = {queue.name for variant in comparison.variants for queue in variant.results[0].figures.queues}
    rows = [row for row in comparison.rows if row.name == name and row.section.rpartition(": ")[2] in leaves]
    ranked = sorted(rows, key=lambda row: -max(cell.value.mean for cell in row.cells if cell.value))
    return [row for row in rows if row in ranked[:QUEUES]]


def _bars(axes: Axes, rows: list[FigureRow], variants: int) -> None:
    width = 0.8 / variants
    for number in range(variants):
        values = [row.cells[number].value for row in rows]
        places = [at - 0.4 + width * (number + 0.5) for at in range(len(rows))]
        axes.barh(
            places,
            [value.mean if value else 0.0 for value in values],
            height=width * 0.92,
            color=line_style(number).colour,
            label=str(number),
            xerr=[(value.half or 0.0) if value else 0.0 for value in values]
            if any(value and value.half for value in values)
            else None,
            error_kw={"lw": 1, "capsize": 2},
        )
    axes.set_yticks(range(len(rows)), [shorten(row.section, 28) for row in rows])
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlim(left=0)


def plot_over_time(comparison: Comparison) -> Figure | None:
    """Plot the usage of the busiest resource type and the waiting tasks, with a line for each variant."""
    variants = comparison.variants[:SHOWN]
    histories = [variant.results[0].history for variant in variants]
    if not any(history.count for history in histories):
        return None
    longest = max(histories, key=lambda history: history.end)
    name = busiest_type(longest)
    figure, (use, waiting) = paper(5.0, 2, share=True)
    heights = [0.0]
    curves = [(history.edges, _shares(history, name), _lengths(history)) for history in histories]
    for number, label in different_curves([variant.name for variant in variants], curves):
        edges, shares, lengths = curves[number]
        if not lengths:
            continue
        heights += lengths
        style = line(line_style(number), _width(number))
        steps(use, shares, edges, baseline=None, label=label, **style)
        steps(waiting, lengths, edges, baseline=None, **style)
    use.set_title(f"Use of {shorten(name, 40)}" if name else "Use")
    use.set_ylim(0, 1.05)
    use.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    waiting.set_title("Waiting tasks")
    waiting.set_ylabel("tasks")
    waiting.set_ylim(0, top(heights))
    waiting.set_xlabel(label_times(waiting, longest.start, longest.end, shared_origin(histories)))
    figure.legend(loc="outside right upper")
    return figure


def _width(number: int) -> float:
    """Return a smaller line width for each further variant, so that coinciding lines stay visible."""
    return max(3.2 - 1.0 * number, 1.0)


def _lengths(history: RunHistory) -> list[float]:
    return [sum(each.waiting[index] for each in history.partitions) for index in range(history.count)]


def _shares(history: RunHistory, name: str) -> list[float]:
    found = []
    for index in range(history.count):
        used = sum(each.used[name][index] for each in history.partitions if name in each.used)
        had = sum(each.capacity[name][index] for each in history.partitions if name in each.capacity)
        found.append(used / had if had else 0.0)
    return found


def plot_shares(comparison: Comparison) -> Figure | None:
    """Plot each queue's usage of the busiest type, a line per variant, and the first variant's guarantee."""
    variants = comparison.variants[:SHOWN]
    histories = [variant.results[0].history for variant in variants]
    longest = max(histories, key=lambda history: history.end)
    name = busiest_type(longest)
    totals: dict[tuple[str, str], float] = {}
    for history in histories:
        for queue in history.queues:
            if queue.is_leaf and name in queue.used:
                key = (queue.partition, queue.queue)
                totals[key] = max(totals.get(key, 0.0), sum(queue.used[name]) * history.width)
    ranked = sorted(totals, key=lambda key: -totals[key])[:QUEUES]
    if not ranked:
        return None
    shown = sorted(ranked)
    figure, axes = paper(1.0 + 1.8 * len(shown), len(shown), share=True)
    queues = [[_queue_of(history, key) for key in shown] for history in histories]
    curves = [
        (history.edges, [queue.used.get(name) if queue else None for queue in of])
        for history, of in zip(histories, queues, strict=True)
    ]
    drawn = different_curves([variant.name for variant in variants], curves)
    for one, key in zip(axes, shown, strict=True):
        _share(one, histories, key, name, [number for number, _ in drawn])
        several = len({partition for partition, _ in shown}) > 1
        one.set_title(shorten(f"{key[0]}: {key[1]}" if several else key[1], 60))
    axes[-1].set_xlabel(label_times(axes[-1], longest.start, longest.end, shared_origin(histories)))
    handles, _ = axes[0].get_legend_handles_labels()
    labels = [label for _, label in drawn]
    title = f"{shorten(name, 30)}\n(dashed: guarantee\nof the first variant)"
    figure.legend(handles[: len(labels)], labels, loc="outside right upper", title=title)
    return figure


def _queue_of(history: RunHistory, key: tuple[str, str]) -> QueueHistory | None:
    return next((one for one in history.queues if (one.partition, one.queue) == key), None)


def _share(
    axes: Axes,
    histories: list[RunHistory],
    key: tuple[str, str],
    name: str,
    different: Collection[int],
) -> None:
    """Plot the usage of one queue under the variants whose curves are `different`."""
    heights = [0.0]
    drawn = []
    for history in histories:
        queue = _queue_of(history, key)
        drawn.append((history, queue))
        if queue is not None:
            heights += queue.used.get(name, [])
            heights += [step.guaranteed.get(name, 0) for step in queue.quotas]
    unit, text = amount_scale(name, max(heights))
    for number in different:
        history, queue = drawn[number]
        used = queue.used.get(name) if queue is not None else None
        values = [value / unit for value in used] if used else [0.0] * history.count
        style = line(line_style(number), _width(number))
        steps(axes, values, history.edges, baseline=None, label="used", **style)
    history, queue = drawn[0]
    if queue is not None and any(step.guaranteed.get(name) for step in queue.quotas):
        times = [max(step.time, history.start) for step in queue.quotas] + [history.end]
        guaranteed = [step.guaranteed.get(name, 0) / unit for step in queue.quotas]
        steps(axes, guaranteed, times, baseline=None, color=INK, lw=1.2, ls="--")
    axes.set_ylim(0, top([height / unit for height in heights]))
    axes.set_ylabel(text)
