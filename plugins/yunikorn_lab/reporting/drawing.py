"""Plots of sections, as files and as SVG inside of a page. Requires matplotlib."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable

import attrs
from matplotlib import rc_context
from matplotlib.figure import Figure

from yunikorn_lab.reporting import all_plots
from yunikorn_lab.reporting.mpl import (
    GRID,
    GUARANTEED,
    INK,
    LIMIT,
    NOTHING,
    OTHERS,
    UNUSABLE,
    USED,
    laid_out,
    png,
    styled,
)
from yunikorn_lab.reporting.palette import LIGHT, OTHER_LIGHT, QueueColours
from yunikorn_lab.reporting.section import Section

_VARIABLES = {
    **{colour: f"var(--q{number})" for number, colour in enumerate((*LIGHT, *OTHER_LIGHT))},
    INK: "currentColor",
    GRID: "var(--line)",
    USED: "var(--used)",
    UNUSABLE: "var(--unusable)",
    GUARANTEED: "var(--guaranteed)",
    LIMIT: "var(--limit)",
    OTHERS: "var(--others)",
    NOTHING: "var(--absent)",
}
"""Variables of the style of the page, by the colours of plots."""
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_NUMBER = re.compile(r"(\d+\.\d)\d+")
_HEAD = re.compile(r"\A.*?<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_PATH = re.compile(r'(?<= d=")[^"]+')
_TAG = re.compile(r"<[^>]*>")


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
                figure = picture.draw(all_plots, colours)
                if figure is not None:
                    name = picture.name.rpartition(".")[0]
                    with laid_out(figure):
                        svg = inline_svg(figure, name, picture.caption)
                        drawn[picture.name] = Drawing(png(figure), svg)
    return drawn


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """Return a figure as an `svg` element, whose colours follow the style of the page.

    `name` makes its ids unique on the page. `label` is read to readers who do not see the plot. Equal figures
    give equal texts.
    """
    with io.StringIO() as file, rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(file, format="svg", metadata=metadata, transparent=True)
        text = file.getvalue()
    head = _HEAD.match(text)
    assert head is not None
    body = _METADATA.sub("", text[head.end() :])
    body = _PATH.sub(lambda found: _NUMBER.sub(r"\1", found[0]), body)
    body = _TAG.sub(lambda tag: _page_colours(_ID.sub(rf"\g<1>{name}-", tag[0])), body)
    return f'<svg viewBox="{head[1]}" role="img" aria-label="{html.escape(label)}">{body.strip()}'


def _page_colours(tag: str) -> str:
    return _COLOUR.sub(lambda found: _VARIABLES.get(found[0], found[0]), tag)
