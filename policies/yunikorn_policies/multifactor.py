"""Default policy for the order of applications by a weighted sum of factors: `multifactor`.

    properties:
      application.sort.policy: multifactor
      application.sort.policy.weights: age=1000, fair-share=2000, size=500, priority=1000
      application.sort.priority: disabled

The largest sum goes first. Each factor is between 0 and 1. Sum and factors are those of Slurm's priority
plugin of the same name ("Multifactor Priority Plugin" and "Classic Fairshare Algorithm", slurm.schedmd.com).
A subclass with further methods `NAME_factor(app)`, and a name of its own, has further factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
    known = sorted(
        name.removesuffix(FACTOR).replace("_", "-") for name in dir(type(policy)) if name.endswith(FACTOR)
    )
    unknown = [name for name in weights if name not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise ValueError(f"weights: there is no factor {names}; known: {', '.join(known)}")
    if not weights or not all(map(math.isfinite, weights.values())):
        raise ValueError("weights: name at least one factor, and a finite number for each")


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
    _terms: list[tuple[float, Callable[[Application], float]]] = attrs.field(init=False, repr=False)
    _now: Callable[[], int] = attrs.field(init=False, default=lambda: 0, repr=False)

    def __attrs_post_init__(self) -> None:
        """Look up the methods of the factors."""
        self._terms = [
            (weight, getattr(self, name.replace("-", "_") + FACTOR)) for name, weight in self.weights.items()
        ]

    def opened(self, context: Context) -> None:
        """Keep the clock of the core."""
        self._now = context.now

    @property
    def refresh_every(self) -> float | None:
        """Seconds between updates; None if neither age nor past usage nor a factor of a subclass counts."""
        return None if set(self.weights) <= {"size", "priority"} else self.refresh

    @property
    def half_life(self) -> float | None:
        """Half-life of the recorded usage; None if `fair-share` does not count."""
        return self.usage_half_life if "fair-share" in self.weights else None

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
