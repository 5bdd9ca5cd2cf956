"""The default policy `multifactor`: its factors, their bounds, and further ones of a subclass."""

from __future__ import annotations

import math
import re

import attrs
import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.api import Application, Context, PastService
from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import ConfigError
from yunikorn_policies.multifactor import LN2, Multifactor
from yunikorn_testing import Amounts, application
from yunikorn_testing import queue as queue_sample

TOTAL: Amounts = {"vcore": 100, "memory": "100Gi"}


def opened(policy: Multifactor, now: float = 0) -> Multifactor:
    policy.opened(Context("default", ManualClock(round(now * SECOND)).now))
    return policy


@pytest.mark.parametrize(("now", "age"), [(0, 0.0), (50, 0.5), (100, 1.0), (1000, 1.0)])
def test_age_grows_up_to_one(now: float, age: float) -> None:
    policy = opened(Multifactor({"age": 10.0}, max_age=100.0), now)
    assert policy.key(application()) == pytest.approx(-10 * age)


@pytest.mark.parametrize(("used", "factor"), [(0, 1.0), (10, 0.5), (20, 0.25), (100, 2**-10)])
def test_fair_share_halves_with_each_share_that_is_used(used: int, factor: float) -> None:
    policy = Multifactor({"fair-share": 1.0}, usage_half_life=60.0, share=0.1)
    recent = {"vcore": used * 1000 * 60.0 / LN2, "gpu": 1e9}
    app = application(fair_total=TOTAL, past=PastService(recent=recent))
    assert policy.key(app) == pytest.approx(-factor)


@pytest.mark.parametrize(
    ("favor_small", "size", "factor"),
    [
        (False, {"vcore": 25}, 0.25),
        (True, {"vcore": 25}, 0.75),
        (False, {"vcore": 500}, 1.0),
        (True, {}, 1.0),
    ],
)
def test_size_is_the_largest_part_of_the_cluster(
    favor_small: bool, size: dict[str, int], factor: float
) -> None:
    app = application(queue=queue_sample(total=TOTAL), pending={**size, "memory": "1Gi", "gpu": 7})
    expected = pytest.approx(-factor, abs=0.011)
    assert Multifactor({"size": 1.0}, favor_small=favor_small).key(app) == expected


@pytest.mark.parametrize(("priority", "factor"), [(-5, 0.0), (-(2**31), 0.0), (250, 0.25), (9999, 1.0)])
def test_priority_is_bounded(priority: int, factor: float) -> None:
    assert Multifactor({"priority": 2.0}).key(application(priority=priority)) == -2 * factor


def test_only_what_counts_is_refreshed_and_recorded() -> None:
    still, aged, shared = (Multifactor({name: 1.0}) for name in ("size", "age", "fair-share"))
    assert (still.refresh_every, still.half_life) == (None, None)
    assert (aged.refresh_every, aged.half_life) == (60.0, None)
    assert (shared.refresh_every, shared.half_life) == (60.0, 7 * 86_400.0)


def test_a_subclass_has_further_factors() -> None:
    @attrs.define(eq=False)
    class WithOwner(Multifactor):
        name = "with-owner"

        def owner_factor(self, app: Application) -> float:
            return 7.0 if app.user == "ann" else -1.0

    policy = WithOwner({"owner": 3.0, "priority": 1.0})
    assert (policy.key(application(user="ann")), policy.key(application(user="bob"))) == (-3.0, 0.0)
    assert policy.refresh_every == 60.0


@pytest.mark.parametrize("weights", ["agee=1", "", "age=inf"])
def test_unknown_factors_and_bad_weights_are_refused(weights: str) -> None:
    properties = {"application.sort.policy": "multifactor", "application.sort.policy.weights": weights}
    with pytest.raises(ConfigError, match="weights"):
        RM(configuration(queue("a", properties=properties)))


@pytest.mark.parametrize(
    ("option", "value"),
    [("usage_half_life", "1e300"), ("usage_half_life", "1e9"), ("refresh", "1e18"), ("refresh", "0.01")],
)
def test_times_that_the_core_would_not_apply_are_refused(option: str, value: str) -> None:
    properties = {"application.sort.policy": "multifactor", f"application.sort.policy.{option}": value}
    with pytest.raises(ConfigError, match=rf"queues\[0\]\.properties.*{option}"):
        RM(configuration(queue("a", properties=properties)))


def test_the_largest_times_apply() -> None:
    largest = math.nextafter(1e9, 0)
    options = {"usage_half_life": largest, "refresh": largest, "max_age": 1e300}
    properties = {f"application.sort.policy.{name}": str(value) for name, value in options.items()}
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "multifactor", **properties})))
    rm.node(vcore=8)
    rm.app()
    rm.ask(vcore=1)
    assert len(rm.schedule()) == 1
    rm.pass_time(10)
    assert rm.find_app().past.recent["vcore"] == pytest.approx(10.0)
    assert rm.failures() == []


def test_message_names_the_known_factors() -> None:
    text = (
        "weights: there is no factor 'agee'; known: age, fair-share, priority, size; a sort policy is one if "
        "it is named in 'factors', too"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Multifactor({"agee": 1.0})


def test_applications_are_served_by_their_sums() -> None:
    properties = {
        "application.sort.policy": "multifactor",
        "application.sort.policy.weights": "priority=1, age=100",
        "application.sort.policy.max_age": "100",
        "application.sort.priority": "disabled",
    }
    rm = RM(configuration(queue("a", properties=properties)))
    rm.app("old")
    rm.ask("old", vcore=1)
    rm.pass_time(50)
    rm.app("urgent")
    rm.ask("urgent", vcore=1, priority=1000)
    rm.node(vcore=8)
    assert [app_id for app_id, _, _ in rm.schedule()] == ["old", "urgent"]
