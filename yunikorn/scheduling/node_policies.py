"""Node sort policies as node orders use them: one policy, or several with weights.

See `docs/decisions/archive/0070` for the normalisation of scores.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.api import NodeSortPolicy
from yunikorn.containment import WrongAnswer, contained, kept_key, number_or_none, read_attribute, safe_repr
from yunikorn.framework.plugin_failures import read_seconds

if TYPE_CHECKING:
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource

LAST = float("inf")
"""Score of a node whose score cannot be computed: behind all others."""
FARTHEST = 8e307
"""Largest finite score of a normalised policy; larger ones are cut off, so that differences are finite."""

Range = tuple[float, float]
"""Lowest and highest score."""
Changes = tuple[list[str], ...]
"""Growing lists of the ids of nodes whose scores have changed because of other nodes, one for each policy."""
ReadChanges = Callable[[Any], Changes]


class Scorer(Protocol):
    """Members of a policy that a node order reads."""

    @property
    def score(self) -> Callable[..., Any]:
        """Method `score(node)` or `score(node, ask_class)`."""
        ...

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all scores are recomputed; None for never."""
        ...


class NamedPolicy:
    """A node sort policy of a partition: the default, or one that queues and applications select by name."""

    __slots__ = ("_failures", "by_ask_class", "declares", "origin", "policy", "score_changes")

    def __init__(self, policy: NodeSortPolicy, origin: str, failures: PluginFailures) -> None:
        self.policy: Scorer = policy
        self.origin = origin
        self._failures = failures
        self.by_ask_class = takes_ask_class(policy)
        """True if scores depend on the request: then `score` takes two arguments."""
        self.declares = self.by_ask_class and declares_ask_class(policy)
        """True if scores depend on more than the request's resources: then the policy has `ask_class`."""
        self.score_changes = changes_reader(policy, origin, failures)
        """Reader of changed scores, by the second argument of `score`; None for scores of one node alone."""

    def bind(self) -> None:
        """Read the properties that the policy declares; called after opening."""

    def value_of(self, ask: Ask) -> Hashable:
        """Return what the policy declares of a request; part of the key of its ask class."""
        return read_ask_class(self.policy, self.origin, self._failures, ask)

    def view(self, ask_class: AskClass) -> Any:
        """Return the second argument of `score` for an ask class."""
        return ask_class


def takes_ask_class(policy: NodeSortPolicy) -> bool:
    """Return True if the scores of a policy depend on the request."""
    try:
        return len(inspect.signature(policy.score).parameters) > 1
    except contained():
        return False  # each call raises then, and is reported


def changes_reader(policy: NodeSortPolicy, origin: str, failures: PluginFailures) -> ReadChanges | None:
    """Return what reads the `score_changes` of a policy; None if the policy has none."""
    if type(policy).score_changes is NodeSortPolicy.score_changes:
        return None
    return partial(_read_changes, policy, origin, failures)


def _read_changes(policy: NodeSortPolicy, origin: str, failures: PluginFailures, view: Any) -> Changes:
    try:
        found = policy.score_changes(view)
        if type(found) is not list:
            raise WrongAnswer(f"{safe_repr(found)} is not a list")
        return (found,)
    except contained() as error:
        failures.report(origin, "reading its score_changes", error)
        return ()


def declares_ask_class(policy: NodeSortPolicy) -> bool:
    """Return True if a policy overrides `ask_class`."""
    return type(policy).ask_class is not NodeSortPolicy.ask_class


def read_ask_class(policy: Any, origin: str, failures: PluginFailures, ask: Ask) -> Hashable:
    """Return `policy.ask_class(ask)`; None if that fails, which is reported."""
    try:
        return kept_key(
            policy.ask_class(ask), lambda error: failures.report(origin, "comparing classes", error)
        )
    except contained() as error:
        failures.report(origin, "computing the class of", error, ask.label)
        return None


def read_range(policy: Any, origin: str, failures: PluginFailures) -> Range | None:
    """Return the `score_range` of a policy; None if there is none, or a wrong one, which is reported."""
    try:
        said = policy.score_range
        if said is None:
            return None
        low, high = said
        low, high = float(low), float(high)
        if not (low < high and high - low < LAST):
            raise WrongAnswer(f"{safe_repr(said)} is neither None nor two finite numbers in ascending order")
        return low, high
    except contained() as error:
        failures.report(origin, "reading its score_range", error)
        return None


# -- several policies ---------------------------------------------------------------------------------------


@attrs.frozen(slots=True)
class MemberClass:
    """View of an ask class for one of several policies, each of which declares a value of its own."""

    resource: Resource
    value: Hashable


@attrs.define(eq=False, slots=True)
class CombinedPolicy:
    """One of several policies that a node order combines."""

    policy: NodeSortPolicy
    origin: str
    weight: float
    """Relative to the other members; above 0."""
    range: Range | None = None
    """Lowest and highest score as configured; by default what the policy declares."""
    by_ask_class: bool = attrs.field(init=False)
    declares: bool = attrs.field(init=False)
    call: Callable[..., Any] = attrs.field(init=False)
    normalised: bool = attrs.field(init=False)
    """True if the scores of an order are mapped by their lowest and highest."""

    def __attrs_post_init__(self) -> None:
        self.by_ask_class = takes_ask_class(self.policy)
        self.declares = self.by_ask_class and declares_ask_class(self.policy)
        self.call = read_attribute(self.policy, "score")
        self.normalised = self.range is None and getattr(type(self.policy), "normalised", False) is True


