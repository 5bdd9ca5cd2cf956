"""Devices of nodes and claims of tasks in scenarios."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn_commands.input_source import InputError
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_tags import read_wanted_claims
from yunikorn_lab.simulation.rm_state import CLAIMS, SLICES, claims_text, slices_text
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines


def test_the_names_are_those_of_the_predicate() -> None:
    assert (SLICES, CLAIMS) == (names.NODE_SLICES, names.TAG_CLAIMS)


def test_the_texts_are_read_by_the_predicate() -> None:
    wanted = read_wanted_claims(claims_text((("h100", 4), ('odd "name"', 1))))
    assert not wanted.problem
    rm: Any = RM(configuration(queue("a"), predicates=["dynamic-resources"]))
    rm.node("n1", {SLICES: slices_text("n1", (("h100", 8), ('odd "name"', 2)))}, vcore=9)
    rm.app()
    rm.ask(count=3, vcore=1, tags={CLAIMS: claims_text((("h100", 4), ('odd "name"', 1)))})
    assert len(rm.schedule()) == 2
    found = [json.loads(one.allocation_tags[names.TAG_DEVICES]) for one in rm.running.values()]
    assert [len(one[0]["allocation"]["devices"]["results"]) for one in found] == [5, 5]


SCENARIO = """
nodes:
  - {{name: gpu, count: 2, resources: {{vcore: 64}}, devices: {{h100: {devices}}}}}
applications:
  - {{id: t, queue: root.a, tasks: [{{resources: {{vcore: 1}}, runtime: 9m, claims: {{h100: {claims}}}}}]}}
"""


def test_devices_and_claims_are_read_and_written() -> None:
    found = read_scenario(SCENARIO.format(devices=8, claims=4), "file", "file")
    assert [dict(node.devices) for node in found.nodes] == [{"h100": 8}] * 2
    again = read_scenario("\n".join(scenario_lines(found)), "file", "file")
    (application,) = again.applications
    assert again.nodes == found.nodes
    assert dict(application.tasks[0].claims) == {"h100": 4}


@pytest.mark.parametrize(
    ("devices", "claims"), [("0", "1"), ("129", "1"), ("many", "1"), ("8", "33"), ("8", "-1")]
)
def test_wrong_numbers_are_problems(devices: str, claims: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scenario(SCENARIO.format(devices=devices, claims=claims), "file", "file")
    assert "for h100" in str(caught.value)
