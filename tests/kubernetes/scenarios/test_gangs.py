"""Gangs start together: placeholders reserve their room, and leave when members take it."""

from __future__ import annotations

from tests.kubernetes.cluster.objects import deployment, job, node, node_of, nodes, phase, pod
from tests.kubernetes.scenarios.gangs import (
    bound,
    gang,
    group,
    members,
    names_since,
    placeholders,
    real,
    requests,
    unique,
    version_of_pods,
    wait_for_members,
    wait_for_placeholders,
    with_pages,
)
from tests.kubernetes.scheduling import QUEUES, Scheduled

SMALL_QUEUE = QUEUES.replace('"*"}', '"*", queues: [{name: small, resources: {max: {vcore: 2}}}]}')
IN_ORDER = SMALL_QUEUE.replace("name: small,", "name: small, properties: {application.sort.policy: fifo},")


def test_annotations_of_a_job_make_a_gang(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(job("train", pods=3, application=unique("gang"), annotations=gang(group())))
    held = wait_for_placeholders(scheduled, 3, on_nodes=2)
    pods = real(scheduled.kubectl.list("Pod", "default"))
    assert len(pods) == 3
    assert not bound(pods)
    [owner] = {one["metadata"]["ownerReferences"][0]["uid"] for one in held}
    assert owner in {one["metadata"]["uid"] for one in pods}
    assert {one["metadata"]["name"][:7] for one in held} == {"tg-gang"}
    assert all(requests(one) == {"cpu": "1", "memory": "1Gi"} for one in held)
    scheduled.make_nodes(node("more", cpu="1"))
    assert sorted(wait_for_members(scheduled, 3).values()) == ["more", "small", "small"]


def test_a_gang_of_several_groups_starts_as_one(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("fast", cpu="3", labels={"disk": "ssd"}))
    slow, fast = {"disk": "hdd"}, {"disk": "ssd"}
    groups = [group("driver", 1, "2", nodeSelector=slow), group("workers", 3, "1", nodeSelector=fast)]
    application = unique("gang")
    scheduled.create(
        *members(1, gang(*groups, name="driver"), application=application, cpu="2", nodeSelector=slow)
    )
    worker = deployment(
        "workers",
        replicas=3,
        application=application,
        annotations=gang(*groups, name="workers"),
        nodeSelector=fast,
    )
    held = wait_for_placeholders(scheduled, 4, on_nodes=3)
    assert sorted(requests(one)["cpu"] for one in held) == ["1", "1", "1", "2"]
    scheduled.make_nodes(node("plain", cpu="2", labels={"disk": "hdd"}))
    # The placeholders of the workers hold their room until the workers exist.
    assert scheduled.node_of("gang-0") == "plain"
    wait_for_placeholders(scheduled, 3, on_nodes=3)
    scheduled.create(pod("other", nodeSelector=fast))
    scheduled.pending("other")
    scheduled.create(worker)
    placed = wait_for_members(scheduled, 4)
    assert sorted(placed.values()) == ["fast", "fast", "fast", "plain"]


def test_more_members_than_the_least_number_follow_the_gang(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="3"))
    scheduled.create(job("train", pods=5, application=unique("gang"), annotations=gang(group(members=3))))
    wait_for_members(scheduled, 5)


