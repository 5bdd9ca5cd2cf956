"""Free-room counts are updated incrementally, and always equal a full recount."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from yunikorn.resources import Resource
from yunikorn_lab.reporting.free_room import Room, Rooms, find_free_room

CHANGES = st.lists(
    st.tuples(st.sampled_from(["take", "switch", "remove", "resize", "look"]), st.sampled_from("abc")),
    max_size=30,
)
WAITING = Counter({Resource(vcore=2): 3, Resource(vcore=3, memory=1): 1, Resource(vcore=99): 7})


def recomputed(rooms: Rooms) -> Rooms:
    """Return equal rooms without cached counts."""
    copies = Rooms()
    for index, room in enumerate(rooms):
        copies.add(str(index), Room(room.capacity, index, dict(room.free), room.open))
    return copies


@given(CHANGES)
def test_incremental_counts_equal_full_counts(changes: list[tuple[str, str]]) -> None:
    rooms = Rooms()
    there: dict[str, Room] = {}
    for number, (change, name) in enumerate(changes):
        room = there.get(name)
        if room is None:
            room = there[name] = Room(Resource(vcore=4, memory=number % 2), number)
            rooms.add(name, room)
            room.take(room.capacity, -1)
        elif change == "take":
            room.take(Resource(vcore=1 + number % 3), 1 if number % 4 else -1)
        elif change == "switch":
            room.switch(not room.open)
        elif change == "remove":
            rooms.remove(name)
            del there[name]
        elif change == "resize":
            size = Resource(vcore=5 + number % 2)
            room.take(room.capacity, 1)
            rooms.resize(room, size)
            room.take(size, -1)
        else:
            assert find_free_room(rooms, WAITING) == find_free_room(recomputed(rooms), WAITING)
    assert rooms.spaces == recomputed(rooms).spaces
    assert +rooms.capacities == Counter(room.capacity for room in there.values())
