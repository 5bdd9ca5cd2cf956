"""Plots of sections, as files and for pages. Requires matplotlib."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from yunikorn.reporting.mpl import png, styled
from yunikorn.reporting.palette import QueueColours
from yunikorn.reporting.section import Section
from yunikorn.reporting.svg import inline_svg


@attrs.frozen
class Drawing:
    """A plot in both forms."""

    png: bytes
    """Content of the file."""
    svg: str
    """Element for a page."""


def draw(sections: Iterable[Section], colours: QueueColours) -> dict[str, Drawing]:
    """Draw all plots of the sections that have something to show; returns them by file name."""
    drawn = {}
    with styled():
        for section in sections:
            for picture in section.pictures:
                figure = picture.draw(colours)
                if figure is not None:
                    name = picture.name.rpartition(".")[0]
                    drawn[picture.name] = Drawing(png(figure), inline_svg(figure, name, picture.caption))
    return drawn
