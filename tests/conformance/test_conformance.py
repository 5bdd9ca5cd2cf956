"""Every history has the same outcome over every transport: decisions, their order, refusals and reasons."""

from __future__ import annotations

import functools

import pytest

from tests.conformance.scenario_rm import History, ScenarioRM
from tests.conformance.scenarios import SCENARIOS, Scenario
from tests.conformance.transports import TRANSPORTS
from yunikorn.framework.registry import Registry


def history_of(registry: Registry, scenario: Scenario, transport: str) -> History:
    """Return the responses to a history over a transport; the history checks its own assertions."""
    rm = ScenarioRM(functools.partial(TRANSPORTS[transport], registry, scenario.config), scenario.predicate)
    with rm.transport:
        scenario.run(rm)
    return rm.history


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_all_transports_give_equal_responses(registry: Registry, scenario: Scenario) -> None:
    expected = history_of(registry, scenario, "in-process")
    for transport in ("Update", "split"):
        assert history_of(registry, scenario, transport) == expected, transport
