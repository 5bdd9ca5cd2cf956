"""PodGroups of yunikorn and of kube-scheduler: what that places we place, and gangs that it cannot place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.reference.gang_cases import GangCase, Member, Place, any_gang, tight_gang
from tests.kubernetes.reference.gang_cycle import (
    OURS,
    RACKS,
    THEIRS,
    await_decisions,
    decide,
    draw,
    prepare,
    replace_members,
    start_reference,
    submit,
)
from tests.kubernetes.scheduling import scheduling

pytestmark = pytest.mark.slow


def test_gangs_that_kube_scheduler_places_are_placed_and_so_are_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    """`python -m tests.kubernetes.reference.gang_cycle` compares more of them."""
    some, tight = draw(12, 1, any_gang, "any"), draw(12, 1, tight_gang, "tight")
    found = decide(cluster, tmp_path, [*some, *tight], runs=2)
    assert not found.lacking([*some, *tight])
    assert all(found.ours[case.name] for case in tight)
    # Its order of the pods is fixed, and the first node of a pod is final.
    assert len(found.gained(tight)) >= 3


def test_a_replacement_runs_though_another_member_has_succeeded(cluster: Cluster, tmp_path: Path) -> None:
    """kube-scheduler 1.36 counts only pods that have not ended, so that its replacements hang."""
    cases = [GangCase(f"g{n}", [Place(2, "a")], [Member(1), Member(1)], 2, bool(n % 2)) for n in range(4)]
    prepare(cluster.kubectl, cases)
    with scheduling(cluster, tmp_path, queues=RACKS):
        submit(cluster.kubectl, cases, "ours", OURS)
        assert all(await_decisions(cluster.kubectl, "ours", {case.name for case in cases}).values())
        replace_members(cluster.kubectl, cases, "ours", OURS)


def test_both_schedulers_work_side_by_side(cluster: Cluster, tmp_path: Path) -> None:
    """Each keeps to its own pods; on a common node the room that the other one uses is respected."""
    kubectl = cluster.kubectl
    apart = [GangCase(f"apart{n}", [Place(2), Place(1)], [Member(1)] * 3, 3) for n in range(6)]
    common = GangCase("common", [Place(3)], [Member(1)] * 2, 2)
    prepare(kubectl, [*apart, common])
    start_reference(cluster)
    with scheduling(cluster, tmp_path, queues=RACKS):
        submit(kubectl, apart[:3], "ours", OURS)
        submit(kubectl, apart[3:], "theirs", THEIRS)
        for place, cases in (("ours", apart[:3]), ("theirs", apart[3:])):
            assert all(await_decisions(kubectl, place, {case.name for case in cases}).values())
        submit(kubectl, [common], "first", THEIRS)
        assert await_decisions(kubectl, "first", {"common"}) == {"common": True}
        submit(kubectl, [common], "second", OURS)
        assert await_decisions(kubectl, "second", set()) == {"common": False}
        kubectl.delete("Pod", "common-0", "first")
        assert await_decisions(kubectl, "second", {"common"}) == {"common": True}
