"""Predicates that declare all, some or none of their inputs, each with a plain function for the reference."""

from __future__ import annotations

from functools import cache

from tests.core.book_keepers import BOOK_KEEPERS, Sparse
from tests.core.doorkeepers import DOORKEEPERS
from tests.core.drawn_quotas import QUOTAS
from tests.core.gatekeepers import GATEKEEPERS
from tests.core.kit import with_plugins
from tests.core.predicate_tags import DISK, SHY, ZONE
from tests.core.reference import Ask, Node
from tests.core.reservers import RESERVERS
from tests.core.victim_choosers import VICTIM_CHOOSERS
from yunikorn import api
from yunikorn.framework.registry import Registry

CROWD = 3


class Zone(api.Predicate):
    """Places asks in the zone of their tag; declares all inputs."""

    name = "zone"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get(ZONE, "")
        return None if wanted in ("", node.attributes.get(ZONE)) else f"not in zone {wanted}"

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get(ZONE, "")

    def node_class(self, node: api.Node) -> str:
        return node.attributes.get(ZONE, "")


class Crowd(api.Predicate):
    """Places asks tagged shy on nodes with few allocations; declares its inputs from the ask only."""

    name = "crowd"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        crowded = sum(node.allocated.values()) > CROWD and ask.tags.get(SHY) == "yes"
        return "crowded" if crowded else None

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get(SHY, "")


class Disk(api.Predicate):
    """Places asks on nodes with the disk of their tag; declares no inputs."""

    name = "disk"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get(DISK, "")
        return None if wanted in ("", node.attributes.get(DISK)) else f"no {wanted}"


class Snug(api.NodeSortPolicy):
    """Node order by the least room left over; differs between ask classes."""

    name = "snug"

    def score(self, node: api.Node, ask_class: api.AskClass) -> int:
        return sum(node.available.get(name, 0) - amount for name, amount in ask_class.resource.items())


def in_zone(ask: Ask, node: Node) -> bool:
    return ask.tags.get(ZONE, "") in ("", node.attributes.get(ZONE))


def not_crowded(ask: Ask, node: Node) -> bool:
    return sum(sum(one.resource.values()) for one in node.running) <= CROWD or ask.tags.get(SHY) != "yes"


def has_disk(ask: Ask, node: Node) -> bool:
    return ask.tags.get(DISK, "") in ("", node.attributes.get(DISK))


CHECKS = {"zone": in_zone, "crowd": not_crowded, "disk": has_disk}


@cache
def plugins() -> Registry:
    """Return a registry of the default plugins and those above; cached because it does not change."""
    return with_plugins(
        predicates=[Zone, Crowd, Disk, *BOOK_KEEPERS],
        node_sort_policies=[Snug, Sparse],
        admission_policies=DOORKEEPERS,
        reservation_policies=RESERVERS,
        quota_policies=QUOTAS,
        permit_policies=GATEKEEPERS,
        preemption_policies=VICTIM_CHOOSERS,
    )
