"""Contract test of books of running tasks, for predicates and node sort policies that keep some."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from yunikorn.api import Predicate
from yunikorn.testing.plugin_contract import PluginContract
from yunikorn.testing.samples import AllocationSample, AskSample, NodeSample, allocation

Placed = tuple[AllocationSample, NodeSample]
MOST = 40
"""Largest number of tasks in the books of a test."""


class _Keeper(Protocol):
    """A plugin that keeps books."""

    def placed(self, task: Any, node: Any) -> Any:
        """Add a task."""

    def released(self, task: Any, node: Any) -> Any:
        """Remove a task."""

    def node_added(self, node: Any) -> Any:
        """Add a node."""

    def node_removed(self, node: Any) -> Any:
        """Remove a node."""


class BooksContract(PluginContract):
    """Tests of plugins with `placed` and `released`; plugins without them pass."""

    def hosts(self) -> Sequence[NodeSample]:
        """Return the nodes in the books."""
        raise NotImplementedError

    def requests(self) -> Sequence[AskSample]:
        """Return the requests whose tasks enter the books."""
        raise NotImplementedError

    def all_answers(self, plugin: Any) -> Mapping[str, Any]:
        """Return all answers of the plugin by question."""
        raise NotImplementedError

    def tasks(self) -> list[Placed]:
        """Return each request as an allocation on some of the nodes, twice on the first."""
        hosts, found = self.hosts(), []
        for number, wanted in enumerate(self.requests()):
            for copy, at in enumerate((number, number, number + 1)):
                host = hosts[at % len(hosts)]
                found.append((allocation(wanted, host, f"{wanted.key}#{number}-{copy}"), host))
        return found[:MOST]

    def keeping(self) -> Any:
        """Return a new object whose books have all nodes; None if the class keeps no books."""
        plugin: _Keeper = self.fresh()
        if getattr(type(plugin), "placed") is getattr(self.kind.base, "placed"):  # noqa: B009
            return None
        for host in self.hosts():
            plugin.node_added(host)
        return plugin

    def test_release_restores_the_books(self) -> None:
        """Check that `released` undoes `placed`, in reverse and in the same order."""
        plugin = self.keeping()
        if plugin is None:
            return
        tasks = self.tasks()
        for order, gone in (("reverse", tasks[::-1]), ("the same", tasks)):
            answers, books = self.all_answers(plugin), _state(plugin)
            for task, host in tasks:
                plugin.placed(task, host)
            for task, host in gone:
                plugin.released(task, host)
            when = f"after {len(tasks)} tasks were placed, and released in {order} order"
            _compare(answers, self.all_answers(plugin), when)
            for name, value in _state(plugin).items():
                assert value == books.get(name), (
                    f"{name} is {value!r} {when}, and was {books.get(name)!r} before: released() must remove "
                    "all that placed() has added, counts of zero included, or the books grow without bound"
                )

    def test_books_do_not_depend_on_order(self) -> None:
        """Check that the order in which tasks are placed and released does not matter."""
        first, second = self.keeping(), self.keeping()
        if first is None:
            return
        tasks = self.tasks()
        for task, host in tasks:
            first.placed(task, host)
        for task, host in reversed(tasks):
            second.placed(task, host)
        why = "order does not matter: a reload fills new books in order of placement"
        _compare(self.all_answers(first), self.all_answers(second), f"with tasks placed in reverse ({why})")
        half = tasks[::2]
        for task, host in half:
            first.released(task, host)
        third = self.keeping()
        for task, host in tasks[1::2]:
            third.placed(task, host)
        _compare(
            self.all_answers(first), self.all_answers(third), "without the tasks that were released before"
        )

    def test_requests_and_allocations_count_alike(self) -> None:
        """Check that a tried placement, with a request, has the effect of an allocation."""
        first, second = self.keeping(), self.keeping()
        if first is None:
            return
        for wanted, host in zip(self.requests(), self.hosts(), strict=False):
            first.placed(wanted, host)
            second.placed(allocation(wanted, host), host)
        _compare(
            self.all_answers(second),
            self.all_answers(first),
            "if placed(task, node) gets requests: use the fields that requests and allocations share",
        )

    def test_refusals_end_only_where_the_books_say_so(self) -> None:
        """Check `domain`, `subjects` and the results of `placed` and `released` against the answers.

        The scheduler checks no other refusal again, so that a request would stay pending.
        """
        plugin = self.keeping()
        if plugin is None or not isinstance(plugin, Predicate) or not _declares(plugin, "domain"):
            return
        tasks = self.tasks()
        steps = [("placed", *one) for one in tasks] + [("released", *one) for one in tasks]
        before = self._by_domain(plugin)
        for method, task, host in steps:
            others = getattr(plugin, method)(task, host)
            domains = set(others or ()) | ({plugin.domain(host)} if method == "released" else set())
            subjects = set(plugin.subjects(task))
            after = self._by_domain(plugin)
            for key, (answer, wanted) in after.items():
                if answer is not None or before[key][0] is None:
                    continue
                what = (
                    f"{method}({task.key}, {host.id}) ends the refusal of {wanted.key} in domain {key[1]!r}"
                )
                assert key[1] in domains, (
                    f"{what}, which is not the domain of {host.id}: return this domain from {method}()"
                )
                assert subjects & set(plugin.subjects(wanted)), (
                    f"{what}, although {task.key} and {wanted.key} have no subject in common: "
                    f"{subjects!r} and {set(plugin.subjects(wanted))!r}"
                )
            before = after

    def _by_domain(self, plugin: Any) -> dict[tuple[Hashable, Hashable], tuple[str | None, AskSample]]:
        """Return answer and request by ask class and domain; all answers for such a pair are equal."""
        found: dict[tuple[Hashable, Hashable], tuple[str | None, AskSample]] = {}
        for wanted in self.requests():
            for host in self.hosts():
                key = plugin.ask_class(wanted), plugin.domain(host)
                answer = answer_of(plugin, wanted, host)
                known, first = found.setdefault(key, (answer, wanted))
                assert known == answer, (
                    f"the answers for {first.key} and {wanted.key} in domain {key[1]!r} are {known!r} and "
                    f"{answer!r}, although the ask classes are equal: {key[0]!r}"
                )
        return found


def answer_of(predicate: Any, wanted: AskSample, host: NodeSample, method: str = "check") -> Any:
    """Return the answer of a predicate, with the state that its `prepare` returns if it has one."""
    if method != "check" or not _declares(predicate, "prepare"):
        return getattr(predicate, method)(wanted, host)
    return predicate.check(wanted, host, predicate.prepare(wanted))


def _declares(predicate: Any, method: str) -> bool:
    return getattr(type(predicate), method) is not getattr(Predicate, method)


def _compare(first: Mapping[str, Any], second: Mapping[str, Any], when: str) -> None:
    for question, one in first.items():
        other = second[question]
        assert one == other, f"{question} is {one!r}, but {other!r} {when}"


def _state(plugin: Any) -> dict[str, Any]:
    """Return copies of the mappings, sets and lists among the attributes of a plugin."""
    names = [*getattr(plugin, "__dict__", ())]
    for cls in type(plugin).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    found = {name: getattr(plugin, name, None) for name in names if name != "__weakref__"}
    return {name: _copied(value) for name, value in found.items() if isinstance(value, dict | set | list)}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return set(value) if isinstance(value, set) else value
