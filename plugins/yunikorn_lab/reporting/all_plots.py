"""All functions that plot. Sections receive this module when they draw, because it requires matplotlib."""

from yunikorn_lab.reporting.plot_comparison import plot_all_waits, plot_bars, plot_over_time, plot_shares
from yunikorn_lab.reporting.plot_gantt import plot_gantt
from yunikorn_lab.reporting.plot_setting_curves import plot_curve
from yunikorn_lab.reporting.plot_waits import plot_calibration, plot_distributions
from yunikorn_lab.reporting.plots import (
    plot_cluster,
    plot_groups,
    plot_idle,
    plot_lengths,
    plot_nodes,
    plot_queues,
    plot_users,
)

__all__ = [
    "plot_all_waits",
    "plot_bars",
    "plot_calibration",
    "plot_cluster",
    "plot_curve",
    "plot_distributions",
    "plot_gantt",
    "plot_groups",
    "plot_idle",
    "plot_lengths",
    "plot_nodes",
    "plot_over_time",
    "plot_queues",
    "plot_shares",
    "plot_users",
]
