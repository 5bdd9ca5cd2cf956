"""Any value in any field of any entry: no exception, and the entry beside it is accepted."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from tests.core.kit import RM
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    PreemptionPolicy,
    RemoveApplicationRequest,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource

ONE = Resource(vcore=1)
STRANGE: list[Any] = [
    None, 5, -1, 2**70, 1.5, float("nan"), True, "", "x", "\0", "\ud800", b"", [], {}, [None], {"a": None},
    {None: "a"}, object(), int, Resource(vcore=-(2**63)), Resource({"": 0}), UserGroupInformation("\n"),
    PreemptionPolicy(None, "x"),  # type: ignore[arg-type]
]  # fmt: skip

ENTRIES: dict[str, Any] = {
    "new_applications": AddApplicationRequest("other", "root.a", "", UserGroupInformation("user")),
    "remove_applications": RemoveApplicationRequest("other"),
    "asks": AllocationAsk("other", "app", "", ONE),
    "allocations": Allocation("other", "app", "other", "n1", ONE),
    "new_schedulable_nodes": NewNodeInfo(
        "other", {}, ONE, Resource(), [Allocation("o", "app", "o", "", ONE)]
    ),
    "updated_nodes": UpdateNodeInfo("n1"),
}


def variants(entry: Any) -> list[Any]:
    """Return the entry with each strange value in each of its fields."""
    fields = [field.name for field in attrs.fields(type(entry))]
    return [attrs.evolve(entry, **{name: value}) for name, value in itertools.product(fields, STRANGE)]


def busy() -> RM:
    """Return an RM with a node, and an application with an ask and an allocation."""
    rm = RM()
    rm.node(vcore=10**6)
    rm.app()
    rm.ask(key="app", vcore=1)
    rm.schedule()
    return rm


@pytest.mark.parametrize("kind", ENTRIES)
def test_strange_values_in_entries(kind: str) -> None:
    rm = busy()
    for number, entry in enumerate(variants(ENTRIES[kind])):
        if kind == "new_schedulable_nodes" and not isinstance(entry.existing_allocations, list):
            continue  # refused as a whole: no list of messages
        if kind == "new_schedulable_nodes" and None in entry.existing_allocations:
            continue
        good = AllocationAsk(f"good-{number}", "app", "", ONE)
        entries = [entry, good] if kind == "asks" else [entry]
        rm.update(**{"asks": [good], kind: entries})
        assert f"good-{number}" in rm.find_app().asks
        rm.release_ask(key=f"good-{number}")
    assert rm.failures() == []
    rm.schedule()


@pytest.mark.parametrize(
    "entry",
    [
        AllocationRelease("other", "other", "", message="x", allocation_key="o"),
        AllocationAskRelease("other", "o"),
    ],
    ids=lambda entry: type(entry).__name__,
)
def test_strange_values_in_releases(entry: Any) -> None:
    rm = busy()
    for number, strange in enumerate(variants(entry)):
        rm.ask(key=f"good-{number}", vcore=1)
        good = AllocationAskRelease("app", f"good-{number}")
        mine = isinstance(entry, AllocationRelease)
        rm.update(
            releases=AllocationReleasesRequest([strange] if mine else [], [good] if mine else [strange, good])
        )
        assert f"good-{number}" not in rm.find_app().asks
    assert list(rm.find_app().allocations) == ["app#1"]
    assert rm.failures() == []
