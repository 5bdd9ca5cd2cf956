"""Colours of queues: one per queue, the same in all plots and tables of all pages of a workload.

There are eight colours, which colour-blind readers can distinguish, and which contrast with a white and with
a dark background. From the ninth queue on, colours repeat with another pattern. What is no queue, such as
users, variants and causes, has colours of its own: no colour stands for a queue and for something else.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import attrs

from yunikorn_lab.reporting.run_history import RunHistory

Dashes = str | tuple[int, tuple[int, ...]]
"""A pattern of lines as matplotlib takes it."""
LIGHT = ("#0c51bc", "#998d12", "#009c52", "#850075", "#009dd9", "#901000", "#b97c97", "#004637")
"""Colours on a white background."""
DARK = ("#4488ff", "#ffd568", "#38f6de", "#a73da7", "#63ccff", "#ff8793", "#756640", "#4a8400")
"""Colours on a dark background, in the order of `LIGHT`."""
OTHER_LIGHT = ("#d96b00", "#66788c", "#e5348b", "#2b8f86", "#9a6a3a", "#8a73e0", "#5f9400", "#b02a4c")
"""Colours on a white background of what is no queue."""
OTHER_DARK = ("#ff9d3c", "#a9b6c6", "#ff6fb5", "#5fb8ae", "#c08a55", "#b6a8ff", "#a8d84a", "#ff5c6c")
"""Colours on a dark background, in the order of `OTHER_LIGHT`."""
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++")
"""Patterns of areas; the empty one is a plain area."""
DASHES: tuple[Dashes, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (8, 2)),
    (0, (4, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 2, 1, 2)),
)
"""Patterns of lines, in the order of `HATCHES`."""


@attrs.frozen
class Style:
    """Colour and pattern of a queue, or of something else."""

    number: int
    """Index of the colour in `LIGHT` and `DARK`, continued in `OTHER_LIGHT` and `OTHER_DARK`."""
    pattern: int
    """Index of the pattern in `HATCHES` and `DASHES`."""

    @property
    def colour(self) -> str:
        """Colour on a white background."""
        return (*LIGHT, *OTHER_LIGHT)[self.number]


def line_style(number: int) -> Style:
    """Return the style of the line or area with this number, if it does not stand for a queue."""
    return Style(len(LIGHT) + number % len(OTHER_LIGHT), number // len(OTHER_LIGHT) % len(HATCHES))


class QueueColours:
    """Styles by label of a queue.

    The colour follows from the name, so that a queue keeps its colour when other queues come or go, as far as
    no two names of the same eight share one.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._styles: dict[str, Style] = {}
        taken: set[int] = set()
        for place, label in enumerate(sorted(set(labels))):
            if place % len(LIGHT) == 0:
                taken = set()
            number = zlib.crc32(label.encode("utf-8", "surrogatepass")) % len(LIGHT)
            while number in taken:
                number = (number + 1) % len(LIGHT)
            taken.add(number)
            self._styles[label] = Style(number, place // len(LIGHT) % len(HATCHES))

    def __contains__(self, label: str) -> bool:
        return label in self._styles

    def __getitem__(self, label: str) -> Style:
        return self._styles[label]


def queue_colours(histories: Iterable[RunHistory]) -> QueueColours:
    """Return the colours of all leaf queues of some runs."""
    return QueueColours(
        history.label(queue.partition, queue.queue)
        for history in histories
        for queue in history.queues
        if queue.is_leaf
    )