_Term = tuple[Callable[..., Any], bool, float, float, float, CombinedPolicy]
"""Score method, True if the method takes the ask class, weight, low end and width of the range, member."""


class WeightedScores(NamedPolicy):
    """Several node sort policies as one: the weighted mean of their scores, each mapped to 0..1.

    A score is mapped linearly from its range, and clamped; without a range, by `squashed`. Both depend on
    this score alone, so a change of one node changes no other node's position. Scores of normalised members
    depend on those of other nodes (`NormalisedScores`).
    """

    __slots__ = ("_members", "_readers", "refresh_every", "score", "terms")

    def __init__(self, members: Sequence[CombinedPolicy], origin: str, failures: PluginFailures) -> None:
        self.policy = self
        self.origin = origin
        self._failures = failures
        self._members = tuple(members)
        readers = [changes_reader(member.policy, member.origin, failures) for member in members]
        self._readers = [(at, read) for at, read in enumerate(readers) if read is not None]
        self.score_changes = self._changes if self._readers else None
        self.by_ask_class = any(member.by_ask_class for member in members)
        self.declares = any(member.declares for member in members)
        self.score: Callable[..., float] = self._for_class if self.by_ask_class else self._for_all
        self.refresh_every: float | None = None
        """Shortest interval that a member declares (seconds); None if there is none."""
        self.terms: tuple[_Term, ...] = ()
        """The members with their relative weights and ranges."""
        self.bind()

    def bind(self) -> None:
        """Read the properties that the members declare; called at creation and after opening."""
        every = [
            read_seconds(one.policy, "refresh_every", one.origin, self._failures) for one in self._members
        ]
        self.refresh_every = min((seconds for seconds in every if seconds), default=None)
        total = sum(member.weight for member in self._members)
        self.terms = tuple(self._term(member, member.weight / total) for member in self._members)

    def _term(self, member: CombinedPolicy, weight: float) -> _Term:
        low, high = member.range or read_range(member.policy, member.origin, self._failures) or (0.0, 0.0)
        return member.call, member.by_ask_class, weight, low, high - low, member

    def value_of(self, ask: Ask) -> Hashable:
        """Return what each member declares of a request."""
        return tuple(
            read_ask_class(one.policy, one.origin, self._failures, ask) if one.declares else None
            for one in self._members
        )

    def view(self, ask_class: AskClass) -> tuple[MemberClass, ...]:
        """Return the view of an ask class for each member."""
        said = ask_class.value
        # The class of a gang as a whole has no value.
        values = said if isinstance(said, tuple) else (None,) * len(self._members)
        return tuple(MemberClass(ask_class.resource, value) for value in values)

    def _changes(self, views: Sequence[MemberClass] | None) -> Changes:
        """Return the changes of each member."""
        return tuple(one for at, read in self._readers for one in read(None if views is None else views[at]))

    def _for_all(self, node: Node) -> float:
        total = 0.0
        for call, _, weight, low, width, member in self.terms:
            try:
                score = call(node)
                total += weight * (share(score, low, width) if width else squashed(score))
            except contained() as error:
                return self.failed(member, error, node)
        return total

    def _for_class(self, node: Node, views: Sequence[MemberClass]) -> float:
        total = 0.0
        for (call, by_ask_class, weight, low, width, member), view in zip(self.terms, views, strict=True):
            try:
                score = call(node, view) if by_ask_class else call(node)
                total += weight * (share(score, low, width) if width else squashed(score))
            except contained() as error:
                return self.failed(member, error, node)
        return total

    def failed(self, member: CombinedPolicy, error: BaseException, node: Node) -> float:
        """Report that a policy failed on a node; return the score of the node."""
        self._failures.report(member.origin, "computing the score of", error, node.label)
        return LAST


def share(score: Any, low: float, width: float) -> float:
    """Return the position of a score in its range, 0 to 1. Raises `WrongAnswer`."""
    at = ((score if type(score) is float else _number(score)) - low) / width
    if 0.0 < at < 1.0:
        return at
    if at != at:
        raise WrongAnswer(f"{safe_repr(score)} is not a number")
    return 1.0 if at > 0.0 else 0.0


def squashed(score: Any) -> float:
    """Return a score of unknown range as a number from 0 to 1: 0.5 for 0, 0.75 for 1, 1 for infinity.

    Consists of steps that rounding keeps in order, so that two scores are never swapped. Raises
    `WrongAnswer`.
    """
    number: float = score if type(score) is float else _number(score)
    if number >= 0.0:
        return 1.0 - 0.5 / (1.0 + number)
    if number != number:
        raise WrongAnswer(f"{safe_repr(score)} is not a number")
    return 0.5 / (1.0 - number)


def float_of(score: Any) -> float:
    """Return a score as a float between whose values there are differences. Raises `WrongAnswer`."""
    number = _number(score)
    if number != number:
        raise WrongAnswer(f"{safe_repr(score)} is not a number")
    return max(-FARTHEST, min(FARTHEST, number)) if -LAST < number < LAST else number


def _number(score: Any) -> float:
    number = number_or_none(score)
    if number is None and issubclass(type(score), int):
        return LAST if int.__gt__(score, 0) else -LAST
    if number is None:
        raise WrongAnswer(f"{safe_repr(score)} is not a number")
    return float(number)
