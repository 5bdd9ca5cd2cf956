"""Contract test of predicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import attrs

from yunikorn.api import Predicate
from yunikorn.framework.kinds import PREDICATE
from yunikorn.resources import Resource
from yunikorn_testing.answers_contract import Question, fault_of_class
from yunikorn_testing.books_contract import BooksContract, answer_of, declares
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import (
    Amounts,
    AskSample,
    NodeSample,
    application,
    ask,
    busy_node,
    node,
    with_task,
)


class PredicateContract(BooksContract):
    """Tests that a predicate must pass; set `predicate = Mine(...)`.

    Override `asks` and `nodes` with cases that matter to the predicate, because wrong class declarations are
    only found with such cases.
    """

    kind = PREDICATE
    subject = "predicate"
    predicate: ClassVar[Predicate]

    def name_in(self, document: Yaml) -> None:
        """Add the predicate as the only one of the partition."""
        document["partitions"][0]["predicates"] = [self.named("name")]

    def asks(self) -> Sequence[AskSample]:
        """Return requests with and without tags."""
        tagged = application("tagged", tags={"zone": "a", "team": "physics"})
        return [
            ask("plain", vcore=1),
            ask("again", vcore=1),
            ask("tagged", vcore=1, tags={"zone": "a"}),
            ask("by-application", vcore=2, app=tagged),
            ask("both", memory="1Gi", app=tagged, tags={"zone": "b", "": ""}),
            ask("nothing"),
            ask("another", app=with_task(application("running", tags={"team": "physics"})), vcore=1),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        """Return nodes with and without attributes, free and full."""
        size: Amounts = {"vcore": 8, "memory": "16Gi"}
        return [
            node("plain", capacity=size),
            node("full", capacity=size, allocated=size),
            node("zone-a", {"zone": "a"}, capacity=size),
            node("zone-b", {"zone": "b", "rack": "7"}, capacity=size),
            node("strange", {"zone": "", "taints": "?!"}, capacity=size),
            node("nothing"),
            busy_node(),
        ]

    def test_answers_for_many_nodes_equal_answers_for_single_nodes(self) -> None:
        """Check that `check_nodes` gives the same answers as calls for single nodes."""
        predicate, nodes = self.fresh(), self.nodes()
        for wanted in self.asks():
            for allocate, method in ((True, "check"), (False, "check_reservation")):
                together = list(predicate.check_nodes(wanted, nodes, allocate=allocate))
                alone = [answer_of(predicate, wanted, found, method) for found in nodes]
                assert together == alone, (
                    f"check_nodes({wanted.key}, all nodes, allocate={allocate}) is {together!r}, "
                    f"but {method} for each node is {alone!r}: both must agree, because the scheduler "
                    "may call either"
                )

    def test_equal_classes_have_equal_answers(self) -> None:
        """Check that equal classes get equal answers, because the scheduler asks once per pair of classes."""
        predicate = self.fresh()
        if not declares(predicate, "ask_class"):
            return
        known: dict[Any, tuple[str, str | None]] = {}
        for wanted, found in self._pairs():
            of_node = predicate.node_class(found) if declares(predicate, "node_class") else found.id
            classes = (predicate.ask_class(wanted), of_node)
            answer = answer_of(predicate, wanted, found)
            first, before = known.setdefault(classes, (f"check({wanted.key}, {found.id})", answer))
            assert answer == before, (
                f"{first} is {before!r} and check({wanted.key}, {found.id}) is {answer!r}, although the "
                f"classes are equal: {classes!r}; the scheduler asks once per pair of classes, so include "
                "everything that check() reads in ask_class() or node_class()"
            )

    def test_class_of_a_request_has_what_the_answer_depends_on(self) -> None:
        """Check that requests of one class, but of another priority or role, get equal answers."""
        predicate = self.fresh()
        if not declares(predicate, "ask_class"):
            return
        for wanted, found in self._pairs():
            answer, of_ask = answer_of(predicate, wanted, found), predicate.ask_class(wanted)
            for name, value in OTHER_VALUES:
                other = attrs.evolve(wanted, **{name: value})
                if predicate.ask_class(other) != of_ask:
                    continue
                later = answer_of(predicate, other, found)
                assert later == answer, (
                    f"check({wanted.key}, {found.id}) is {answer!r}, and {later!r} with {name} = {value!r}, "
                    f"although ask_class is {of_ask!r} for both; the scheduler asks once per class, so "
                    f"include ask.{name} in ask_class()"
                )

    def test_node_class_depends_on_attributes_only(self) -> None:
        """Check that `node_class` uses attributes only; it is called again only when attributes change."""
        predicate = self.fresh()
        if not declares(predicate, "node_class"):
            return
        for found in self.nodes():
            changed = attrs.evolve(found, capacity=Resource(vcore=1), allocated=Resource(vcore=1))
            one, other = predicate.node_class(found), predicate.node_class(changed)
            assert one == other, (
                f"node_class({found.id}) is {one!r}, and {other!r} with another capacity and load: use "
                "attributes only, because the class is not computed again when other fields change"
            )

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None nor a reason."""
        fits = answer is None or (isinstance(answer, str) and answer.strip())
        return "" if fits else "return None, or the reason as text"

    def questions(self) -> Sequence[Question]:
        """Return questions for allocation and reservation of each request on each node."""
        return [
            Question(f"{method}({wanted.key}, {found.id})", partial(_ask, method, wanted, found))
            for wanted, found in self._pairs()
            for method in ("check", "check_reservation")
        ]

    def side_questions(self) -> Sequence[Question]:
        """Return calls of all other members that the predicate implements."""
        found = self.book_questions()
        for method in FAULTS:
            if declares(self.predicate, method):
                found += self._members(method)
        return found

    def _members(self, method: str) -> list[Question]:
        """Return all calls of a member."""
        return [
            Question(f"{method}({label})", partial(_member, method, *given), FAULTS[method])
            for label, given in self._arguments(method)
        ]

    def _arguments(self, method: str) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the arguments for a member, each with a label."""
        if method == "scope":
            return [(f"{wanted.key}, {found.id}", (wanted, found)) for wanted, found in self._pairs()]
        if method in ("node_class", "domain"):
            return [(found.id, (found,)) for found in self.nodes()]
        return [(wanted.key, (wanted,)) for wanted in self.asks()]

    def hosts(self) -> Sequence[NodeSample]:
        """Return the nodes."""
        return self.nodes()

    def requests(self) -> Sequence[AskSample]:
        """Return the requests."""
        return self.asks()

    def _pairs(self) -> Iterator[tuple[AskSample, NodeSample]]:
        return ((wanted, found) for wanted in self.asks() for found in self.nodes())


OTHER_VALUES: tuple[tuple[str, Any], ...] = (
    ("priority", 100),
    ("priority", -100),
    ("originator", True),
    ("placeholder", True),
    ("task_group", "workers"),
    ("execution_timeout", 600_000_000_000),
)
"""Attributes of requests that a class may leave out, with other values than those of most samples."""


def _ask(method: str, wanted: AskSample, found: NodeSample, predicate: Any) -> Any:
    return answer_of(predicate, wanted, found, method)


def _member(method: str, *arguments: Any) -> Any:
    *given, predicate = arguments
    if method == "scope" and answer_of(predicate, *given) is not None:
        # As in the scheduler, only a refusal has a scope, and each node a domain for it.
        return predicate.domain_in(given[1], predicate.scope(*given))
    return None if method == "scope" else getattr(predicate, method)(*given)


def _fault_of_requirement(words: Any) -> str:
    fits = words is None or (isinstance(words, str) and words)
    return "" if fits else "return text or None"


def _fault_of_subjects(subjects: Any) -> str:
    return fault_of_class(tuple(subjects))


FAULTS = {
    "ask_class": fault_of_class,
    "node_class": fault_of_class,
    "domain": fault_of_class,
    "scope": fault_of_class,
    "subjects": _fault_of_subjects,
    "wanted": _fault_of_requirement,
}
"""Members beside `check`, each with a function that returns why an answer is not valid."""
