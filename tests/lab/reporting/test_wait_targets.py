"""Wait targets: applications that met or missed them, by queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.run_figures import WaitTarget, parse_targets

Observe = Callable[..., FullReport]

# One core: x starts at 0, y at 20, u at 40, and the others wait.
SCENARIO = """
nodes: [{name: n, resources: {vcore: 1}}]
applications:
  - {id: x, queue: root.all.a, tasks: [{resources: {vcore: 1}, runtime: 20}]}
  - {id: y, queue: root.all.a, submit: 1, tasks: [{resources: {vcore: 1}, runtime: 20}]}
  - {id: z, queue: root.all.b, submit: 2, tasks: [{resources: {vcore: 1}, runtime: 100}]}
  - {id: u, queue: root.all.a, submit: 3, tasks: [{resources: {vcore: 1}, runtime: 20}]}
  - {id: v, queue: root.all.a, submit: 45, tasks: [{resources: {vcore: 1}, runtime: 20}]}
  - {id: w, queue: root.nowhere, submit: 45, tasks: [{resources: {vcore: 1}, runtime: 20}]}
"""
QUEUES = """
          - name: all
            queues: [{name: a}, {name: b}]"""


def test_applications_are_compared_with_the_targets_of_their_queue_and_its_parents(observe: Observe) -> None:
    targets = {"root.all": 19 * SECOND, "root.all.a": 18 * SECOND, "root.all.b": 60 * SECOND}
    figures = observe(SCENARIO, QUEUES, until=59, targets=targets).figures
    assert figures.slo == [
        # y has waited 19 s, u 37 s; z has waited 57 s so far, and v only 14 s.
        WaitTarget("root.all", 19, met=2, missed=2, undecided=1, share_met=0.5),
        WaitTarget("root.all.a", 18, met=1, missed=2, undecided=1, share_met=0.333333),
        WaitTarget("root.all.b", 60, met=0, missed=0, undecided=1, share_met=None),
    ]


def test_target_without_applications_is_undecided(observe: Observe) -> None:
    [found] = observe(SCENARIO, QUEUES, targets={"root.all.c": SECOND}).figures.slo
    assert (found.met, found.missed, found.undecided, found.share_met) == (0, 0, 0, None)


def test_targets_are_read_and_all_problems_are_reported() -> None:
    known = ["root", "root.web", "root.batch"]
    assert parse_targets(["root.Web=5m", "root=30"], known, are_all=True) == {
        "root.web": 300 * SECOND,
        "root": 30 * SECOND,
    }
    with pytest.raises(UsageError) as raised:
        parse_targets(["root.wep=5m", "root.web", "root.batch=soon", "root=1", "root=2"], known, are_all=True)
    assert str(raised.value).splitlines() == [
        "--slo root.wep=5m: unknown queue 'root.wep', did you mean 'root.web'?",
        "--slo root.web: expected QUEUE=TIME, such as root.web=5m",
        "--slo root.batch=soon: expected seconds or a duration such as 90, 30s, 1h30m or 1d, got 'soon'",
        "--slo root=2: queue root has two targets; give one",
    ]


def test_queues_that_placement_rules_create_are_accepted() -> None:
    assert parse_targets(["root.web.ann=1"], ["root", "root.web"], are_all=False) == {"root.web.ann": SECOND}
    with pytest.raises(UsageError, match="unknown queue 'web'"):
        parse_targets(["web=1"], ["root", "root.web"], are_all=False)
