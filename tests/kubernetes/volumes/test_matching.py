"""Matching of claims and volumes, compared with a search through all assignments; books of placed pods."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.example_counts import examples
from tests.kubernetes.volumes.kit import Cluster
from tests.kubernetes.volumes.objects import claim, host, pod, storage_class, volume
from yunikorn_kubernetes.predicates.volume_binding import VolumeBinding
from yunikorn_kubernetes.predicates.volume_matching import VolumeMatching, assigned
from yunikorn_kubernetes.predicates.volume_terms import matches, read_terms
from yunikorn_kubernetes.volumes.cluster_volumes import VolumeConflict

DEMANDS = st.lists(st.lists(st.sampled_from("abcd"), unique=True).map(tuple), max_size=5)


def most_served(demands: Sequence[tuple[str, ...]]) -> int:
    """Return the largest number of demands that get volumes of their own, by trying everything."""
    best = 0
    for choice in product(*((*names, None) for names in demands)):
        taken = [name for name in choice if name is not None]
        if len(set(taken)) == len(taken):
            best = max(best, len(taken))
    return best


@pytest.mark.parametrize(
    "requirement",
    [
        {"operator": "In", "values": ["a"]},
        {"key": "zone", "operator": "Near", "values": ["a"]},
        {"key": "zone", "operator": "In"},
        {"key": "zone", "operator": "Gt", "values": ["a"]},
        {"key": "/zone", "operator": "Exists"},
        7,
    ],
)
def test_a_term_that_cannot_be_read_matches_nothing_and_the_others_count(requirement: Any) -> None:
    labels = {"zone": "a"}
    readable = {"matchExpressions": [{"key": "zone", "values": ["a"]}]}
    unreadable = {"matchExpressions": [requirement]}
    assert not matches(read_terms([unreadable]), labels)
    assert matches(read_terms([unreadable, readable]), labels)


@given(DEMANDS)
def test_as_many_claims_as_possible_get_a_volume_each(demands: list[tuple[str, ...]]) -> None:
    found = assigned(demands)
    taken = [name for name in found if name is not None]
    assert len(set(taken)) == len(taken) == most_served(demands)
    assert all(name is None or name in names for name, names in zip(found, demands, strict=True))


@given(DEMANDS, DEMANDS, st.lists(st.integers(0, 4)))
@settings(max_examples=examples(50))
def test_answers_do_not_depend_on_the_order_and_history_of_claims(
    present: list[tuple[str, ...]], wanted: list[tuple[str, ...]], order: list[int]
) -> None:
    straight, twisted = VolumeMatching(), VolumeMatching()
    for number, names in enumerate(present):
        straight.add(number, names)
    for number in order:
        if number in twisted:
            twisted.remove(number)
        elif number < len(present):
            twisted.add(number, present[number])
    for number, names in reversed(list(enumerate(present))):
        if number not in twisted:
            twisted.add(number, names)
    fits = most_served([*present, *wanted]) == most_served(present) + len(wanted)
    for one in (straight, twisted):
        assert len(one.assignment) == most_served(present)
        assert one.fit(wanted) == fits
        assert one.fit(wanted) == fits  # asking changes nothing
        assert len(one) == len(present)


def test_a_claim_gets_the_first_volume_that_no_other_claim_needs() -> None:
    assert assigned([("a", "b"), ("b", "a")]) == ["a", "b"]
    assert assigned([("a", "b"), ("a",)]) == ["b", "a"]
    assert assigned([("a", "b"), ("a",), ("b", "c")]) == ["b", "a", "c"]
    assert assigned([("a",), ("a",)]) == ["a", None]
    for demands in permutations([("a",), ("a", "b"), ("a", "b", "c")]):
        assert None not in assigned(demands)


SIZES = ("2Gi", "5Gi", "9Gi")


class PlacedPods(RuleBasedStateMachine):
    """Pods are placed where the predicate allows, and the shim assumes and binds in the same order."""

    @initialize(
        volumes=st.lists(st.tuples(st.sampled_from(["n1", "n2", ""]), st.sampled_from(SIZES)), max_size=6)
    )
    def build(self, volumes: list[tuple[str, str]]) -> None:
        self.cluster = Cluster(storage_class(), host("n1"), host("n2"))
        for number, (name, size) in enumerate(volumes):
            self.cluster.add(volume(f"v{number}", size, host=name))
        self.pods = 0
        self.waiting: list[str] = []
        self.placed: dict[str, str] = {}
        self.assumed: dict[str, Any] = {}

    @rule(sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=2))
    def submit(self, sizes: list[str]) -> None:
        name = f"p{self.pods}"
        self.pods += 1
        names = [f"{name}-{number}" for number in range(len(sizes))]
        self.cluster.add(
            *(claim(one, size) for one, size in zip(names, sizes, strict=True)), pod(name, *names)
        )
        self.waiting.append(name)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.waiting))
        at = data.draw(st.sampled_from(["n1", "n2"]))
        if self.cluster.refusal(name, at) is None:
            self.waiting.remove(name)
            self.cluster.place(name, at)
            self.placed[name] = at

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def assume(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.placed)))
        try:
            self.assumed[name] = self.cluster.volumes.assume(name, self.placed[name])
        except VolumeConflict:
            # Sizes are nested, so that in every order the smallest volume leaves enough for the others.
            raise AssertionError("the shim found no volumes although the books had room") from None
        self.cluster.add()

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.placed)))
        self.cluster.release(name)
        self.cluster.volumes.forget(name)
        self.cluster.add()
        del self.placed[name]
        self.assumed.pop(name, None)
        self.waiting.append(name)

    @invariant()
    def no_volume_is_chosen_twice(self) -> None:
        taken = [one for found in getattr(self, "assumed", {}).values() for one in found.bindings.values()]
        assert len(set(taken)) == len(taken)

    @invariant()
    def books_equal_recomputation(self) -> None:
        if not hasattr(self, "cluster"):
            return
        again = VolumeBinding()
        nodes = [self.cluster.node(name) for name in ("n1", "n2")]
        for one in nodes:
            again.node_added(one)
        for task, at in reversed(list(self.cluster._running.values())):
            again.placed(task, at)
        kept = self.cluster.predicates["volume-binding"]
        for name in (*self.waiting, *self.placed):
            for one in nodes:
                wanted = self.cluster.ask(name)
                assert again.check(wanted, one) == kept.check(wanted, one)


TestPlacedPods = PlacedPods.TestCase
TestPlacedPods.settings = settings(max_examples=examples(20), stateful_step_count=20, deadline=None)
