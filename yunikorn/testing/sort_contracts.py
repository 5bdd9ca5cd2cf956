"""Contracts of the policies that order: applications, queues and nodes.

A key is a pure, deterministic function of what it is asked about: asking changes nothing, what was asked
before does not matter, the keys of whatever may come up have one order, and it costs no more the longer the
scheduler runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from yunikorn.api import AppSortPolicy, NodeSortPolicy, QueueSortPolicy
from yunikorn.clock import ManualClock
from yunikorn.kinds import APP_SORT, NODE_SORT, QUEUE_SORT
from yunikorn.resources import INT64_MAX, Resource
from yunikorn.testing.operations import count_operations
from yunikorn.testing.order_laws import Keyed, broken_laws
from yunikorn.testing.plugin_contract import PluginContract, Yaml
from yunikorn.testing.samples import (
    Amounts,
    ApplicationSample,
    AskSample,
    NodeSample,
    QueueSample,
    application,
    ask,
    node,
    queue,
)
from yunikorn.testing.stopped_time import without_clock_and_chance

FEW, MANY = 4, 64
"""Resource types of two samples that are alike but for their number."""
SLACK = 100
"""Operations that may be more for reasons of no importance."""
ASKED_BEFORE = 300
"""Rounds of questions after which one must not cost more."""
HUGE = INT64_MAX
TOTAL: Amounts = {"vcore": 100, "memory": "100Gi"}
SIZE: Amounts = {"vcore": 8, "memory": "16Gi"}


class SortContract(PluginContract):
    """What the three kinds have in common; derive from one of those below."""

    def samples(self) -> Sequence[Any]:
        """What the policy is asked about, odd things included; add to it what matters to yours."""
        raise NotImplementedError

    def wide(self, types: int) -> Any:
        """A sample with this many resource types, of every amount."""
        raise NotImplementedError

    def key_of(self, policy: Any, sample: Any) -> Any:
        """The key that `policy` gives to a sample."""
        return policy.key(sample)

    def _label(self, sample: Any) -> str:
        return repr(sample)

    def _keys(self, policy: Any, samples: Sequence[Any]) -> list[Any]:
        return [self.key_of(policy, sample) for sample in samples]

    def test_asking_twice_gives_the_same_key(self) -> None:
        """Asking changes nothing, and it does not matter what was asked before."""
        policy, samples = self.fresh(), self.samples()
        forth = self._keys(policy, samples)
        back = self._keys(policy, samples[::-1])[::-1]
        for sample, first, second in zip(samples, forth, back, strict=True):
            assert first == second, f"{self._label(sample)} has the key {first!r}, then {second!r}"

    def test_another_object_with_the_same_options_gives_the_same_keys(self) -> None:
        """Nothing but the options and what it is asked about decides."""
        samples = self.samples()
        assert self._keys(self.fresh(), samples) == self._keys(self.fresh(), samples)

    def test_keys_have_one_order(self) -> None:
        """Also those of objects with no resources, amounts of zero, and types that others do not have."""
        policy = self.fresh()
        keyed = [Keyed(self._label(sample), self.key_of(policy, sample)) for sample in self.samples()]
        assert broken_laws(keyed) == []

    def test_it_reads_no_clock_and_throws_no_dice(self) -> None:
        """The only time there is is that of `context.now()`."""
        policy, samples = self.fresh(), self.samples()
        with without_clock_and_chance():
            self._keys(policy, samples)

    def test_a_key_that_ages_says_how_often_it_is_computed_anew(self) -> None:
        """If time alone changes an order, `refresh_every` says after how many seconds to look again."""
        clock = ManualClock()
        policy, samples = self.fresh(clock), self.samples()
        every = policy.refresh_every
        assert every is None or every > 0, (
            f"refresh_every is {every!r}; a number of seconds is wanted, or None"
        )
        if every is None:
            order = self._order(policy, samples)
            clock.advance(86_400)
            assert self._order(policy, samples) == order, "keys age: set refresh_every"

    def _order(self, policy: Any, samples: Sequence[Any]) -> list[int]:
        keys = self._keys(policy, samples)
        return sorted(range(len(keys)), key=keys.__getitem__)

    def test_a_reload_changes_no_key(self) -> None:
        """`reloaded` tells it that it stays as it is."""
        policy, samples = self.fresh(), self.samples()
        before = self._keys(policy, samples)
        policy.reloaded(self.context())
        assert self._keys(policy, samples) == before

    def test_a_key_costs_at_most_in_proportion_to_the_resource_types(self) -> None:
        """Its speed class: it is computed at every change of what it is about."""
        policy = self.fresh()
        few = count_operations(partial(self.key_of, policy, self.wide(FEW)))
        many = count_operations(partial(self.key_of, policy, self.wide(MANY)))
        most = few * MANY // FEW * 2 + SLACK
        assert many <= most, f"{MANY} resource types cost {many} operations, {FEW} cost {few}: at most {most}"

    def test_a_key_costs_no_more_the_more_was_asked(self) -> None:
        """Its speed class: what it remembers must not be gone through at every question."""
        policy, samples = self.fresh(), self.samples()
        wide = self.wide(FEW)
        before = count_operations(lambda: self.key_of(policy, wide))
        for _ in range(ASKED_BEFORE):
            self._keys(policy, samples)
        after = count_operations(lambda: self.key_of(policy, wide))
        assert after <= 2 * before + SLACK, f"{before} operations at first, {after} after many questions"


class AppSortPolicyContract(SortContract):
    """What an application sort policy keeps: `policy = Mine(...)`."""

    kind = APP_SORT
    in_properties = True
    policy: ClassVar[AppSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """As a property of both leaf queues."""
        _in_properties(self, document["partitions"][0]["queues"][0]["queues"], "application.sort.policy")

    def samples(self) -> Sequence[ApplicationSample]:
        """Applications young and old, large and small, with nothing, and with what nobody else has."""
        of_batch = queue("root.batch", total=TOTAL)
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
        ]

    def wide(self, types: int) -> ApplicationSample:
        """An application with many resource types."""
        amount = _wide(types)
        return application("wide", queue=self._queue(), allocated=amount, pending=amount, fair_total=amount)

    def _queue(self) -> QueueSample:
        return queue("root.batch")

    def test_lanes_let_somebody_take_part(self) -> None:
        """`admit` gives counts, or None for all, and never keeps out everybody where there is somebody."""
        policy = self.fresh()
        counts: dict[Hashable, int] = {}
        for sample in self.samples():
            lane = policy.lane(sample)
            counts[lane] = counts.get(lane, 0) + 1
        for some in [counts, *({lane: count} for lane, count in counts.items())]:
            self._check_admitted(policy, some)

    def _check_admitted(self, policy: Any, counts: Mapping[Hashable, int]) -> None:
        answer = policy.admit(counts)
        for lane, most in answer.items():
            fits = most is None or (isinstance(most, int) and most >= 0)
            assert fits, f"admit({counts}) lets {most!r} of lane {lane!r} take part: a count, or None for all"
        shares = [answer.get(lane) for lane in counts]
        assert any(share is None or share > 0 for share in shares), f"admit({counts}) lets nobody take part"


class QueueSortPolicyContract(SortContract):
    """What a queue sort policy keeps: `policy = Mine(...)`."""

    kind = QUEUE_SORT
    in_properties = True
    policy: ClassVar[QueueSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """As a property of root."""
        _in_properties(self, document["partitions"][0]["queues"], "queue.sort.policy")

    def samples(self) -> Sequence[QueueSample]:
        """Queues with and without guarantee and quota, idle and busy, and with what nobody else has."""
        total = TOTAL
        return [
            queue("root.idle", total=total),
            queue("root.busy", total=total, allocated={"vcore": 50}, pending={"vcore": 1}),
            queue("root.waits", total=total, pending={"vcore": 70, "memory": "1Gi"}),
            queue("root.owed", total=total, guaranteed={"vcore": 10}, allocated={"vcore": 5}),
            queue("root.over", total=total, guaranteed={"vcore": 10}, allocated={"vcore": 20}),
            queue("root.capped", total=total, max={"vcore": 5}, allocated={"vcore": 5}),
            queue("root.zero", total=total, guaranteed={"vcore": 0}, max={"vcore": 0}),
            queue("root.zeroused", total=total, guaranteed={"vcore": 0}, allocated={"vcore": 1}),
            queue("root.alien", total=total, allocated={"gpu": 1}, pending={"licence": 1}),
            queue("root.empty", allocated={"vcore": 1}, pending={"vcore": 1}),
            queue("root.huge", total=total, allocated={"memory": HUGE}, pending={"memory": HUGE}),
            queue("root.urgent", total=total, priority=100, pending={"vcore": 1}),
        ]

    def wide(self, types: int) -> QueueSample:
        """A queue with many resource types."""
        amount = _wide(types)
        return queue(
            "root.wide", guaranteed=amount, max=amount, total=amount, allocated=amount, pending=amount
        )


class NodeSortPolicyContract(SortContract):
    """What a node sort policy keeps: `policy = Mine(...)`, with `score(node)` or `score(node, shape)`."""

    kind = NODE_SORT
    policy: ClassVar[NodeSortPolicy]

    def name_in(self, document: Yaml) -> None:
        """As the order of the partition."""
        document["partitions"][0]["nodesortpolicy"] = self.named("type")

    def samples(self) -> Sequence[NodeSample]:
        """Nodes full, empty, shrunk and without anything, with attributes and without."""
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
        ]

    def shapes(self) -> Sequence[AskSample]:
        """Requests with which a policy that looks at them is asked."""
        return [
            ask("usual", vcore=1, memory="1Gi"),
            ask("gpu", vcore=1, resource={"gpu": 1}),
            ask("alien", resource={"licence": 3}),
            ask("zero", vcore=0),
            ask("nothing"),
            ask("huge", memory=HUGE),
        ]

    def wide(self, types: int) -> NodeSample:
        """A node with many resource types."""
        return node("wide", capacity=_wide(types, 10), allocated=_wide(types, 3), occupied=_wide(types, 1))

    def key_of(self, policy: Any, sample: Any) -> Any:
        """The score; of a policy that looks at the request, that for the first of `shapes`."""
        return self._score(policy, sample, self.shapes()[0])

    def _score(self, policy: Any, sample: Any, shape: AskSample) -> Any:
        score: Callable[..., Any] = policy.score
        return score(sample, shape) if _takes_shape(policy) else score(sample)

    def test_scores_are_numbers_for_every_node_and_request(self) -> None:
        """Infinite ones are allowed, NaN is not."""
        policy = self.fresh()
        for shape in self.shapes():
            for sample in self.samples():
                score = self._score(policy, sample, shape)
                what = f"the score of {sample.id} for a request of {shape.resource} is {score!r}"
                assert isinstance(score, (int, float)), f"{what}: a number is wanted"
                assert score == score, what

    def test_scores_have_one_order_for_every_request(self) -> None:
        """Whatever is asked for."""
        policy = self.fresh()
        for shape in self.shapes():
            keyed = [Keyed(sample.id, self._score(policy, sample, shape)) for sample in self.samples()]
            assert broken_laws(keyed) == []


def _takes_shape(policy: Any) -> bool:
    return len(inspect.signature(policy.score).parameters) > 1


def _wide(types: int, amount: int = 1) -> Resource:
    return Resource({f"type-{number}": amount for number in range(types)})


def _in_properties(contract: PluginContract, queues: Sequence[Yaml], key: str) -> None:
    options = contract.option_texts()
    for found in queues:
        found["properties"] = {
            key: type(contract.given).name,
            **{f"{key}.{name}": text for name, text in options.items()},
        }
