"""Contract test of books of running tasks, for predicates and node sort policies that keep some."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from yunikorn.api import NodeSortPolicy, Predicate, Where
from yunikorn_testing.answers_contract import AnswersContract, Question
from yunikorn_testing.samples import AllocationSample, AskSample, NodeSample, allocation, foreign_task

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


class BooksContract(AnswersContract):
    """Tests of plugins with `placed` and `released`; plugins without them pass."""

    def hosts(self) -> Sequence[NodeSample]:
        """Return the nodes in the books."""
        raise NotImplementedError

    def requests(self) -> Sequence[AskSample]:
        """Return the requests whose tasks enter the books."""
        raise NotImplementedError

    def all_answers(self, plugin: Any) -> Mapping[str, Any]:
        """Return all answers of the plugin by question."""
        return {question.text: question.put(plugin) for question in self.questions()}

    def tasks(self) -> list[Placed]:
        """Return each request as an allocation on some of the nodes, twice on the first.

        A class with `counts_foreign` gets a foreign task with the tags of each request as well.
        """
        hosts, found = self.hosts(), []
        for number, wanted in enumerate(self.requests()):
            for copy, at in enumerate((number, number, number + 1)):
                host = hosts[at % len(hosts)]
                found.append((allocation(wanted, host, f"{wanted.key}#{number}-{copy}"), host))
            if getattr(self.fresh(), "counts_foreign", False):
                host = hosts[number % len(hosts)]
                found.append((_foreign(wanted, host, number), host))
        return found[:MOST]

    def side_questions(self) -> Sequence[Question]:
        """Return calls of the books."""
        return self.book_questions()

    def book_questions(self) -> list[Question]:
        """Return calls that add a task to the books and remove it; none for a class without books."""
        if not self._keeps_books(self.given):
            return []
        return [
            Question(
                f"placed({wanted.key}, {host.id})",
                partial(_place_and_release, wanted=wanted, task=allocation(wanted, host), host=host),
                _no_fault,
            )
            for wanted in self.requests()
            for host in self.hosts()[:2]
        ]

    def _keeps_books(self, plugin: Any) -> bool:
        return getattr(type(plugin), "placed") is not getattr(self.kind.base, "placed")  # noqa: B009

    def keeping(self) -> Any:
        """Return a new object whose books have all nodes; None if the class keeps no books."""
        plugin: _Keeper = self.fresh()
        if not self._keeps_books(plugin):
            return None
        for host in self.hosts():
            plugin.node_added(host)
        if isinstance(plugin, Predicate | NodeSortPolicy):
            for wanted in self.requests():
                # As in the scheduler, requests have classes before their tasks are placed.
                plugin.ask_class(wanted)
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

    def test_commit_returns_tags_and_leaves_the_books(self) -> None:
        """Check that `commit` returns tags for an accepted node, twice the same, and changes nothing."""
        plugin = self.keeping()
        if plugin is None or not isinstance(plugin, Predicate) or not declares(plugin, "commit"):
            return
        for wanted in self.requests():
            for host in self.hosts():
                if answer_of(plugin, wanted, host) is not None:
                    continue
                books = _state(plugin)
                tags = plugin.commit(wanted, host)
                what = f"commit({wanted.key}, {host.id})"
                texts = () if tags is None else [one for pair in dict(tags).items() for one in pair]
                assert all(type(one) is str for one in texts), (
                    f"{what} is {tags!r}: return a mapping of texts"
                )
                again = plugin.commit(wanted, host)
                assert tags == again, f"{what} is {tags!r}, and {again!r} the second time"
                assert _state(plugin) == books, f"{what} changes the books: placed() is called next, and does"

    def test_refusals_end_only_where_the_books_say_so(self) -> None:
        """Check `domain`, `subjects` and the results of `placed` and `released` against the answers.

        The scheduler checks no other refusal again, so that a request would stay pending.
        """
        plugin = self.keeping()
        if plugin is None or not isinstance(plugin, Predicate) or not _has_domains(plugin):
            return
        tasks = self.tasks()
        steps = [("placed", *one) for one in tasks] + [("released", *one) for one in tasks]
        before = self._refusals(plugin)
        for method, task, host in steps:
            others = getattr(plugin, method)(task, host)
            subjects = set(plugin.subjects(task))
            after = self._refusals(plugin)
            for key, (wanted, reason) in before.items():
                if key in after or not self._accepts(plugin, wanted, key):
                    continue
                what = (
                    f"{method}({task.key}, {host.id}) ends the refusal of {wanted.key} in domain {key[1]!r} "
                    f"({reason!r})"
                )
                opened = set(others) if others is not None and not isinstance(others, Where) else set()
                if method == "released" or others is Where.HERE:
                    opened.add(_domain(plugin, host, key[2]))
                assert key[1] in opened or others is Where.EVERYWHERE, (
                    f"{what}, which is not the domain of {host.id}: return this domain from {method}()"
                )
                assert subjects & set(plugin.subjects(wanted)), (
                    f"{what}, although {task.key} and {wanted.key} have no subject in common: "
                    f"{subjects!r} and {set(plugin.subjects(wanted))!r}"
                )
            before = after

    def _accepts(self, plugin: Any, wanted: AskSample, key: tuple[Hashable, Hashable, Hashable]) -> bool:
        """Return True if a node of a domain accepts a request."""
        _, domain, scope = key
        return any(
            answer_of(plugin, wanted, host) is None
            for host in self.hosts()
            if _domain(plugin, host, scope) == domain
        )

    def _refusals(self, plugin: Any) -> dict[tuple[Hashable, Hashable, Hashable], tuple[AskSample, str]]:
        """Return request and reason by ask class, domain and scope; all nodes of the domain must refuse."""
        found: dict[tuple[Hashable, Hashable, Hashable], tuple[AskSample, str]] = {}
        answers = [
            (wanted, host, answer_of(plugin, wanted, host))
            for wanted in self.requests()
            for host in self.hosts()
        ]
        for wanted, host, answer in answers:
            if answer is not None:
                scope = plugin.scope(wanted, host) if declares(plugin, "domain_in") else None
                found[plugin.ask_class(wanted), _domain(plugin, host, scope), scope] = wanted, answer
        scopes = {scope for _, _, scope in found}
        for wanted, host, answer in answers:
            for scope in scopes if answer is None else ():
                key = plugin.ask_class(wanted), _domain(plugin, host, scope), scope
                assert key not in found, (
                    f"the answers for {found[key][0].key} and {wanted.key} in domain {key[1]!r} are "
                    f"{found[key][1]!r} and None, although the ask classes are equal: {key[0]!r}"
                )
        return found


def _place_and_release(plugin: Any, wanted: Any, task: Any, host: Any) -> None:
    plugin.node_added(host)
    if isinstance(plugin, Predicate):
        plugin.ask_class(wanted)
    plugin.placed(task, host)
    plugin.released(task, host)
    plugin.node_removed(host)


def _no_fault(answer: Any) -> str:
    return ""


def _foreign(wanted: AskSample, host: NodeSample, number: int) -> AllocationSample:
    """Return a foreign task with the tags and the amount of a request."""
    task = foreign_task(f"foreign-{number}", host, tags={**wanted.tags, "foreign": "default"})
    return attrs.evolve(task, resource=wanted.resource)


def answer_of(predicate: Any, wanted: AskSample, host: NodeSample, method: str = "check") -> Any:
    """Return the answer of a predicate, with the state that its `prepare` returns if it has one."""
    if method != "check" or not declares(predicate, "prepare"):
        return getattr(predicate, method)(wanted, host)
    return predicate.check(wanted, host, predicate.prepare(wanted))


def _has_domains(predicate: Any) -> bool:
    return declares(predicate, "domain") or declares(predicate, "domain_in")


def _domain(predicate: Any, host: NodeSample, scope: Hashable) -> Hashable:
    """Return the domain of a node for refusals of a scope."""
    found: Hashable
    found = predicate.domain_in(host, scope) if declares(predicate, "domain_in") else predicate.domain(host)
    return found


def declares(predicate: Any, method: str) -> bool:
    """Return True if the class of a predicate has a method of its own."""
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
