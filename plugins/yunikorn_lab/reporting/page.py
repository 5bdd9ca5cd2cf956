"""Report as one self-contained HTML page that needs no network. Requires jinja2 and matplotlib.

Plots of sections, as files and as SVG inside of a page. Requires matplotlib.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import attrs
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from yunikorn.errors import printable
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
from yunikorn_lab.reporting.palette import DARK, LIGHT, OTHER_DARK, OTHER_LIGHT, QueueColours
from yunikorn_lab.reporting.section import Section
from yunikorn_lab.reporting.tables import Number, Table
from yunikorn_lab.simulation.out_folder import OutFolder

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


def write_page(
    folder: OutFolder,
    name: str,
    *,
    title: str,
    verdict: Sequence[str],
    sections: Sequence[Section],
    colours: QueueColours,
) -> None:
    """Draw all plots of the sections, and write them and the page to a folder."""
    drawn = draw(sections, colours)
    for picture, drawing in drawn.items():
        folder.part(picture).write_bytes(drawing.png)
    inline = {picture: drawing.svg for picture, drawing in drawn.items()}
    page = render(title=title, verdict=verdict, sections=sections, drawn=inline, colours=colours)
    folder.open(name).write(page)


def render(
    *,
    title: str,
    verdict: Sequence[str],
    sections: Sequence[Section],
    drawn: Mapping[str, str],
    colours: QueueColours,
) -> str:
    """Render a page of a verdict and sections; all texts are escaped.

    `drawn` has the SVG of each plot by file name. Plots that are missing there are left out, and so are
    sections without any content.
    """
    # StrictUndefined makes a missing variable of the template an error instead of an empty string.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read("page.html")).render(
        title=printable(title),
        verdict=list(map(printable, verdict)),
        sections=[shown for section in sections if (shown := _shown(section, drawn)) is not None],
        drawn={name: Markup(svg) for name, svg in drawn.items()},
        colours=colours,
        style=Markup(_style()),
        script=Markup(_read("page.js")),
    )


def _read(name: str) -> str:
    return files("yunikorn_lab.reporting").joinpath(name).read_text("utf-8")


def _style() -> str:
    classes = "\n".join(f".q{number} {{ --c: var(--q{number}); }}" for number in range(len(LIGHT)))
    style = _read("page.css").replace("{{ light }}", _variables([*LIGHT, *OTHER_LIGHT]))
    style = style.replace("{{ dark }}", _variables([*DARK, *OTHER_DARK]))
    return f"{style}{classes}\n"


def _variables(colours: Sequence[str]) -> str:
    return "  " + " ".join(f"--q{number}: {colour};" for number, colour in enumerate(colours))


def _shown(section: Section, drawn: Mapping[str, str]) -> Section | None:
    """Return a section as it is shown, with control characters escaped; None if nothing is left of it."""
    pictures = [picture for picture in section.pictures if picture.name in drawn]
    if not (pictures or section.tables or section.facts or section.paragraphs or section.details):
        return None
    return attrs.evolve(
        section,
        pictures=pictures,
        facts=[(printable(name), printable(text)) for name, text in section.facts],
        paragraphs=list(map(printable, section.paragraphs)),
        details=[(printable(name), _lines(text)) for name, text in section.details],
        tables=[_cleaned(table) for table in section.tables],
    )


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _cleaned(table: Table) -> Table:
    rows = [[cell if isinstance(cell, Number) else printable(cell) for cell in row] for row in table.rows]
    return attrs.evolve(
        table,
        title=printable(table.title),
        columns=list(map(printable, table.columns)),
        rows=rows,
        note=printable(table.note),
    )
