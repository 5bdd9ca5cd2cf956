"""Report as one self-contained HTML page that needs no network. Requires jinja2 and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

import attrs
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from yunikorn.errors import printable
from yunikorn_lab.reporting.drawing import draw
from yunikorn_lab.reporting.palette import DARK, LIGHT, OTHER_DARK, OTHER_LIGHT, QueueColours
from yunikorn_lab.reporting.section import Section
from yunikorn_lab.reporting.tables import Number, Table
from yunikorn_lab.simulation.out_folder import OutFolder


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
