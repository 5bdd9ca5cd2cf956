"""Readers of changes: they come and go with what they serve, however often a configuration is loaded."""

from __future__ import annotations

from typing import Any

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api

PLAIN: dict[str, Any] = {}
BOUNDED: dict[str, Any] = {"reservations": {"policy": "standard", "perqueue": 1}, "permits": ["always"]}


class Always(api.PermitPolicy):
    """Permits every placement."""

    name = "always"

    def permit(self, allocation: api.Allocation) -> None:
        """Permit the placement."""


def readers(rm: RM) -> dict[str, int]:
    """Return the number of readers of each change."""
    found = rm.at_work().partition.changes.readers
    return {name: len(getattr(found, name)) for name in dir(found) if not name.startswith("_")}


def test_readers_do_not_accumulate_over_hundreds_of_reloads() -> None:
    rm = RM(configuration(**PLAIN), with_plugins(permit_policies=[Always]))
    rm.node("n1", vcore=4)
    rm.app()
    plain = readers(rm)
    for number in range(100):
        assert rm.reload(configuration(queue("a"), queue(f"b{number % 3}"), **BOUNDED))
        assert readers(rm) == plain
        assert rm.reload(configuration(queue("a"), queue(f"b{number % 3}"), **PLAIN))
        assert readers(rm) == plain
    rm.ask(key="task", vcore=1)
    assert rm.schedule() == [("app", "task", "n1")]
