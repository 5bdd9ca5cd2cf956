"""Page of a report: contents, hostile names, tables, and sections without content."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import pytest

from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.page import render
from yunikorn_lab.reporting.palette import QueueColours, queue_colours
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.sections.report_sections import report_sections
from yunikorn_lab.reporting.tables import Number, Table, duration

Observe = Callable[..., FullReport]


class Elements(HTMLParser):
    """Elements and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


def page(*sections: Section, verdict: Sequence[str] = (), queues: Sequence[str] = ()) -> str:
    """Render sections without plots."""
    return render(title="t", verdict=verdict, sections=sections, drawn={}, colours=QueueColours(queues))


def test_contents_lead_to_every_section(observe: Observe) -> None:
    scenario = (
        "nodes: [{name: n, resources: {vcore: 1}}]\napplications:\n"
        "  - {id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 1}, runtime: 20}]}\n"
    )
    result = observe(scenario)
    sections = report_sections(result)
    text = render(
        title="t",
        verdict=result.verdict,
        sections=sections,
        drawn={},
        colours=queue_colours([result.history]),
    )
    found = Elements(text)
    anchors = [one["id"] for one in found.of("section")]
    links = [str(one["href"]).removeprefix("#") for one in found.of("a")]
    assert links == ["verdict", *anchors]
    assert anchors[:2] == ["verdict", "waits"]
    ids = [one["id"] for _, one in found.tags if one.get("id")]
    assert len(ids) == len(set(ids))


def test_panels_without_content_are_left_out() -> None:
    nothing = Picture("none.png", "a caption", lambda *_: None)
    found = Elements(page(Section("empty", "Empty", "lead", pictures=[nothing])))
    assert [one["id"] for one in found.of("section")] == ["verdict"]
    assert "a caption" not in found.texts
    assert "Nothing stands out." in found.texts


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_names_cannot_change_the_page() -> None:
    table = Table(HOSTILE, [HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]], HOSTILE, has_queues=True)
    section = Section(
        "s",
        HOSTILE,
        HOSTILE,
        [(HOSTILE, HOSTILE)],
        [HOSTILE],
        [(HOSTILE, f"{HOSTILE}\n\x1b[31mred")],
        tables=[table],
    )
    text = page(section, verdict=[HOSTILE], queues=[HOSTILE])
    found = Elements(text)
    assert not found.of("img")
    assert len(found.of("script")) == 1
    assert "\x1b" not in text
    assert found.texts.count(HOSTILE) == 14


ODD = {
    "": "(no name)",
    "x" * 200: "x" * 200,
    "\u202etxt": "\\u202etxt",
    "a\x00b": "a\\x00b",
    "{{ 7 * 7 }}": "{{ 7 * 7 }}",
}


@pytest.mark.parametrize(("name", "shown"), ODD.items(), ids=map(str, range(len(ODD))))
def test_odd_names_are_shown(name: str, shown: str) -> None:
    found = Elements(page(Section("s", "s", tables=[Table("t", ["queue", "n"], [[name, "1"]])])))
    assert shown in found.texts


def test_numbers_carry_the_value_by_which_they_are_sorted() -> None:
    rows = [["a", Number(duration, 7_200.0)], ["b", Number(duration, 90.0)], ["c", Number(duration, None)]]
    text = page(Section("s", "s", tables=[Table("t", ["queue", "wait"], rows)]))
    found = Elements(text)
    assert found.of("table")[0]["class"] == "sortable"
    assert [cell.get("data-value") for cell in found.of("td")] == ["7200.0", "90.0", None]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", text) == ["2h 0m", "1m 30s", "-"]


@pytest.mark.parametrize(
    "table",
    [
        Table("t", ["queue", "wait"], [["a", "1"]]),
        Table("t", ["queue", "wait"], [["a", "1"], ["and more", "2"]], rest=1),
        Table("t", ["", "one"], [["part", ""], ["a", "1"], ["b", "2"]], has_parts=True),
    ],
)
def test_tables_with_nothing_to_sort_have_no_order(table: Table) -> None:
    assert "class" not in Elements(page(Section("s", "s", tables=[table]))).of("table")[0]


def test_headings_of_parts_span_the_table_and_show_the_colour_of_a_queue() -> None:
    table = Table("t", ["", "one"], [["root.a", ""], ["wait", "1"]], has_parts=True)
    found = Elements(page(Section("s", "s", tables=[table]), queues=["root.a"]))
    assert found.of("th")[1] == {"scope": "rowgroup", "colspan": "2"}
    assert str(found.of("i")[0]["class"]).startswith("swatch q")


@pytest.mark.slow
def test_a_queue_has_one_colour_in_plots_and_tables(observe: Observe) -> None:
    from yunikorn_lab.reporting.page import draw

    app = "  - {id: x%d, queue: root.q%d, tasks: [{count: 3, resources: {vcore: 1}, runtime: 20}]}\n"
    scenario = "nodes: [{name: n, resources: {vcore: 1}}]\napplications:\n"
    scenario += "".join(app % (number, number) for number in range(3))
    result = observe(scenario, "\n".join(f"          - {{name: q{number}}}" for number in range(3)))
    colours, sections = queue_colours([result.history]), report_sections(result)
    drawn = {name: drawing.svg for name, drawing in draw(sections, colours).items()}
    text = render(title="t", verdict=[], sections=sections, drawn=drawn, colours=colours)
    for number in range(3):
        variable = f"var(--q{colours[f'root.q{number}'].number})"
        for name in ("waits.png", "queue-lengths.png", "queue-use.png"):
            assert variable in drawn[name]
        assert f'<i class="swatch q{colours[f"root.q{number}"].number} p0"></i><bdi>root.q{number}' in text
    assert not re.search(r"fill: ?#000000|stroke: ?#333333", "".join(drawn.values()))
