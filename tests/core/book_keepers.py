"""Plugins that keep books of running tasks, and the recount that their books must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from tests.core.predicate_tags import SHY, ZONE
from yunikorn import api
from yunikorn.model.allocation import TerminationType
from yunikorn.scheduling.partition_scheduler import PartitionScheduler

MOST = 2
Entry = tuple[str, str, str, str, str, bool, str]
"""Zone and id of the node, application, key, resources, True for a placeholder, and tags."""


def entry(task: api.Task, node: api.Node) -> Entry:
    amount = str(sorted((name, value) for name, value in task.resource.items() if value))
    tags = str(sorted(task.tags.items()))
    return node.attributes.get(ZONE, ""), node.id, task.app.id, task.key, amount, task.placeholder, tags


Foreign = tuple[Entry, int]
"""Entry and priority."""


def foreign_entry(task: api.Task, node: api.Node) -> Foreign:
    return entry(task, node), task.priority


class Keeping(api.Predicate):
    """Books with an entry for each task, and the nodes."""

    def __init__(self) -> None:
        self.books: Counter[Entry] = Counter()
        self.nodes: dict[str, str] = {}
        """Zone by node."""

    def placed(self, task: api.Task, node: api.Node) -> Iterable[Hashable] | None:
        assert self.nodes[node.id] == node.attributes.get(ZONE, "")
        assert not task.foreign
        self.books[entry(task, node)] += 1
        return None

    def released(self, task: api.Task, node: api.Node) -> Iterable[Hashable] | None:
        assert self.nodes[node.id] == node.attributes.get(ZONE, "")
        self.books[entry(task, node)] -= 1
        assert self.books[entry(task, node)] >= 0
        self.books = +self.books
        return None

    def node_added(self, node: api.Node) -> Iterable[Hashable] | None:
        assert node.id not in self.nodes
        self.nodes[node.id] = node.attributes.get(ZONE, "")
        return None

    def node_removed(self, node: api.Node) -> Iterable[Hashable] | None:
        del self.nodes[node.id]
        assert not [one for one in self.books if one[1] == node.id]
        return None

    def in_zone(self, app: api.Application, zone: str) -> int:
        return sum(count for one, count in self.books.items() if (one[0], one[2]) == (zone, app.id))


class Ledger(Keeping, api.Predicate):
    """Accepts everything."""

    name = "ledger"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None


class Witness(Ledger):
    """Keeps books of foreign tasks as well, with their tags."""

    name = "witness"
    counts_foreign = True

    def __init__(self) -> None:
        super().__init__()
        self.foreign: Counter[Foreign] = Counter()

    def placed(self, task: api.Task, node: api.Node) -> Iterable[Hashable] | None:
        if task.foreign:
            self.foreign[foreign_entry(task, node)] += 1
            assert self.foreign[foreign_entry(task, node)] == 1
            return None
        return super().placed(task, node)

    def released(self, task: api.Task, node: api.Node) -> Iterable[Hashable] | None:
        if task.foreign:
            del self.foreign[foreign_entry(task, node)]
            return None
        return super().released(task, node)

    def node_removed(self, node: api.Node) -> Iterable[Hashable] | None:
        assert not [one for one in self.foreign if one[0][1] == node.id]
        return super().node_removed(node)


class Few(Keeping, api.Predicate):
    """Accepts at most two tasks of an application per zone; answers by domain."""

    name = "few"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        zone = node.attributes.get(ZONE, "")
        return None if self.in_zone(ask.app, zone) < MOST else f"{MOST} tasks in zone {zone}"

    def ask_class(self, ask: api.Ask) -> str:
        return ask.app.id

    def domain(self, node: api.Node) -> str:
        return node.attributes.get(ZONE, "")

    def subjects(self, task: api.Task) -> tuple[str]:
        return (task.app.id,)


class Even(Keeping, api.Predicate):
    """Spreads the shy tasks of an application evenly over the zones; a placement may open other domains."""

    name = "even"

    def _least(self, app: api.Application) -> int:
        return min((self.in_zone(app, zone) for zone in set(self.nodes.values())), default=0)

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        if ask.tags.get(SHY) != "yes":
            return None
        ahead = self.in_zone(ask.app, node.attributes.get(ZONE, "")) - self._least(ask.app)
        return None if ahead < 1 else "other zones have fewer tasks"

    def ask_class(self, ask: api.Ask) -> Hashable:
        return ask.app.id if ask.tags.get(SHY) == "yes" else None

    def domain(self, node: api.Node) -> str:
        return node.attributes.get(ZONE, "")

    def subjects(self, task: api.Task) -> tuple[str]:
        return (task.app.id,)

    def placed(self, task: api.Task, node: api.Node) -> Iterable[Hashable] | None:
        before = self._least(task.app)
        super().placed(task, node)
        return None if self._least(task.app) == before else set(self.nodes.values())

    def node_removed(self, node: api.Node) -> Iterable[Hashable] | None:
        super().node_removed(node)
        return set(self.nodes.values())


class Alone(Keeping, api.Predicate):
    """Accepts one shy task per node; declares nothing, and prepares each search."""

    name = "alone"

    def prepare(self, ask: api.Ask) -> frozenset[str]:
        return frozenset(one[1] for one in self.books) if ask.tags.get(SHY) == "yes" else frozenset()

    def check(self, ask: api.Ask, node: api.Node, state: frozenset[str]) -> str | None:
        assert state == self.prepare(ask), "the state is out of date"
        return "not alone" if node.id in state else None


class Sparse(api.NodeSortPolicy):
    """Node order by the number of tasks in the books."""

    name = "sparse"

    def __init__(self) -> None:
        self.keeping = Keeping()

    @property
    def books(self) -> Counter[Entry]:
        return self.keeping.books

    @property
    def nodes(self) -> dict[str, str]:
        return self.keeping.nodes

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.keeping.placed(task, node)

    def released(self, task: api.Task, node: api.Node) -> None:
        self.keeping.released(task, node)

    def node_added(self, node: api.Node) -> None:
        self.keeping.node_added(node)

    def node_removed(self, node: api.Node) -> None:
        self.keeping.node_removed(node)

    def score(self, node: api.Node) -> int:
        return sum(count for one, count in self.books.items() if one[1] == node.id)


BOOK_KEEPERS = [Ledger, Few, Even, Alone, Witness]


def recount(at: PartitionScheduler) -> Counter[Entry]:
    """Return the entries of all tasks that run; a placeholder that is being replaced does not count."""
    found: Counter[Entry] = Counter()
    for app in at.partition.applications.values():
        for one in app.allocations.values():
            if one.releasing != TerminationType.PLACEHOLDER_REPLACED:
                found[entry(one, one.node)] += 1
            elif one.replacement is not None:
                found[entry(one.replacement, one.replacement.node)] += 1
    return found


def check_books(at: PartitionScheduler) -> None:
    """Assert that the books of all plugins equal a recount."""
    books = at.orders.books
    assert (at.partition.accounting.books is None) == (books is None)
    for keeper in books.keepers if books is not None else ():
        plugin: Any = keeper.plugin
        assert not keeper.failed
        if not hasattr(plugin, "books"):
            continue
        assert plugin.books == recount(at), plugin.name
        if keeper.counts_foreign:
            assert plugin.foreign == Counter(
                foreign_entry(one, one.node) for one in at.partition.foreign if not one.awaited
            )
        assert plugin.nodes == {
            node.id: node.attributes.get(ZONE, "") for node in at.partition.nodes.values()
        }
