"""Contract tests of the sort policies of applications, queues and nodes.

Keys must have a total order, and the cost of a key must be at most proportional to the resource types.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import attrs

from yunikorn.api import AppSortPolicy, NodeSortPolicy, PastService, QueueSortPolicy, Where
from yunikorn.clock import ManualClock
from yunikorn.containment import number_or_none
from yunikorn.framework.kinds import APP_SORT, NODE_SORT, QUEUE_SORT
from yunikorn.resources import INT64_MAX, Resource
from yunikorn_testing.answers_contract import SLACK, AnswersContract, Question, calling, fault_of_class
from yunikorn_testing.ask_order_contract import AskOrderContract
from yunikorn_testing.books_contract import BooksContract
from yunikorn_testing.costs import count_operations, count_parameters
from yunikorn_testing.order_laws import Keyed, assert_ordered, broken_laws
from yunikorn_testing.other_usage import (
    below_busier_queues,
    below_busier_tasks,
    beside_busier_applications,
    read_usage,
)
from yunikorn_testing.plugin_contract import PluginContract, Yaml
from yunikorn_testing.samples import (
    Amounts,
    ApplicationSample,
    AskClassSample,
    AskSample,
    NodeSample,
    QueueSample,
    application,
    ask,
    busy_node,
    node,
    queue,
    with_task,
)
from yunikorn_testing.watched_samples import WatchedReading, watched_like

FEW, MANY = 4, 64
"""Numbers of resource types of the two samples whose costs are compared."""
OWNERS = {("Application", "usage"), ("Queue", "usage")}
GROWING = {("PastService", "served"), ("PastService", "recent"), ("Queue", "recent"), *OWNERS}
"""Attributes that change with time alone, each with its view."""
OTHERS = {
    APP_SORT.id: "by other applications",
    QUEUE_SORT.id: "by other queues of its parent",
    NODE_SORT.id: "on other nodes, by the applications of its tasks",
}
"""Users of resources whose changes compute no key again, by the kind of the policy."""
HUGE = INT64_MAX
TOTAL: Amounts = {"vcore": 100, "memory": "100Gi"}
SIZE: Amounts = {"vcore": 8, "memory": "16Gi"}


class SortContract(AnswersContract):
    """Tests of all three kinds of sort policies; derive from a subclass."""

    def samples(self) -> Sequence[Any]:
        """Return samples, including edge cases; extend the list with cases that matter to the policy."""
        raise NotImplementedError

    def wide(self, types: int) -> Any:
        """Return a sample with this number of resource types in all its amounts."""
        raise NotImplementedError

    def key_of(self, policy: Any, sample: Any) -> Any:
        """Return the key of a sample under `policy`."""
        return policy.key(sample)

    def questions(self) -> Sequence[Question]:
        """Return a question for the key of each sample."""
        return [
            Question(f"the key of {_label(sample)}", partial(self._key, sample=sample))
            for sample in self.samples()
        ]

    def _key(self, policy: Any, sample: Any) -> Any:
        return self.key_of(policy, sample)

    def fault_of(self, answer: Any) -> str:
        """Return why a key cannot be sorted among the keys of the samples."""
        if not hasattr(self, "_of_samples"):
            policy = self.fresh()
            self._of_samples = [question.put(policy) for question in self.questions()]
        keyed = [Keyed("a sample", key) for key in self._of_samples[:2]]
        return "; ".join(broken_laws([Keyed("this one", answer), *keyed]))

    def comparable(self, answers: Sequence[Any]) -> Mapping[str, str]:
        """Return the order by the keys as text; keys themselves may be of any type."""
        return {"the order": _order_of([_label(sample) for sample in self.samples()], answers)}

    def _keys(self, policy: Any, samples: Sequence[Any]) -> list[Any]:
        return [self.key_of(policy, sample) for sample in samples]

    def test_keys_have_a_total_order(self) -> None:
        """Check for a total order, also with empty amounts, zeros, and types that only one sample has."""
        policy = self.fresh()
        keyed = [Keyed(_label(sample), self.key_of(policy, sample)) for sample in self.samples()]
        assert_ordered(keyed)

    def test_time_dependent_key_declares_its_refresh_interval(self) -> None:
        """Check that a policy whose order changes with time alone sets `refresh_every`."""
        clock = ManualClock()
        policy, samples = self.fresh(clock), self.samples()
        if policy.refresh_every is None:
            labels = [_label(sample) for sample in samples]
            before = _order_of(labels, self._keys(policy, samples))
            clock.advance(86_400)
            after = _order_of(labels, self._keys(policy, samples))
            assert after == before, (
                f"the order changes with time alone: it is {before}, and a day later {after}; the scheduler "
                "would not notice, so set refresh_every to the number of seconds between updates"
            )

    def test_key_that_reads_growing_service_declares_its_refresh_interval(self) -> None:
        """Check that a policy that reads received service or recent usage sets `refresh_every`."""
        policy = self.fresh()
        found = sorted(".".join(name) for name in GROWING & self.read_by(policy).names)
        assert not found or policy.refresh_every, (
            f"the policy reads {', '.join(found)}, which grows with time alone; the scheduler computes a key "
            "again when its object changes, so set refresh_every to the number of seconds between updates"
        )

    def test_usage_over_time_is_read_only_with_a_half_life(self) -> None:
        """Check that a policy that reads recent usage sets `half_life`; `recent` is empty without it."""
        policy = self.fresh()
        decayed = ("Queue", "recent") if self.kind is QUEUE_SORT else ("PastService", "recent")
        assert decayed not in self.read_by(policy).names or policy.half_life is not None, (
            f"the policy reads {'.'.join(decayed)}, but half_life is None, so that recent is always empty: "
            "set half_life to the number of seconds in which half of the recorded usage decays"
        )
        assert not OWNERS & self.read_by(policy).names or (policy.half_life and policy.usage_by), (
            "the policy reads usage by owner, which is recorded only for the kinds in usage_by: set usage_by,"
            " such as ('user', 'tag:account'), and half_life"
        )

    def beside_others(self, sample: Any) -> Any:
        """Return the sample as it is after others have used more, which does not compute its key again."""
        return sample

    def test_key_does_not_depend_on_what_others_use(self) -> None:
        """Check that a key stays the same when others use more, unless `refresh_every` is set."""
        policy = self.fresh()
        if policy.refresh_every is not None:
            return
        for sample in self.samples():
            reading = WatchedReading()
            before = self.key_of(policy, reading.watch(sample))
            after = self.key_of(policy, self.beside_others(sample))
            if before == after:
                continue
            found = read_usage(reading.paths)
            raise AssertionError(
                f"'{policy.name}' reads {found}: the key of {_label(sample)} is {before!r}, and {after!r} "
                f"when more is used {OTHERS[self.kind.id]}; the scheduler computes a key again only when its "
                f"own object changes, so do not read {found}, or set refresh_every to the number of seconds "
                "between updates"
            )

    def test_cost_of_a_key_is_at_most_linear_in_resource_types(self) -> None:
        """Check that the cost of a key is at most proportional to the number of resource types."""
        policy = self.fresh()
        few = count_operations(partial(self.key_of, policy, self.wide(FEW)))
        many = count_operations(partial(self.key_of, policy, self.wide(MANY)))
        most = few * MANY // FEW * 2 + SLACK
        assert many <= most, (
            f"a key costs {many} executed lines with {MANY} resource types, and {few} with {FEW}: at most "
            f"{most} are allowed, because keys are computed often; do not compare all types with all"
        )


class AppSortPolicyContract(SortContract, BooksContract, AskOrderContract):
    """Tests that an application sort policy must pass; set `policy = Mine(...)`."""

    kind = APP_SORT
    in_properties = True
    flags = ("gangs",)
    policy: ClassVar[AppSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy as a property of both leaf queues."""
        _in_properties(self, document["partitions"][0]["queues"][0]["queues"], "application.sort.policy")

    def beside_others(self, sample: ApplicationSample) -> ApplicationSample:
        """Return the application in a queue that others use more."""
        return beside_busier_applications(sample)

    def side_questions(self) -> Sequence[Question]:
        """Return calls of the books, the keys of requests, and the admission class of each sample."""
        found = [*self.book_questions(), *self.ask_questions()]
        if type(self.policy).admission_class is AppSortPolicy.admission_class:
            return found
        return found + [
            Question(f"admission_class({sample.id})", calling("admission_class", sample), fault_of_class)
            for sample in self.samples()
        ]

    def test_key_range_is_two_numbers_or_none(self) -> None:
        """Check that `key_range` is None, or a lowest and a highest key that some sample is between."""
        policy = self.fresh()
        said = _range_of(policy, "key_range")
        if said is None:
            return
        keys = self._keys(policy, self.samples())
        odd = [key for key in keys if number_or_none(key) is None]
        assert not odd, f"key_range is {said!r}, but a key is {odd[0]!r}: return numbers, or no range"
        assert any(said[0] <= key <= said[1] for key in keys), (
            f"key_range is {said!r}, but the keys of the samples are from {min(keys)!r} to {max(keys)!r}: "
            "all of them would count alike as a factor beside others"
        )

    def samples(self) -> Sequence[ApplicationSample]:
        """Return applications of different age and size, without resources, and with rare resource types."""
        used: Amounts = {"vcore": 12, "memory": "6Gi", "gpu": 9}
        above = queue("root", total=TOTAL, allocated={"vcore": 40, "memory": "20Gi", "gpu": 10})
        of_batch = queue("root.batch", total=TOTAL, allocated=used, pending={"vcore": 13}, parent=above)
        app = partial(application, queue=of_batch, fair_total=TOTAL)
        return [
            app("plain", pending={"vcore": 1}),
            app("used", submitted=1, allocated={"vcore": 3, "memory": "1Gi"}),
            app("urgent", submitted=2, priority=100, pending={"vcore": 1}),
            app("old", submitted=3, waiting_since=5, pending={"memory": "1Gi"}),
            app("fresh", submitted=50_000, state="Accepted", pending={"vcore": 9}),
            application("zero", queue=of_batch, allocated={"vcore": 0}, pending={"vcore": 0}),
            application("nothing", queue=of_batch),
            app("alien", allocated={"gpu": 8}, pending={"gpu": 1, "licence": 1}),
            app("huge", allocated={"memory": HUGE}, pending={"memory": HUGE}),
            app("twin", pending={"vcore": 1}),
            app("veteran", past=PastService({"vcore": 9e9}, {"vcore": 7e6}, 9, 7, 10**12)),
            app("beginner", pending={"vcore": 1}, past=PastService({"gpu": 0.5}, {"gpu": 0.5}, 1)),
            with_task(app("running", submitted=4, tags={"team": "physics"})),
        ]

    def hosts(self) -> Sequence[NodeSample]:
        """Return nodes in two racks, for policies with books."""
        return [node(f"node-{number}", {"rack": f"r{number % 2}"}, capacity=SIZE) for number in range(4)]

    def requests(self) -> Sequence[AskSample]:
        """Return a request of each application, and of one of another user, for policies with books."""
        others = application("others", user="bob", groups=("guests",), tags={"team": "physics"})
        return [ask(f"task-{app.id}", app=app, vcore=1) for app in (*self.samples()[:4], others)]

    def test_keys_change_only_where_the_books_say_so(self) -> None:
        """Check that a task changes only keys of applications with the subject of its own application.

        The scheduler computes no other key again, so that the order would be out of date.
        """
        policy = self.keeping()
        if policy is None:
            return
        tasks = self.tasks()
        samples = [*self.samples(), *(request.app for request in self.requests())]
        steps = [("placed", *one) for one in tasks] + [("released", *one) for one in tasks]
        before = self._keys(policy, samples)
        for method, task, host in steps:
            others = getattr(policy, method)(task, host)
            after = self._keys(policy, samples)
            of_task = policy.subject(task.app)
            said = {of_task, *(() if others is None or isinstance(others, Where) else others)}
            for sample, old, new in zip(samples, before, after, strict=True):
                subject = policy.subject(sample)
                assert old == new or subject in said or others is Where.EVERYWHERE, (
                    f"{method}({task.key}, {host.id}) changes the key of {sample.id} from {old!r} to "
                    f"{new!r}, although its subject is {subject!r}, and that of the task {of_task!r}: "
                    f"return the subject of {sample.id} from {method}(), or let both have one subject"
                )
            before = after

    def wide(self, types: int) -> ApplicationSample:
        """Return an application with many resource types."""
        amount = _wide(types)
        return application("wide", queue=self._queue(), allocated=amount, pending=amount, fair_total=amount)

    def _queue(self) -> QueueSample:
        return queue("root.batch")

    def test_admission_limits_admit_an_application(self) -> None:
        """Check that `admission_limits` returns counts or None, and always lets an application take part."""
        policy = self.fresh()
        counts: dict[Hashable, int] = {}
        for sample in self.samples():
            admission_class = policy.admission_class(sample)
            counts[admission_class] = counts.get(admission_class, 0) + 1
        for some in [counts, *({admission_class: count} for admission_class, count in counts.items())]:
            self._check_admitted(policy, some)

    def _check_admitted(self, policy: Any, counts: Mapping[Hashable, int]) -> None:
        answer = policy.admission_limits(counts)
        for admission_class, most in answer.items():
            fits = most is None or (isinstance(most, int) and most >= 0)
            assert fits, (
                f"admission_limits({counts}) has {most!r} for {admission_class!r}: return a count, or None"
            )
        shares = [answer.get(admission_class) for admission_class in counts]
        assert any(share is None or share > 0 for share in shares), (
            f"admission_limits({counts}) admits no application, so the queue would never be served: return "
            "None or a positive count for at least one class"
        )


