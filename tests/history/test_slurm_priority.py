"""The example with Slurm's priority: its formula, and shares over weeks that hold across restarts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.history.recorded_core import START, RecordedCore
from yunikorn.clock import SECOND, ManualClock
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.owner_usage import UsageCredit
from yunikorn_history.past_usage import read_past_usage
from yunikorn_testing import application
from yunikorn_testing.samples import UsageSample
from yunikorn_testing.samples import queue as queue_sample

HOUR = 3_600
DAY = 24 * HOUR
PLACE = Path(__file__).parents[2] / "examples" / "application-order" / "slurm_priority.py"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slurm_priority", PLACE)
    assert spec is not None
    assert spec.loader is not None
    # The types of its options are looked up in the module.
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


SLURM = example().SlurmPriority
REGISTRY = with_plugins(app_sort_policies=[SLURM])
SHARES = {"bio": 60.0, "art": 40.0, "bio/ann": 2.0, "bio/bob": 1.0}


def sample(user: str, account: str, usage: dict[tuple[str, str], float]) -> Any:
    owners = {owner: {"vcore": used} for owner, used in usage.items()}
    leaf = queue_sample("root.batch", total={"vcore": 10})
    tags = {"account": account} if account else {}
    return application("app", queue=leaf, user=user, tags=tags, usage=UsageSample(owners))


@pytest.mark.parametrize(
    ("user", "account", "own", "of_account", "factor"),
    [
        ("ann", "bio", 0.0, 0.0, 1.0),
        ("ann", "art", 0.04, 0.04, 0.5),  # the share of one of ten members of 40 %
        ("ann", "bio", 0.4, 0.6, 2 ** -((0.4 + 0.2 * 2 / 3) / 0.4)),  # two thirds of 60 %
        ("bob", "bio", 0.2, 0.6, 2 ** -((0.2 + 0.4 / 3) / 0.2)),
        ("eve", "", 0.5, 0.0, 2 ** -(0.5 * 101)),  # an account of its own, with one of 101 shares
    ],
)
def test_factor_is_that_of_the_formula(
    user: str, account: str, own: float, of_account: float, factor: float
) -> None:
    usage = {("queue", "root"): 1e6, ("user", user): own * 1e6, ("tag:account", account): of_account * 1e6}
    assert SLURM(shares=SHARES).fair_share_factor(sample(user, account, usage)) == pytest.approx(factor)


def test_without_any_usage_all_are_equal() -> None:
    assert SLURM().fair_share_factor(sample("ann", "bio", {})) == 1.0


def test_shares_must_be_positive() -> None:
    with pytest.raises(ValueError, match="shares: 'bio' needs a number above 0"):
        SLURM(shares={"bio": 0.0})


def config(**options: str) -> str:
    properties = {
        "application.sort.policy": "slurm-priority",
        "application.sort.policy.weights": "fair-share=10000, age=10",
        "application.sort.priority": "disabled",
    }
    properties |= {f"application.sort.policy.{key}": value for key, value in options.items()}
    return configuration(queue("a", properties=properties))


def started(now: int, credits: list[UsageCredit]) -> RM:
    scheduler = Scheduler(REGISTRY, ManualClock(now))
    scheduler.credit_usage(tuple(credits), now)
    rm = RM(config(shares="bio=75, art=25"), scheduler=scheduler)
    rm.node("n1", vcore=10)
    return rm


@pytest.mark.parametrize("remembers", [True, False])
def test_shares_hold_over_weeks_with_a_restart_each_day(remembers: bool) -> None:
    """Two accounts always want everything, six hours each; the scheduler restarts each day."""
    now, credits, used = START, list[UsageCredit](), {"bio": 0, "art": 0}
    for day in range(28):
        rm = started(now, credits if remembers else [])
        for step in range(2):
            for account in ("art", "bio"):
                app_id = f"{account}-{day}-{step}"
                rm.app(app_id, user=f"of-{account}", account=account)
                rm.ask(app_id, vcore=10)
            ((winner, _, _),) = rm.schedule()
            rm.pass_time(12 * HOUR)
            account = winner.partition("-")[0]
            used[account] += 12
            span, service = (now, rm.clock.now()), {"vcore": 10 * 12 * HOUR * 1000}
            tags = {"account": account}
            credits.append(UsageCredit("rm", "default", "root.a", f"of-{account}", *span, service, (), tags))
            now = rm.clock.now()
            for one in ("art", "bio"):
                rm.remove_app(f"{one}-{day}-{step}")
    part = used["bio"] / sum(used.values())
    assert part == pytest.approx(0.75, abs=0.05) if remembers else part == 0.5


def test_who_used_less_goes_first_after_a_restart_with_a_history(tmp_path: Path) -> None:
    core = RecordedCore(str(tmp_path / "history.db"), configuration(queue("a")))
    core.rm.node("n1", vcore=10)
    core.rm.app("last-week", user="ann", groups=["staff"])
    core.rm.ask("last-week", "task", vcore=10)
    core.rm.schedule()
    for _ in range(40):
        core.rm.pass_time(HOUR)
        core.write()
    core.rm.release("last-week")
    core.write(ends=True)
    orders = []
    for knows in (True, False):
        scheduler = Scheduler(REGISTRY, ManualClock(core.clock.now() + DAY * SECOND))
        if knows:
            scheduler.apply(read_past_usage(core.location))
        rm = RM(config(), scheduler=scheduler)
        rm.node("n1", vcore=10)
        for user in ("ann", "bob"):
            rm.app(user, user=user)
            rm.ask(user, vcore=10)
        orders.append([app_id for app_id, _, _ in rm.schedule()])
    core.close()
    assert orders == [["bob"], ["ann"]]
