"""Default policy for the order of applications by a weighted sum of factors: `multifactor`.

    properties:
      application.sort.policy: multifactor
      application.sort.policy.weights: age=1000, fair-share=2000, size=500, priority=1000
      application.sort.priority: disabled

The largest sum goes first. Each factor is between 0 and 1. Sum and factors are those of Slurm's priority
plugin of the same name ("Multifactor Priority Plugin" and "Classic Fairshare Algorithm", slurm.schedmd.com).
The keys of other sort policies are further factors, if these declare the range of their keys:

      application.sort.policy.weights: age=1000, least-attained=500
      application.sort.policy.factors: least-attained

A subclass with further methods `NAME_factor(app)`, and a name of its own, has further factors as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import attrs

from yunikorn.api import Application, AppSortPolicy, Context

SECOND = 1_000_000_000
WEEK = 7 * 86_400.0
LN2 = math.log(2)
EQUAL: Mapping[str, float] = {"age": 1.0, "fair-share": 1.0, "size": 1.0, "priority": 1.0}
FACTOR = "_factor"
"""End of the names of methods that compute a factor."""

positive = [attrs.validators.gt(0.0), attrs.validators.lt(math.inf)]
# The core would not apply a half-life of 1e9 seconds or more, nor a refresh outside of 0.1 to 1e9 seconds.
half_life_range = [attrs.validators.gt(0.0), attrs.validators.lt(1e9)]
refresh_range = [attrs.validators.ge(0.1), attrs.validators.lt(1e9)]


def _check_weights(policy: Any, attribute: attrs.Attribute[Any], weights: Mapping[str, float]) -> None:
    known = sorted([*_own_factors(policy), *policy.factors])
    unknown = [name for name in weights if name not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ValueError(
            f"weights: there is no factor {names}; known: {', '.join(known)}; a sort policy is one if it is "
            "named in 'factors', too"
        )
    if not weights or not all(map(math.isfinite, weights.values())):
        raise ValueError("weights: name at least one factor, and a finite number for each")


def _own_factors(policy: Any) -> list[str]:
    """Return the names of the factors that the class computes itself."""
    return [
        name.removesuffix(FACTOR).replace("_", "-") for name in dir(type(policy)) if name.endswith(FACTOR)
    ]


def _check_factors(
    policy: Any, attribute: attrs.Attribute[Any], factors: Mapping[str, AppSortPolicy]
) -> None:
    faults = [fault for name, one in factors.items() for fault in _faults_of(policy, name, one)]
    if faults:
        raise ValueError(f"factors: {'; '.join(faults)}")


def _faults_of(policy: Any, name: str, one: AppSortPolicy) -> Iterator[str]:
    """Yield why a sort policy cannot be a factor."""
    if name in _own_factors(policy):
        yield f"{name!r} is a factor already: write another name, as in my-{name}={one.name}"
    elif name not in policy.weights:
        yield f"{name!r} has no weight: add {name}=NUMBER to 'weights'"
    for method in ("placed", "ask_key", "admission_class"):
        if getattr(type(one), method) is not getattr(AppSortPolicy, method):
            yield (
                f"{one.name!r} has {method}(), which works only where the policy is named by itself: write a "
                "subclass of multifactor that has it"
            )
    if not _is_range(one.key_range):
        yield (
            f"the keys of {one.name!r} have no known range ({one.key_range!r}): set key_range = (lowest, "
            f"highest) in its class {type(one).__name__}, if its keys are numbers, or write the factor as a "
            "method of a subclass of multifactor"
        )


def _is_range(found: Any) -> bool:
    """Return True for two finite numbers, the lower first."""
    if not isinstance(found, tuple) or not all(isinstance(end, (int, float)) for end in found):
        return False
    return len(found) == 2 and bool(-math.inf < found[0] < found[1] < math.inf)


@attrs.define(eq=False)
class Multifactor(AppSortPolicy):
    """The application with the largest weighted sum of factors comes first."""

    name = "multifactor"
    weights: Mapping[str, float] = attrs.field(factory=lambda: EQUAL, validator=_check_weights)
    """Weight of each factor; factors that are missing do not count."""
    max_age: float = attrs.field(default=WEEK, validator=positive)
    """Seconds of waiting after which the factor `age` is 1."""
    usage_half_life: float = attrs.field(default=WEEK, validator=half_life_range)
    """Seconds after which past usage counts half in the factor `fair-share`."""
    share: float = attrs.field(default=0.1, validator=positive)
    """Part of the queue's guarantee, or of the cluster, whose use makes the factor `fair-share` 0.5."""
    favor_small: bool = False
    """True if the factor `size` is largest for small applications instead of large ones."""
    top_priority: int = attrs.field(default=1000, validator=attrs.validators.gt(0))
    """Priority from which the factor `priority` is 1."""
    refresh: float = attrs.field(default=60.0, validator=refresh_range)
    """Seconds after which sums are computed again, if they change with time."""
    factors: Mapping[str, AppSortPolicy] = attrs.field(factory=dict, validator=_check_factors)
    """Sort policies whose keys are further factors: `POLICY`, or `NAME=POLICY`."""
    _terms: list[tuple[float, Callable[[Application], float]]] = attrs.field(init=False, repr=False)
    _now: Callable[[], int] = attrs.field(init=False, default=lambda: 0, repr=False)

    def __attrs_post_init__(self) -> None:
        """Look up the methods of the factors, and check that one history of usage serves all of them."""
        self._terms = [(weight, self._term(name)) for name, weight in self.weights.items()]
        found = self._half_lives()
        if len(set(found.values())) > 1:
            text = ", ".join(f"{name} {seconds:g}" for name, seconds in found.items())
            raise ValueError(
                f"factors: one half-life applies to all recent usage, but there are several ({text}): give "
                "usage_half_life and the factors the same number of seconds"
            )

    def _term(self, name: str) -> Callable[[Application], float]:
        if name in self.factors:
            return _scaled(name, self.factors[name])
        found: Callable[[Application], float] = getattr(self, name.replace("-", "_") + FACTOR)
        return found

    def opened(self, context: Context) -> None:
        """Keep the clock of the core, and open the factors; if one fails, those before are closed."""
        self._now = context.now
        with ExitStack() as undo:
            for one in self.factors.values():
                one.opened(context)
                undo.callback(one.closed)
            undo.pop_all()

    def reloaded(self, context: Context) -> None:
        """Tell the factors."""
        for one in self.factors.values():
            one.reloaded(context)

    def closed(self) -> None:
        """Close the factors, all of them if one fails."""
        with ExitStack() as stack:
            for one in self.factors.values():
                stack.callback(one.closed)

    @property
    def refresh_every(self) -> float | None:
        """Seconds between updates, the smallest of all; None if no factor that counts depends on the time."""
        found = [one.refresh_every for one in self.factors.values()]
        if not set(self.weights) <= {"size", "priority", *self.factors}:
            found.append(self.refresh)
        return min(filter(None, found), default=None)

    @property
    def half_life(self) -> float | None:
        """Half-life of the recorded usage; None if no factor that counts reads it."""
        return next(iter(self._half_lives().values()), None)

    @property
    def usage_by(self) -> Collection[str]:
        """Kinds of owners whose usage the factors read."""
        return sorted({kind for one in self.factors.values() for kind in one.usage_by})

    def _half_lives(self) -> dict[str, float]:
        found = {name: one.half_life for name, one in self.factors.items()}
        if "fair-share" in self.weights:
            found["fair-share"] = self.usage_half_life
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    @property
    def key_range(self) -> tuple[float, float] | None:
        """Range of the negated sum; None if all weights are 0."""
        weights = self.weights.values()
        low, high = -sum(max(0.0, one) for one in weights), -sum(min(0.0, one) for one in weights)
        return (low, high) if low < high else None

    def key(self, app: Application) -> float:
        """Return the negated sum; a factor outside of 0 to 1 counts as the nearer end."""
        return -sum(weight * min(1.0, max(0.0, factor(app))) for weight, factor in self._terms)

    def age_factor(self, app: Application) -> float:
        """Return the time since the latest allocation or the submission, relative to `max_age`."""
        return (self._now() - app.waiting_since) / SECOND / self.max_age

    def fair_share_factor(self, app: Application) -> float:
        """Return 2 ** (-usage / share), with the mean recent usage, of the type with the largest part."""
        whole = self.usage_half_life / LN2
        total = app.fair_total
        parts = [usage / whole / total[name] for name, usage in app.past.recent.items() if total.get(name)]
        return math.exp2(-max(parts, default=0.0) / self.share)

    def size_factor(self, app: Application) -> float:
        """Return the largest part of the cluster that the application has or requests."""
        total = {} if app.queue is None else app.queue.total
        parts = [amount / total[name] for name, amount in app.demand.items() if total.get(name)]
        size = min(1.0, max(parts, default=0.0))
        return 1.0 - size if self.favor_small else size

    def priority_factor(self, app: Application) -> float:
        """Return the highest priority of the pending requests, relative to `top_priority`."""
        return app.priority / self.top_priority


def _scaled(name: str, policy: AppSortPolicy) -> Callable[[Application], float]:
    """Return the factor of a sort policy: 1 at its lowest key, 0 at the highest."""
    assert policy.key_range is not None
    low, high = policy.key_range
    span, key = high - low, policy.key

    def factor(app: Application) -> float:
        try:
            found: float = (high - key(app)) / span
        except Exception as error:
            raise ValueError(f"factor {name!r}: {type(error).__name__}: {error}") from error
        if found != found:
            raise ValueError(f"factor {name!r}: the key of {policy.name!r} is NaN")
        return found

    return factor