class QueueSortPolicyContract(SortContract):
    """Tests that a queue sort policy must pass; set `policy = Mine(...)`."""

    kind = QUEUE_SORT
    in_properties = True
    policy: ClassVar[QueueSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy as a property of root."""
        _in_properties(self, document["partitions"][0]["queues"], "queue.sort.policy")

    def beside_others(self, sample: QueueSample) -> QueueSample:
        """Return the queue below queues that others use more."""
        return below_busier_queues(sample)

    def samples(self) -> Sequence[QueueSample]:
        """Return queues with and without guarantee and quota, idle and busy, and with rare resource types."""
        used: Amounts = {"vcore": 90, "memory": "40Gi", "gpu": 4}
        root = queue("root", total=TOTAL, allocated=used, pending={"vcore": 75}, priority=100, is_leaf=False)
        below = partial(queue, total=TOTAL, parent=root)
        team = below(
            "root.team", allocated={"vcore": 9, "memory": "8Gi"}, pending={"vcore": 1}, is_leaf=False
        )
        return [
            below("root.idle"),
            below("root.busy", allocated={"vcore": 50, "memory": "4Gi"}, pending={"vcore": 1}),
            below("root.waits", pending={"vcore": 70, "memory": "1Gi"}),
            below("root.owed", guaranteed={"vcore": 10}, allocated={"vcore": 5}),
            below("root.over", guaranteed={"vcore": 10}, allocated={"vcore": 20}),
            below("root.capped", max={"vcore": 5}, allocated={"vcore": 5}),
            below("root.zero", guaranteed={"vcore": 0}, max={"vcore": 0}),
            below("root.zeroused", guaranteed={"vcore": 0}, allocated={"vcore": 1}),
            below("root.alien", allocated={"gpu": 1}, pending={"licence": 1}),
            queue("root.empty", allocated={"vcore": 1}, pending={"vcore": 1}),
            queue("root.huge", total=TOTAL, allocated={"memory": HUGE}, pending={"memory": HUGE}),
            below("root.urgent", priority=100, pending={"vcore": 1}),
            below(
                "root.team.below", parent=team, allocated={"vcore": 3, "memory": "2Gi"}, pending={"vcore": 1}
            ),
        ]

    def wide(self, types: int) -> QueueSample:
        """Return a queue with many resource types."""
        amount = _wide(types)
        return queue(
            "root.wide", guaranteed=amount, max=amount, total=amount, allocated=amount, pending=amount
        )


class NodeSortPolicyContract(SortContract, BooksContract):
    """Tests that a node sort policy must pass; set `policy = Mine(...)`.

    The policy has `score(node)` or `score(node, ask_class)`. Override `ask_classes` with requests that matter
    to the policy; the policy receives the ask class of each, with the value that it declares.
    """

    kind = NODE_SORT
    policy: ClassVar[NodeSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy as the node order of the partition."""
        document["partitions"][0]["nodesortpolicy"] = self.named("type")

    def samples(self) -> Sequence[NodeSample]:
        """Return full, empty and shrunk nodes, nodes without resources, and nodes with attributes."""
        size = SIZE
        return [
            node("empty", capacity=size),
            node("half", capacity=size, allocated={"vcore": 4, "memory": "8Gi"}),
            node("full", capacity=size, allocated=size),
            node("others", capacity=size, occupied={"vcore": 6}),
            node("shrunk", capacity={"vcore": 2}, allocated={"vcore": 4, "memory": "1Gi"}),
            node("gpus", capacity={**size, "gpu": 8}, allocated={"gpu": 3}),
            node("zero", capacity={"vcore": 0, "memory": 0}),
            node("nothing"),
            node("huge", vcore="1", memory=HUGE),
            node("named", {"zone": "a", "taints": "x:NoSchedule"}, capacity=size),
            node("twin", capacity=size),
            busy_node(),
        ]

    def ask_classes(self) -> Sequence[AskSample]:
        """Return requests for policies whose score depends on the request."""
        return [
            ask("usual", vcore=1, memory="1Gi"),
            ask("gpu", vcore=1, resource={"gpu": 1}),
            ask("alien", resource={"licence": 3}),
            ask("zero", vcore=0),
            ask("nothing"),
            ask("huge", memory=HUGE),
            ask("urgent", vcore=1, priority=10, tags={"zone": "a", "": ""}),
        ]

    def beside_others(self, sample: NodeSample) -> NodeSample:
        """Return the node with tasks of applications that use more on other nodes."""
        return below_busier_tasks(sample)

    def hosts(self) -> Sequence[NodeSample]:
        """Return the nodes."""
        return self.samples()

    def requests(self) -> Sequence[AskSample]:
        """Return the requests."""
        return self.ask_classes()

    def wide(self, types: int) -> NodeSample:
        """Return a node with many resource types."""
        return node("wide", capacity=_wide(types, 10), allocated=_wide(types, 3), occupied=_wide(types, 1))

    def questions(self) -> Sequence[Question]:
        """Return a question for each node's score, per request of `ask_classes` if scores depend on it."""
        if not _takes_ask_class(self.given):
            return super().questions()
        return [
            Question(
                f"the score of {sample.id} for a request of {ask_class.resource or 'nothing'}",
                partial(self._score, sample=sample, ask_class=ask_class),
            )
            for ask_class in self.ask_classes()
            for sample in self.samples()
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why a score is no number that the scheduler accepts."""
        return "" if number_or_none(answer) is not None else "return a number; NaN cannot be sorted"

    def comparable(self, answers: Sequence[Any]) -> Mapping[str, str]:
        """Return the order by score as text, for each request if scores depend on it."""
        if not _takes_ask_class(self.given):
            return super().comparable(answers)
        labels = [sample.id for sample in self.samples()]
        return {
            f"the order for a request of {ask_class.resource or 'nothing'}": _order_of(
                labels, answers[number * len(labels) : (number + 1) * len(labels)]
            )
            for number, ask_class in enumerate(self.ask_classes())
        }

    def key_of(self, policy: Any, sample: Any) -> Any:
        """Return the score, for the first of `ask_classes` if scores depend on the request."""
        # Requests are made only where the score reads one: keys are asked thousands of times.
        return (
            self._score(policy, sample, self.ask_classes()[0])
            if _takes_ask_class(policy)
            else policy.score(sample)
        )

    def _score(self, policy: Any, sample: Any, ask_class: AskSample) -> Any:
        score: Callable[..., Any] = policy.score
        return score(sample, _class_of(policy, ask_class)) if _takes_ask_class(policy) else score(sample)

    def test_normalised_scores_need_no_range(self) -> None:
        """Check that a policy whose scores are normalised declares no range, which would have no effect."""
        policy = self.fresh()
        assert not policy.normalised or policy.score_range is None, (
            "normalised = True maps scores by those of the present nodes: remove score_range, or normalised"
        )

    def test_score_range_is_two_numbers_or_none(self) -> None:
        """Check that `score_range` is None, or a lowest and a highest score that some sample is between."""
        policy = self.fresh()
        said = _range_of(policy, "score_range")
        if said is None:
            return
        scores = [
            self._score(policy, sample, wanted) for wanted in self.ask_classes() for sample in self.samples()
        ]
        assert any(said[0] <= score <= said[1] for score in scores), (
            f"score_range is {said!r}, but the scores of the samples are from {min(scores)!r} to "
            f"{max(scores)!r}: all of them would count alike beside other policies"
        )
        self._check_ends(policy, said)

    def _check_ends(self, policy: Any, said: tuple[float, float]) -> None:
        """Check that no usual node has a score outside of a range; only unusual ones may be cut off."""
        for wanted in self.ask_classes():
            for sample in filter(_is_usual, self.samples()):
                score = self._score(policy, sample, wanted)
                # Rounding may go beyond an end.
                slack = 1e-6 * (said[1] - said[0])
                assert said[0] - slack <= score <= said[1] + slack, (
                    f"score_range is {said!r}, but the score of {sample.id} is {score!r}: a score outside"
                    " counts as the nearer end beside other policies, so that such nodes count alike"
                )

    def test_class_of_a_request_is_hashable_and_used(self) -> None:
        """Check that `ask_class` returns equal, hashable values for equal requests, and has an effect."""
        policy = self.fresh()
        if type(policy).ask_class is NodeSortPolicy.ask_class:
            return
        assert _takes_ask_class(policy), (
            "ask_class(ask) has no effect, because score takes only the node: write score(node, ask_class)"
        )
        for wanted in self.ask_classes():
            one, other = policy.ask_class(wanted), policy.ask_class(attrs.evolve(wanted))
            try:
                hash(one)
            except TypeError as error:
                raise AssertionError(f"ask_class({wanted.key}) is {one!r}: {error}; return a tuple") from None
            assert one == other, (
                f"ask_class({wanted.key}) is {one!r}, and {other!r} for an equal request: equal requests "
                "would not share an order of nodes"
            )

    def test_scores_order_nodes_consistently_for_every_request(self) -> None:
        """Check for a total order of the scores for every request."""
        policy = self.fresh()
        for ask_class in self.ask_classes():
            keyed = [Keyed(sample.id, self._score(policy, sample, ask_class)) for sample in self.samples()]
            assert_ordered(keyed)


def _is_usual(sample: NodeSample) -> bool:
    """Return True for a node whose tasks fit it, with amounts of any size but the largest possible."""
    fits = all(amount >= 0 for amount in sample.available.values())
    return fits and 0 < sum(sample.capacity.values()) < HUGE


def _label(sample: Any) -> str:
    return str(getattr(sample, "id", None) or getattr(sample, "path", None) or repr(sample))


def _order_of(labels: Sequence[str], keys: Sequence[Any]) -> str:
    """Return labels sorted by key, equal keys in input order, or an error text if keys do not compare."""
    try:
        return ", ".join(labels[index] for index in sorted(range(len(keys)), key=keys.__getitem__))
    except Exception as error:
        return f"none ({type(error).__name__}: {error})"


def _range_of(policy: Any, name: str) -> tuple[float, float] | None:
    """Return a range that the policy declares. Raises `AssertionError` if it is none."""
    said: Any = getattr(policy, name)
    if said is None:
        return None
    fits = isinstance(said, tuple) and len(said) == 2 and float("-inf") < said[0] < said[1] < float("inf")
    assert fits, f"{name} is {said!r}: return None, or two finite numbers, the lower first"
    return said[0], said[1]


def _class_of(policy: Any, wanted: AskSample) -> Any:
    return watched_like(AskClassSample(wanted.resource, policy.ask_class(wanted)), wanted)


def _takes_ask_class(policy: Any) -> bool:
    return count_parameters(policy.score) > 1


def _wide(types: int, amount: int = 1) -> Resource:
    return Resource({f"type-{number}": amount for number in range(types)})


def _in_properties(contract: PluginContract, queues: Sequence[Yaml], key: str) -> None:
    options = contract.option_texts()
    for found in queues:
        found["properties"] = {
            key: type(contract.given).name,
            **{f"{key}.{name}": text for name, text in options.items()},
        }
