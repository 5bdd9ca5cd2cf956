"""Colours of queues: enough contrast on both backgrounds, distinct, and the same in every plot and table."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_lab.reporting.palette import DARK, LIGHT, OTHER_DARK, OTHER_LIGHT, QueueColours, line_style


def channels(colour: str) -> list[float]:
    """Return the linear red, green and blue of a colour."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def luminance(colour: str) -> float:
    """Return the relative luminance as in WCAG 2."""
    red, green, blue = channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio as in WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


STYLE = files("yunikorn_lab.reporting").joinpath("page.css").read_text("utf-8")
PAPER_LIGHT, PAPER_DARK = re.findall(r"--paper: (#[0-9a-f]{6})", STYLE)
PANELS, INKS = re.findall(r"--panel: (#[0-9a-f]{6})", STYLE), re.findall(r"--ink: (#[0-9a-f]{6})", STYLE)


@pytest.mark.parametrize(
    ("colours", "paper"), [((*LIGHT, *OTHER_LIGHT), PAPER_LIGHT), ((*DARK, *OTHER_DARK), PAPER_DARK)]
)
def test_every_colour_stands_out_from_the_background(colours: tuple[str, ...], paper: str) -> None:
    """WCAG 2 asks for a ratio of 3 of graphics."""
    assert {colour: contrast(colour, paper) for colour in colours if contrast(colour, paper) < 3} == {}


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_text_can_be_read(scheme: int) -> None:
    """WCAG 2 asks for a ratio of 4.5 of texts."""
    for name in ("ink", "faint", "link"):
        colour = re.findall(rf"--{name}: (#[0-9a-f]{{6}})", STYLE)[scheme]
        for background in ((PAPER_LIGHT, PAPER_DARK)[scheme], PANELS[scheme]):
            assert contrast(colour, background) >= 4.5, name


@pytest.mark.parametrize("colours", [(*LIGHT, *OTHER_LIGHT), (*DARK, *OTHER_DARK)])
def test_colours_are_far_apart(colours: tuple[str, ...]) -> None:
    distances = {
        (one, other): sum((a - b) ** 2 for a, b in zip(channels(one), channels(other), strict=True))
        for one, other in combinations(colours, 2)
    }
    assert min(distances.values()) > 0.01


@given(st.sets(st.text(min_size=1), min_size=1, max_size=64))
def test_what_is_no_queue_has_no_colour_of_a_queue(labels: set[str]) -> None:
    queues = QueueColours(labels)
    others = [line_style(number) for number in range(12)]
    assert len(set(others)) == 12
    assert not {queues[label].colour for label in labels} & {style.colour for style in others}


@given(st.sets(st.text(min_size=1), max_size=64))
def test_styles_differ_and_do_not_depend_on_the_order(labels: set[str]) -> None:
    ordered, reverse = QueueColours(sorted(labels)), QueueColours(sorted(labels, reverse=True))
    assert len({ordered[label] for label in labels}) == len(labels)
    assert {label: ordered[label] for label in labels} == {label: reverse[label] for label in labels}
