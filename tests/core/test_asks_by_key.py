"""Releases that name an allocation key only apply to the first application with an ask of this key."""

from __future__ import annotations

import random

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.interface.messages import AllocationAsk, AllocationAskRelease, UpdateRequest
from yunikorn.resources import Resource


@pytest.mark.parametrize("seed", range(3))
def test_release_by_key_alone_applies_to_the_first_application_with_the_key(seed: int) -> None:
    rm = RM(configuration(queue("a")))
    rm.node("n1", vcore=5)
    one_in_n, asked = random.Random(seed), dict[str, set[str]]()
    released = unknown = 0
    for step in range(600):
        act, keys = one_in_n.random(), [f"k{number}" for number in one_in_n.sample(range(6), 3)]
        app_id = f"app{one_in_n.randrange(8)}"
        rm.take_response()
        if act < 0.1:
            rm.remove_app(app_id)
            asked.pop(app_id, None)
        elif act < 0.3 and app_id not in asked:
            rm.app(app_id)
            asked[app_id] = set()
        elif act < 0.5 and app_id in asked:
            # Plain asks, which are booked as a batch.
            rm.scheduler.update(
                UpdateRequest("rm", asks=[AllocationAsk(key, app_id, "", Resource(vcore=9)) for key in keys])
            )
            asked[app_id] |= set(keys)
        elif act < 0.6 and app_id in asked:
            rm.ask(app_id, keys[0], tags={"any": "tag"}, vcore=9)
            asked[app_id].add(keys[0])
        elif act < 0.7 and app_id in asked and keys[0] in asked[app_id]:
            rm.release_ask(app_id, keys[0])
            asked[app_id].remove(keys[0])
        else:
            owner = next((one for one, has in asked.items() if keys[0] in has), None)
            rm.release_ask("", keys[0])
            ended = rm.take_response().released_allocation_asks
            if owner is None:
                unknown += 1
            else:
                assert ended[0] == AllocationAskRelease(
                    owner,
                    keys[0],
                    ended[0].partition_name,
                    ended[0].termination_type,
                    ended[0].message,
                ), step
                asked[owner].remove(keys[0])
                released += 1
            assert {one: set(rm.find_app(one).asks) for one in asked} == asked
    assert (released > 50, unknown > 20) == (True, True), (released, unknown)
