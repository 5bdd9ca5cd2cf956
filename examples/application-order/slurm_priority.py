"""Application sort policy with the formula of Slurm's multifactor priority: shares of accounts and users.

The sum is that of `multifactor`. Its factor `fair-share` is that of Slurm's "Classic Fairshare Algorithm"
(slurm.schedmd.com/classic_fair_share.html): 2 ** (-effective usage / share / damping), where usage is that of
the last weeks, decayed, of the account in a tag of the application, and of its user.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl
from yunikorn_policies.multifactor import Multifactor


def _positive(
    _: object, attribute: attrs.Attribute[Mapping[str, float]], shares: Mapping[str, float]
) -> None:
    wrong = [name for name, share in shares.items() if not 0 < share < math.inf]
    if wrong:
        raise ValueError(f"shares: {wrong[0]!r} needs a number above 0")


@attrs.define(eq=False)
class SlurmPriority(Multifactor):
    """Orders by age, size, priority, and the fair shares of accounts and users over weeks."""

    name = "slurm-priority"
    account_tag: str = "account"
    """Tag of applications with their account; users without one are accounts of their own."""
    shares: Mapping[str, float] = attrs.field(factory=dict, validator=_positive)
    """Shares of accounts, `ACCOUNT=60`, and of users in them, `ACCOUNT/USER=2`; 1 for others."""
    members: float = attrs.field(default=10.0, validator=attrs.validators.ge(1.0))
    """Number of users among whom an account is shared, where `shares` name none of its users."""
    damping: float = attrs.field(default=1.0, validator=attrs.validators.ge(1.0))
    """Larger numbers lessen the effect of usage above the share (`FairShareDampeningFactor`)."""

    @property
    def usage_by(self) -> Collection[str]:
        """Kinds of owners whose usage is read."""
        own = ["user", "queue", f"tag:{self.account_tag}"] if "fair-share" in self.weights else []
        return sorted({*super().usage_by, *own})

    def fair_share_factor(self, app: Application) -> float:
        """Return 1 for an account without usage, 0.5 for one that has used its share, then less."""
        total = self._billed(app, "queue", "root")
        if not total:
            return 1.0
        user, account = self._billed(app, "user", app.user) / total, app.tags.get(self.account_tag, "")
        if account:
            of_account = self._part(account, "")
            of_user = self._part(f"{account}/{app.user}", f"{account}/")
            parent = self._billed(app, f"tag:{self.account_tag}", account) / total
            # A user counts with a part of what the others of the account have used.
            user += max(0.0, parent - user) * of_user
        else:
            of_account, of_user = self._part(app.user, ""), 1.0
        return math.exp2(-user / (of_account * of_user) / self.damping)

    def _billed(self, app: Application, kind: str, name: str) -> float:
        """Return the usage of the type of which the owner has used the largest part of the cluster."""
        total = {} if app.queue is None else app.queue.total
        usage = app.usage.recent(kind, name)
        return max((used / total[one] for one, used in usage.items() if total.get(one)), default=0.0)

    def _part(self, name: str, below: str) -> float:
        """Return the part of an account, or of a user `below` an account, in the shares of all of them."""
        named = {
            one: share
            for one, share in self.shares.items()
            if one.startswith(below) and "/" not in one[len(below) :]
        }
        share = named.get(name, 1.0)
        if below and not named:
            return 1.0 / self.members
        return share / (sum(named.values()) + (0.0 if name in named else share))


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policy of this module."""
    return [SlurmPriority]
