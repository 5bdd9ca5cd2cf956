"""Sections of a page: what each shows, and how its pictures are drawn.

A section is made by one function, which returns None if it has nothing to show. Adding a section takes such
a function and a line in the list of its page: `sections/report_sections.py` or
`sections/comparison_sections.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from yunikorn_lab.reporting.palette import QueueColours
from yunikorn_lab.reporting.tables import Table


@attrs.frozen
class Picture:
    """A plot, written as a file and shown on the page."""

    name: str
    """Name of the file, such as `waits.png`."""
    caption: str
    """One or two sentences: the content of the plot, and how to read it."""
    draw: Callable[[Any, QueueColours], Any]
    """Returns the figure, given the module `all_plots`; None if there is nothing to draw."""


@attrs.frozen
class Section:
    """A part of a page: a heading that links can name, explanation, plots, and tables."""

    key: str
    """Anchor on the page, in lower-case letters, digits and hyphens."""
    title: str
    lead: str = ""
    """A sentence or two above everything else: the question that the section answers."""
    facts: Sequence[tuple[str, str]] = ()
    """Names and texts, one per line."""
    paragraphs: Sequence[str] = ()
    details: Sequence[tuple[str, str]] = ()
    """Long texts, with their names, that are shown on request."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
