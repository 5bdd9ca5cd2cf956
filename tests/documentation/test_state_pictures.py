"""The pictures of state machines in the site match the machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.documentation.pages import CHECKOUT
from yunikorn.states import Lifecycle
from yunikorn_lab.commands.states import lifecycles

SVG = "{http://www.w3.org/2000/svg}"
DRAW = "draw it again: python docs/images/draw_states.py"


def texts(kind: str, lifecycle: Lifecycle[Any]) -> Iterator[tuple[str, list[str]]]:
    """Return title and label of every `node` or `edge` of a picture."""
    path = CHECKOUT / "docs" / "images" / "states" / f"{lifecycle.name.lower().replace(' ', '-')}.svg"
    for group in ElementTree.parse(path).iter(f"{SVG}g"):
        if group.get("class") == kind:
            yield group.findtext(f"{SVG}title", ""), [text.text or "" for text in group.iter(f"{SVG}text")]


@pytest.mark.parametrize("lifecycle", lifecycles(), ids=lambda lifecycle: lifecycle.name)
def test_a_picture_shows_the_states_and_the_events_of_its_machine(lifecycle: Lifecycle[Any]) -> None:
    assert {title for title, _ in texts("node", lifecycle)} == set(lifecycle.states), DRAW
    shown = {
        (source, event, target)
        for title, labels in texts("edge", lifecycle)
        for source, _, target in [title.partition("->")]
        for label in labels
        for event in label.strip().split(", ")
    }
    declared = {(source, event, target) for event, sources, target in lifecycle.table for source in sources}
    assert shown == declared, DRAW
