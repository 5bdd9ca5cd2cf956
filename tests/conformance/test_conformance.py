"""Every history has the same outcome at every door: decisions, their order, refusals and reasons."""

from __future__ import annotations

import functools

import pytest

from tests.conformance.doors import DOORS
from tests.conformance.scenarios import SCENARIOS, Scenario
from tests.conformance.story import History, Story
from yunikorn.framework.registry import Registry


def history_of(registry: Registry, story: Scenario, door: str) -> History:
    """Return the responses to a history at a door; the history checks its own assertions."""
    told = Story(functools.partial(DOORS[door], registry, story.config), story.predicate)
    with told.door:
        story.tell(told)
    return told.history


@pytest.mark.parametrize("story", SCENARIOS, ids=lambda story: story.name)
def test_all_transports_give_equal_responses(registry: Registry, story: Scenario) -> None:
    expected = history_of(registry, story, "in-process")
    for door in ("Update", "split"):
        assert history_of(registry, story, door) == expected, door