def test_a_soft_gang_without_room_runs_as_far_as_it_fits(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(*members(3, gang(group(), timeout=2)))
    wait_for_placeholders(scheduled, 3, on_nodes=2)
    wait_for_members(scheduled, 2)
    assert any("SOFT" in note for note in scheduled.events("GangScheduling", regarding="gang-0"))


def test_a_hard_gang_without_room_fails(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(*members(3, gang(group(), style="Hard", timeout=2)))
    wait_for_placeholders(scheduled, 3, on_nodes=2)
    pods = scheduled.wait_pods(lambda pods: len(pods) == 3 and all(phase(one) == "Failed" for one in pods))
    assert {one["status"]["reason"] for one in pods.values()} == {"ResourceReservationTimeout"}
    assert not bound(pods.values())
    scheduled.events("ApplicationFailed", regarding="gang-0")
    # The room that was held is free.
    scheduled.create(*members(2, {}, "next"))
    scheduled.running(2)


def test_a_hard_gang_with_room_runs(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(*members(3, gang(group(), style="Hard")))
    wait_for_members(scheduled, 3)


def test_an_atomic_gang_is_placed_as_a_whole_without_placeholders(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    before = version_of_pods(scheduled)
    scheduled.create(*members(3, gang(group(), style="Atomic")))
    scheduled.pending("gang-0")
    # The room that does not suffice remains free for others.
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "small"
    scheduled.make_nodes(node("large", cpu="3"))
    assert set(wait_for_members(scheduled, 4).values()) == {"small", "large"}
    assert names_since(scheduled, before) == {"gang-0", "gang-1", "gang-2", "other"}


def test_a_deleted_placeholder_does_not_stop_the_gang(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(*members(3, gang(group(), timeout=4)))
    held = wait_for_placeholders(scheduled, 3, on_nodes=2)
    lost = next(one for one in held if node_of(one))
    scheduled.kubectl.delete("Pod", lost["metadata"]["name"], grace=0)
    # The third placeholder gets the room of the deleted one.
    scheduled.wait_pods(lambda pods: bound(placeholders(pods)) == 2)
    scheduled.make_nodes(node("more", cpu="4"))
    wait_for_members(scheduled, 3)


def test_placeholders_of_a_job_with_too_few_members_are_deleted(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    annotations = gang(group(members=4), timeout=3)
    scheduled.create(job("train", pods=2, runs="10ms", application=unique("gang"), annotations=annotations))
    pods = scheduled.wait_pods(lambda pods: [phase(one) for one in pods] == ["Succeeded"] * 2)
    assert not placeholders(pods.values())


def test_placeholders_end_with_the_originator(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(*members(1, gang(group(), timeout=300)))
    wait_for_placeholders(scheduled, 3, on_nodes=2)
    scheduled.kubectl.delete("Pod", "gang-0")
    scheduled.wait_pods(lambda pods: not pods)
    # The room is free again.
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "small"


def test_a_gang_larger_than_its_quota_is_rejected(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(SMALL_QUEUE):
        before = version_of_pods(scheduled)
        scheduled.create(*members(3, gang(group()), queue="root.small"))
        pods = scheduled.wait_pods(
            lambda pods: len(pods) == 3 and all(phase(one) == "Failed" for one in pods)
        )
        assert {one["status"]["reason"] for one in pods.values()} == {"ApplicationRejected"}
        assert "root.small" in pods["gang-0"]["status"]["message"]
        assert names_since(scheduled, before) == {"gang-0", "gang-1", "gang-2"}


def test_task_groups_with_problems_are_reported_and_ignored(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="1"))
    scheduled.create(*members(2, gang(group(members=0), group("other", cpu="-1"))))
    scheduled.running(1)
    notes = " ".join(scheduled.events("GangScheduling", regarding="gang-0"))
    assert "minMember" in notes
    assert "-1" in notes


def test_gangs_of_one_queue_start_in_the_order_of_their_creation(scheduled: Scheduled) -> None:
    with scheduled.queues(IN_ORDER):
        annotations = gang(group(members=2))
        scheduled.create(*members(2, annotations, "first", queue="root.small"))
        wait_for_placeholders(scheduled, 2)
        scheduled.create(*members(2, annotations, "second", queue="root.small"))
        wait_for_placeholders(scheduled, 4)
        scheduled.make_nodes(node("only"))
        assert set(scheduled.wait_pods(lambda pods: sum(phase(one) == "Running" for one in real(pods)) == 2))
        running = [one for one in scheduled.kubectl.list("Pod", "default") if phase(one) == "Running"]
        assert {one["metadata"]["name"] for one in real(running)} == {"first-0", "first-1"}


def test_huge_pages_of_a_gang_are_reserved(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("plain"), node("pages", resources={"hugepages-2Mi": "4Mi"}))
    groups = group(members=2, minResource={"hugepages-2Mi": "2Mi"})
    scheduled.create(*members(2, gang(groups), containers=with_pages("2Mi")))
    assert set(wait_for_members(scheduled, 2).values()) == {"pages"}
