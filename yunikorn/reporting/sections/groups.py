"""Sections of users and of sizes of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.reporting.figures import GROUP, cells, columns
from yunikorn.reporting.formats import duration
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.group_counts import GroupReport
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

MOST = 10
"""Maximum number of listed users, those with the highest usage."""

USERS = "users.png"


def users_section(result: FullReport) -> Section | None:
    """Return the users with the highest usage; None if there was at most one user."""
    users = result.figures.users
    if len(users) < 2:
        return None
    ranked = sorted(users, key=lambda user: (-user.use, user.name))
    more = len(users) - MOST
    note = f"{more} more users are in report.json" if more > 0 else ""
    table = _groups("Users, highest use first", "user", ranked[:MOST], note)

    def draw(_: QueueColours) -> Figure | None:
        from yunikorn.reporting.plot_users import plot_users

        return plot_users(result.history)

    caption = "Use and waiting tasks over time of the users with the highest use, and of all others together."
    return Section(
        "users",
        "Users",
        "Who uses the cluster, and who waits?",
        paragraphs=_late(result),
        pictures=[Picture(USERS, caption, draw)],
        tables=[table],
    )


def _late(result: FullReport) -> list[str]:
    """Return a note about users whose series began during the run."""
    late = [user for user in result.history.users if user.since is not None]
    if not late:
        return []
    named = ", ".join(f"{user.user} ({duration(user.since)})" for user in late)
    return [f"Before these times the plot counts users among the others: {named}."]


def sizes_section(result: FullReport) -> Section | None:
    """Return the size classes; None without applications of different sizes."""
    sizes = result.figures.sizes
    if len(sizes) < 2:
        return None
    table = _groups("Sizes (part of the cluster that an application asks for)", "size", sizes)
    return Section("sizes", "Sizes of applications", "Do large applications wait longer?", tables=[table])


def _groups(title: str, column: str, groups: list[GroupReport], note: str = "") -> Table:
    rows = [[group.name, *cells(GROUP, group)] for group in groups]
    return Table(title, [column, *columns(GROUP)], rows, note)
