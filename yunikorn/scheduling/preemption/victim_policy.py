"""Preemption policy of a partition: the plugin's answers, checked, with its failures contained.

An allocation for which the plugin fails is protected, because work that is ended cannot be brought back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, filterfalse, groupby, islice, repeat
from operator import attrgetter, eq, itemgetter, le
from typing import TYPE_CHECKING, Any

from yunikorn.api import PreemptionPolicy
from yunikorn.clock import SECOND
from yunikorn.containment import (
    WrongAnswer,
    contained,
    number_or_none,
    numbers_or_none,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.errors import PluginError
from yunikorn.framework.plugin_failures import read_seconds
from yunikorn.model.allocation import PreemptionMode
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.model.creation_times import CREATION_TAG
from yunikorn.text import listed

if TYPE_CHECKING:
    from yunikorn.api import PreemptionCause, VictimUnit
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.allocation import Allocation, Unit

FAILED = "the preemption policy failed"
"""Reason of the protection of an allocation for which the plugin raised or returned no valid answer."""
PROTECTED = "originators are protected"
"""Reason of the protection of originators, where the policy protects them."""
TREATMENTS = ("last", "protect")
MODES = {mode.name.lower(): mode for mode in PreemptionMode}
"""Modes by the names that policies use."""
_names: Callable[[Allocation], tuple[str, str, str]] = attrgetter("key", "app.id", "uuid")


def may_go(allocation: Allocation) -> bool:
    """Return True if an allocation can be a victim at all.

    Excluded are allocations that opted out or require their node (daemon sets), allocations that are being
    released already, by the scheduler or by the RM alone, and those that wait for the end of a placeholder.
    """
    # Called for every running allocation: most have no extras, so these are checked first.
    extras = allocation.extras
    if extras is not None and (
        extras.releasing is not None or extras.replaces is not None or extras.eviction is not None
    ):
        return False
    return not has_opted_out(allocation)


def is_spared(allocation: Allocation) -> bool:
    """Return True for victims after all others: originators, and members whose gang ends with them."""
    core = allocation.app.core
    return allocation.spec.originator or (core is not None and core.has(allocation))


def _stays(allocation: Allocation) -> bool:
    """Return True unless the allocation is about to end."""
    extras = allocation.extras
    return extras is None or (extras.releasing is None and extras.eviction is None)


def has_opted_out(allocation: Allocation) -> bool:
    """Return True for allocations that can never be victims: by their own choice, or of a required node."""
    spec = allocation.spec
    return not spec.may_be_preempted or bool(spec.tags and spec.tags.get(REQUIRED_NODE_TAG))


class VictimPolicy:
    """The preemption policy of one partition."""

    def __init__(
        self,
        plugin: PreemptionPolicy,
        name: str,
        origin: str,
        failures: PluginFailures,
        possible: Collection[str] = tuple(MODES),
    ) -> None:
        """Read what the plugin declares; `possible` are the modes that the RM can carry out.

        Raises `PluginError` if the mode of all victims is not among them.
        """
        self.plugin = plugin
        self.name = name
        self._origin = origin
        self._failures = failures
        every = read_seconds(plugin, "refresh_every", origin, failures)
        self.refresh = round(every * SECOND) if every else 0
        """Time (ns) after which a failed search is repeated without a change; 0 for never."""
        self.is_constant = not self.refresh and self._reads_constant()
        """True if the answers for a victim do not change while it runs."""
        self._spares_originators = self._reads_originators() == "protect"
        kind = type(plugin)
        self._rank: Callable[[Allocation, PreemptionCause], Any] = read_attribute(plugin, "rank")
        self._protects = (
            None if kind.protects is PreemptionPolicy.protects else read_attribute(plugin, "protects")
        )
        """Method of the plugin; None for that of the base class, which protects nothing."""
        self._cost = None if kind.cost is PreemptionPolicy.cost else read_attribute(plugin, "cost")
        """Method of the plugin; None if each victim costs 1."""
        self._cost_of_units = read_attribute(plugin, "cost_of_units")
        self.ranks_units = kind.cost_of_units is not PreemptionPolicy.cost_of_units
        """True if the plugin has costs of its own for what ends together."""
        self._possible = possible
        self._mode_of = (
            None if kind.mode_of is PreemptionPolicy.mode_of else read_attribute(plugin, "mode_of")
        )
        """Method of the plugin; None if all victims have the same mode."""
        self._mode = None if self._mode_of is not None else self._reads_mode()
        """Mode of all victims; None if each has its own, or if the plugin gives no valid one."""

    @property
    def has_costs(self) -> bool:
        """True if victims have different costs, and the number of victims does not decide between nodes."""
        return self._cost is not None

    def _reads_constant(self) -> bool:
        try:
            return bool(self.plugin.is_constant)
        except contained() as error:
            self._failures.report(self._origin, "reading is_constant", error)
            return False

    def _reads_originators(self) -> str:
        """Return the treatment of originators; they are protected if the plugin gives no valid one."""
        try:
            found = text_or_none(self.plugin.originators)
            if found in TREATMENTS:
                return found
            what: BaseException | str = f"{safe_repr(found)} is neither 'last' nor 'protect'"
        except contained() as error:
            what = error
        self._failures.report(self._origin, "reading originators", what)
        return "protect"

    def _reads_mode(self) -> PreemptionMode | None:
        """Return the mode of all victims, or None if the plugin gives no valid one."""
        try:
            mode, fault = self._checked(self.plugin.mode)
        except contained() as error:
            self._failures.report(self._origin, "reading mode", error)
            return None
        if mode is None:
            self._failures.report(self._origin, "reading mode", fault)
        elif fault:
            raise PluginError(self._origin, "mode of preemption", fault)
        return mode

    def _checked(self, answer: object) -> tuple[PreemptionMode | None, str]:
        """Return the mode with this name, None if there is none, and why it cannot be carried out if so."""
        name = text_or_none(answer)
        mode = MODES.get(name or "")
        if mode is None:
            return None, f"{safe_repr(answer)} is none of {listed(map(repr, MODES))}"
        if name in self._possible:
            return mode, ""
        return mode, (
            f"the resource manager has not declared that it can '{name}': use "
            f"{' or '.join(map(repr, self._possible))}, or let it declare preemption_modes when it registers"
        )

    # -- modes --------------------------------------------------------------------------------------

    def modes(
        self, victims: Iterable[Allocation], cause: PreemptionCause
    ) -> dict[Allocation, PreemptionMode] | None:
        """Return how the chosen victims, and those that end with them, make room.

        None if any of the latter may not end, or if any answer of the plugin is invalid.
        """
        chosen = list(victims)
        units = self.units(chosen, cause)
        if units is None:
            return None
        found: dict[Allocation, PreemptionMode] = {}
        for victim in dict.fromkeys(chain(chosen, *units)):
            mode = PreemptionMode.END if victim.spec.placeholder else self._mode
            if mode is None:
                mode = self._own_mode(victim, cause)
            if mode is None:
                return None
            found[victim] = mode
        return found

    def _own_mode(self, victim: Allocation, cause: PreemptionCause) -> PreemptionMode | None:
        if self._mode_of is None:
            return None
        try:
            mode, fault = self._checked(self._mode_of(victim, cause))
        except contained() as error:
            self._report("choosing the mode of", error, victim)
            return None
        if fault:
            self._report("choosing the mode of", fault, victim)
            return None
        return mode

    # -- protection ---------------------------------------------------------------------------------

    def eligible(self, cause: PreemptionCause) -> Callable[[Allocation], bool]:
        """Return the function that is true for allocations that may be victims for `cause`."""
        if self._protects is None and not self._spares_originators:
            return may_go
        return lambda one: may_go(one) and self.protection(one, cause) is None

    def protection(self, victim: Allocation, cause: PreemptionCause, *, quiet: bool = False) -> str | None:
        """Return why the policy protects `victim`, or None; with `quiet`, failures are not reported."""
        if self._spares_originators and victim.originator:
            return PROTECTED
        if self._protects is None:
            return None
        try:
            reason = self._protects(victim, cause)
            if reason is None:
                return None
            text = text_or_none(reason)
            if text is not None and text.strip():
                return text
            what: BaseException | str = f"{safe_repr(reason)} is neither None nor a reason"
        except contained() as error:
            what = error
        if not quiet:
            self._report("protecting", what, victim)
        return FAILED

    def units(self, victims: Iterable[Allocation], cause: PreemptionCause) -> list[Unit] | None:
        """Return the units that lose victims; None if any of these may not end."""
        found: list[Unit] = []
        known: set[Allocation] = set()
        for victim in victims:
            if victim not in known:
                found.append(self.unit_of(victim, cause))
                known.update(found[-1])
                if not found[-1]:
                    return None
        return found

    def unit_of(self, victim: Allocation, cause: PreemptionCause) -> Unit:
        """Return a victim and all that ends with it; empty if any of these may not end."""
        core = victim.app.core
        others = () if core is None else core.ending_with(victim)
        unit = (victim, *(one for one in others if one is not victim and _stays(one)))
        return unit if all(self._may_follow(one, cause) for one in unit[1:]) else ()

    def _may_follow(self, one: Allocation, cause: PreemptionCause) -> bool:
        return may_go(one) and self.protection(one, cause) is None

    # -- order --------------------------------------------------------------------------------------

    def in_order(self, candidates: Iterable[Allocation], cause: PreemptionCause) -> list[Allocation]:
        """Return the candidates by rank, those that are spared behind all others; of equal rank, in reverse.

        An application's later allocations come later, so those of equal rank are first, unless
        `without_ties` orders them. Candidates for which the plugin fails are left out.
        """
        return others_first(self._by_rank(candidates, cause))

    def _by_rank(self, candidates: Iterable[Allocation], cause: PreemptionCause) -> list[Allocation]:
        found = list(candidates)
        found.reverse()
        # Loops in C, because there may be thousands of candidates.
        try:
            ranks = list(map(self._rank, found, repeat(cause)))
            order = sorted(range(len(ranks)), key=ranks.__getitem__)
            # A `StopIteration` of the plugin ends `map` without an error.
            ordered = list(map(ranks.__getitem__, order))
            if len(ranks) == len(found) and (not ranks or _is_rising(ordered)):
                return _by_age(ordered, list(map(found.__getitem__, order)))
        except contained():
            pass  # found again below, with the allocation that caused it
        return self._in_order_checked(found, cause)

    def _in_order_checked(self, candidates: list[Allocation], cause: PreemptionCause) -> list[Allocation]:
        """Rank one by one, and leave out candidates without a valid rank; all if ranks do not compare."""
        ranked: list[tuple[Any, Allocation]] = []
        for victim in candidates:
            try:
                rank = self._rank(victim, cause)
                # A NaN inside a tuple compares unequal only with a copy that is not the same object.
                if _is_rising([rank, rank]) and not _has_nan(rank):
                    ranked.append((rank, victim))
                    continue
                what: BaseException | str = f"{safe_repr(rank)} does not compare"
            except contained() as error:
                what = error
            self._report("ranking", what, victim)
        try:
            ranked.sort(key=itemgetter(0))
            return _by_age([rank for rank, _ in ranked], [victim for _, victim in ranked])
        except contained() as error:
            self._failures.report(self._origin, "comparing the ranks of victims", error)
            return []

    def constant_ranks(
        self, victims: Iterable[Allocation], cause: PreemptionCause
    ) -> list[tuple[Any, Allocation]] | None:
        """Return ranks of those victims that are not protected, in the same order.

        None if any answer is invalid, or if a rank is neither a number nor a tuple of numbers: ranks of all
        allocations then have to be compared, and failures reported.
        """
        try:
            found = self._unprotected(victims, cause)
            if found is None:
                return None
            # A loop in C; a `StopIteration` of the plugin ends `map` without an error.
            ranks = list(map(self._rank, found, repeat(cause)))
        except contained():
            return None
        if len(ranks) != len(found) or not _are_numbers(ranks):
            return None
        return list(zip(ranks, found, strict=True))

    def _unprotected(self, victims: Iterable[Allocation], cause: PreemptionCause) -> list[Allocation] | None:
        """Return the victims that are not protected; None if any answer is invalid. May raise."""
        protects = self._protects
        if self._spares_originators:
            victims = [victim for victim in victims if not victim.spec.originator]
        if protects is None:
            return list(victims)
        found: list[Allocation] = []
        for victim in victims:
            reason = protects(victim, cause)
            if reason is None:
                found.append(victim)
            else:
                text = text_or_none(reason)
                if text is None or not text.strip():
                    return None
        return found

    # -- cost ---------------------------------------------------------------------------------------

    def costs(self, victims: Iterable[Allocation], cause: PreemptionCause) -> Mapping[str, float]:
        """Return the costs of victims by uuid, without those for which the plugin fails."""
        found: dict[str, float] = {}
        assert self._cost is not None
        for victim in victims:
            try:
                cost = self._cost(victim, cause)
                number = number_or_none(cost)
                if number is not None and 0 <= number < math.inf:
                    found[victim.uuid] = float(number)
                    continue
                what: BaseException | str = f"{safe_repr(cost)} is no number of 0 or more"
            except contained() as error:
                what = error
            self._report("computing the cost of", what, victim)
        return found

    def cost_of_units(self, units: Sequence[VictimUnit], cause: PreemptionCause) -> tuple[float, ...] | None:
        """Return the cost of units that end so that a gang has room; None if the plugin fails."""
        try:
            answer = self._cost_of_units(units, cause)
            found = numbers_or_none(answer)
            if found is None:
                raise WrongAnswer(f"{safe_repr(answer)} is neither a number nor a tuple of numbers")
            return found
        except contained() as error:
            self._failures.report(self._origin, "computing the cost of units", error)
            return None

    def _report(self, operation: str, cause: BaseException | str, victim: Allocation) -> None:
        self._failures.report(self._origin, operation, cause, victim.label)


def without_ties(equals: list[Allocation]) -> list[Allocation]:
    """Return allocations of equal rank in their order; those whose creation the RM reports go by key.

    Their creation has whole seconds, so that many are equal. The order in which they arrived would be another
    one after a recovery.
    """
    reported = list(filter(_is_reported, equals))
    if not reported:
        return equals
    reported.sort(key=_names, reverse=True)
    return [*filterfalse(_is_reported, equals), *reported]


def _is_reported(allocation: Allocation) -> bool:
    return CREATION_TAG in allocation.spec.tags


def _by_age(ranks: Sequence[Any], victims: list[Allocation]) -> list[Allocation]:
    """Return victims in the order of their ranks, which are sorted, without ties."""
    if not any(map(eq, ranks, islice(ranks, 1, None))) or not any(map(_is_reported, victims)):
        return victims
    found: list[Allocation] = []
    for _, equals in groupby(zip(ranks, victims, strict=True), key=itemgetter(0)):
        found += without_ties([victim for _, victim in equals])
    return found


def others_first(ordered: list[Allocation]) -> list[Allocation]:
    """Return the allocations in the same order, those that are spared behind all others."""
    spared = list(filter(is_spared, ordered))
    return [*filterfalse(is_spared, ordered), *spared] if spared else ordered


def _is_number(value: Any) -> bool:
    """Return True for numbers that compare with each other; NaN does not."""
    return type(value) is int or (type(value) is float and value == value)


def _are_numbers(ranks: list[Any]) -> bool:
    """Return True if all ranks are numbers, or all are tuples of numbers."""
    kinds = set(map(type, ranks))
    if kinds == {tuple}:
        ranks = list(chain.from_iterable(ranks))
        kinds = set(map(type, ranks))
    return kinds <= {int} or all(map(_is_number, ranks))


def _is_rising(ranks: list[Any]) -> bool:
    """Return True if no rank is above the next; False reveals NaN. Ranks of other types are not checked."""
    if type(ranks[0]) not in (int, float, tuple):
        return True
    return all(map(le, ranks, islice(ranks, 1, None))) and ranks[-1] <= ranks[-1]


def _has_nan(rank: Any) -> bool:
    if isinstance(rank, tuple):
        return any(map(_has_nan, rank))
    return isinstance(rank, float) and rank != rank
