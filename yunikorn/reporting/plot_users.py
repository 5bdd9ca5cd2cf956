"""Plot of the use and the waiting tasks of the top users over time. Requires matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from yunikorn.reporting.history import History, UserHistory
from yunikorn.reporting.mpl import INK, OTHERS, amount_scale, area, paper, shorten, stack, time_scale, top
from yunikorn.reporting.palette import line_style
from yunikorn.reporting.plots import busiest_type


def plot_users(history: History) -> Figure | None:
    """Plot use of the busiest type, and waiting tasks, as stacks of users; None without several users."""
    name = busiest_type(history)
    if not history.users or not history.count or not name:
        return None
    nothing = [0.0] * history.count
    capacity = [
        sum(each.capacity.get(name, nothing)[index] for each in history.partitions)
        for index in range(history.count)
    ]
    unit, text = amount_scale(name, max(capacity))
    figure, (use, waiting) = paper(5.6, 2, share=True)
    edges = _edges(history)
    used = [[value / unit for value in user.used.get(name, nothing)] for user in history.users]
    _stack(use, edges, history.users, used)
    whole = [value / unit for value in capacity]
    use.stairs(whole, edges, baseline=None, color=INK, lw=1.2, label="capacity")
    use.set_ylim(0, top(whole))
    use.set_ylabel(text)
    use.set_title(f"Use of {shorten(name, 40)} by user")
    highest = _stack(waiting, edges, history.users, [user.waiting for user in history.users])
    waiting.set_ylim(0, top(highest))
    waiting.yaxis.set_major_locator(MaxNLocator(integer=max(highest) > 1))
    waiting.set_ylabel("tasks")
    waiting.set_title("Waiting tasks by user")
    waiting.set_xlabel(f"simulated time ({time_scale(history.edges)[1]})")
    handles, labels = use.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def _edges(history: History) -> list[float]:
    time, _ = time_scale(history.edges)
    return [edge / time for edge in history.edges]


def _stack(
    axes: Axes, edges: Sequence[float], users: Iterable[UserHistory], values: Iterable[Sequence[float]]
) -> list[float]:
    """Draw the values of the users above each other; returns their sums."""
    below = [0.0] * (len(edges) - 1)
    for number, (user, more) in enumerate(zip(users, values, strict=True)):
        if user.user:
            label = shorten(user.user, 24)
            below = stack(axes, edges, below, more, label=label, **area(line_style(number)))
        else:
            label = f"{user.users} more users" if user.users > 1 else "1 more user"
            below = stack(axes, edges, below, more, fill=True, color=OTHERS, label=label)
    axes.set_xlim(edges[0], edges[-1])
    return below
