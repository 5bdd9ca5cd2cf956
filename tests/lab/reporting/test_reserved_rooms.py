"""The free room of reserved nodes is updated incrementally, and always equals a full recount."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from yunikorn.resources import Resource
from yunikorn_lab.reporting.free_room import RampSum, ReservedRooms, Room

SIZES = (Resource(vcore=2), Resource(vcore=3, memory=1), Resource(memory=4))
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["take", "give", "switch", "reserve", "leave", "request"]),
        st.sampled_from("abc"),
        st.sets(st.sampled_from(SIZES)),
        st.integers(0, 40),
    ),
    max_size=40,
)


@given(CHANGES)
def test_incremental_amounts_equal_a_recount(changes: list[tuple[str, str, set[Resource], int]]) -> None:
    requests = dict.fromkeys(SIZES, 1)

    def wanted(name: str, sizes: Iterable[Resource]) -> int:
        return sum(requests[size] * size.get(name, 0) for size in sizes)

    capacity = Resource(vcore=8, memory=6)
    rooms = {name: Room(capacity, 0, {"vcore": 8, "memory": 6}) for name in "abc"}
    reserved, of_node = ReservedRooms(wanted), dict[str, set[Resource]]()
    for change, node, sizes, number in changes:
        changed = set[Resource]()
        if change in ("take", "give"):
            rooms[node].take(SIZES[number % len(SIZES)], 1 if change == "take" else -1)
        elif change == "switch":
            rooms[node].switch(not rooms[node].open)
        elif change == "request":
            changed = sizes
            requests.update(dict.fromkeys(sizes, number))
        else:
            of_node[node] = sizes if change == "reserve" else set()
            reserved.set(node, rooms[node] if change == "reserve" else None, sizes)
        reserved.refresh(changed)
        for name in ("vcore", "memory"):
            expected = sum(
                min(max(room.free.get(name, 0), 0), max(number - wanted(name, of_node[at]), 0))
                for at, room in rooms.items()
                if room.open and of_node.get(at)
            )
            assert reserved.kept(name, number) == expected


@given(st.lists(st.tuples(st.integers(-9, 9), st.booleans(), st.integers(-9, 9)), max_size=40))
def test_sums_of_ramps(steps: list[tuple[int, bool, int]]) -> None:
    ramps, points = RampSum(), list[int]()
    for point, more, at in steps:
        if more:
            ramps.add(point)
            points.append(point)
        elif point in points:
            ramps.remove(point)
            points.remove(point)
        assert ramps.at(at) == sum(max(at - each, 0) for each in points)


def test_a_node_that_returns_counts_once() -> None:
    reserved = ReservedRooms(lambda name, sizes: 0)
    for free in (8, 5):
        reserved.set("a", Room(Resource(vcore=8), 0, {"vcore": free}), {SIZES[0]})
    reserved.refresh(())
    assert reserved.kept("vcore", 100) == 5
