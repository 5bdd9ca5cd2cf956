"""Leader election: never two leaders, and a new one within the time of the lease."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.kubernetes.api_server.memory_server import Json, MemoryServer, failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn.clock import SECOND, Clock, ManualClock
from yunikorn.errors import YunikornError
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.lease import LeaderElection, LeadershipLost, LeaseTimes
from yunikorn_kubernetes.api_server.transport import ServerAnswer

API = "/apis/coordination.k8s.io/v1"


def candidate(memory: MemoryServer, identity: str, clock: Clock | None = None) -> LeaderElection:
    """Return a candidate for the lease `yunikorn`."""
    return LeaderElection(
        ApiServer(memory),
        "scheduling",
        "yunikorn",
        identity,
        clock=clock or ManualClock(1_700_000_000 * SECOND + 123_456_789),
        random=seeded(len(identity)),
    )


def lease(memory: MemoryServer) -> Json:
    """Return the lease."""
    return memory.objects[API, "leases"]["scheduling/yunikorn"]


def now() -> float:
    """Return the time of the loop."""
    return asyncio.get_running_loop().time()


def test_the_first_candidate_creates_the_lease() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        assert not one.holds()
        await one.acquire()
        assert one.holds()
        assert lease(memory)["spec"] == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2023-11-14T22:13:20.123456Z",
            "renewTime": "2023-11-14T22:13:20.123456Z",
            "leaseTransitions": 0,
        }

    run_virtual(scenario())


def test_a_holder_renews_and_others_wait() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one, two = candidate(memory, "a"), candidate(memory, "b")
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(600.0)
        assert one.holds()
        assert not two.holds()
        assert not kept.done()
        assert two.holder == "a"
        puts = sum(method == "PUT" for method, _ in memory.calls)
        assert 295 <= puts <= 300
        kept.cancel()
        waiting.cancel()
        await asyncio.gather(kept, waiting, return_exceptions=True)

    run_virtual(scenario())


def test_a_holder_that_dies_is_followed_after_the_duration_of_its_lease() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one, two = candidate(memory, "a"), candidate(memory, "b")
        await one.acquire()
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(10.0)
        died = now()
        await one._renew()
        await waiting
        assert 15.0 <= now() - died <= 15.0 + 2 * 2.4
        assert lease(memory)["spec"]["leaseTransitions"] == 1
        one._valid_until = now() + 5.0
        with pytest.raises(LeadershipLost, match="b has taken the lease"):
            await one.keep()
        assert not one.holds()

    run_virtual(scenario())


def test_a_released_lease_is_taken_at_once() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one, two = candidate(memory, "a"), candidate(memory, "b")
        await one.acquire()
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(10.0)
        await one._renew()
        await one.release()
        assert not one.holds()
        released = now()
        await waiting
        assert now() - released <= 2.4
        await one.release()
        assert lease(memory)["spec"]["holderIdentity"] == "b"

    run_virtual(scenario())


def test_a_release_without_an_answer_ends_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        memory.delay = 3600.0
        started = now()
        await one.release()
        assert now() - started == pytest.approx(5.0)

    run_virtual(scenario())
    assert "the lease was not given back: no answer" in caplog.text


@pytest.mark.parametrize("fault", [refused(), lost(), failure(500, "InternalError", "etcd is down")])
def test_a_holder_without_api_server_stops_before_others_may_start(fault: ServerAnswer | Exception) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        await asyncio.sleep(21.0)
        memory.before = lambda method, path: fault
        renewed = one._valid_until - 10.0
        with pytest.raises(LeadershipLost, match="not renewed for 10 seconds"):
            await kept
        assert now() - renewed == pytest.approx(10.0)
        assert not one.holds()

    run_virtual(scenario())


def test_a_holder_whose_calls_hang_stops_in_time() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        acquired = now()
        memory.delay = 3600.0
        with pytest.raises(
            LeadershipLost, match=r"not renewed for 10 seconds \(no answer within 5 seconds\)"
        ):
            await one.keep()
        assert now() - acquired == pytest.approx(10.0)

    run_virtual(scenario())


@pytest.mark.parametrize("executed", [False, True])
def test_one_call_that_hangs_costs_nothing(executed: bool) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        await asyncio.sleep(1.0)
        memory.hang(executed=executed)
        await asyncio.sleep(60.0)
        assert not kept.done()
        assert one.holds()
        assert lease(memory)["spec"]["leaseTransitions"] == 0
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)

    run_virtual(scenario())


def test_a_call_that_hangs_does_not_delay_a_takeover(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        two = candidate(memory, "b")
        memory.hang()
        started = now()
        await two.acquire()
        assert now() - started <= 5.0 + 2.4

    run_virtual(scenario())
    assert "lease scheduling/yunikorn: no answer within 5 seconds" in caplog.text


def test_a_short_outage_costs_nothing() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        for _ in range(20):
            memory.before = lambda method, path: refused()
            await asyncio.sleep(4.0)
            memory.before = lambda method, path: None
            memory.after = lambda method, path: lost()
            await asyncio.sleep(1.5)
            memory.after = lambda method, path: None
            await asyncio.sleep(3.0)
            assert one.holds()
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)

    run_virtual(scenario())


def test_changes_of_a_lease_by_others_are_kept_and_do_not_end_a_leadership() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        one = candidate(memory, "a")
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        record = lease(memory)
        record["spec"]["strategy"] = "OldestEmulationVersion"
        record["metadata"]["labels"] = {"team": "platform"}
        memory.put("leases", record, api=API)
        await asyncio.sleep(60.0)
        assert one.holds()
        assert lease(memory)["spec"]["strategy"] == "OldestEmulationVersion"
        memory.remove("leases", "scheduling/yunikorn", api=API)
        await asyncio.sleep(60.0)
        assert one.holds()
        assert lease(memory)["spec"]["holderIdentity"] == "a"
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)

    run_virtual(scenario())


@pytest.mark.parametrize("jump", [-86400, 86400])
def test_jumps_of_the_wall_clock_change_nothing(jump: int) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        clock = ManualClock(1_700_000_000 * SECOND)
        ours, theirs = ManualClock(1_700_000_000 * SECOND), ManualClock((1_700_000_000 + jump) * SECOND)
        one, two = candidate(memory, "a", ours), candidate(memory, "b", theirs)
        await one.acquire()
        kept = asyncio.create_task(one.keep())
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(60.0)
        ours.advance(7200)
        await asyncio.sleep(60.0)
        assert one.holds()
        assert not two.holds()
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)
        await waiting
        assert two.holds()
        assert clock.now() < ours.now()

    run_virtual(scenario())


def test_the_duration_in_a_lease_counts_and_an_odd_lease_is_taken() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        meta = {"name": "yunikorn", "namespace": "scheduling"}
        spec = {"holderIdentity": "old", "leaseDurationSeconds": 60}
        memory.put("leases", {"metadata": meta, "spec": spec}, api=API)
        started = now()
        await candidate(memory, "a").acquire()
        assert 60.0 <= now() - started <= 63.0
        memory.put("leases", {"metadata": dict(meta), "spec": None}, api=API)
        await candidate(memory, "b").acquire()
        assert lease(memory)["spec"]["holderIdentity"] == "b"

    run_virtual(scenario())


def test_a_server_without_rights_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: failure(403, "Forbidden", "leases is forbidden")
        waiting = asyncio.create_task(candidate(memory, "a").acquire())
        await asyncio.sleep(600.0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    run_virtual(scenario())
    assert caplog.text.count("lease scheduling/yunikorn: 403 leases is forbidden") == 1


def test_times_that_permit_two_leaders_are_refused() -> None:
    with pytest.raises(
        YunikornError, match="the duration of 10 s must be longer than the deadline of renewals"
    ):
        LeaseTimes(duration=10.0, renew_deadline=10.0)


@pytest.mark.parametrize("seed", range(10))
def test_there_are_never_two_leaders(seed: int) -> None:
    """Processes are stopped, started and cut off at random; answers are lost; wall clocks differ."""
    draw = random.Random(seed)

    async def scenario() -> None:
        memory = MemoryServer()
        running: dict[str, tuple[LeaderElection, asyncio.Task[None]]] = {}
        started = 0
        led = 0

        async def process(election: LeaderElection) -> None:
            while True:
                await election.acquire()
                try:
                    await election.keep()
                except LeadershipLost:
                    assert not election.holds()

        for _ in range(80):
            action = draw.random()
            if action < 0.2 and len(running) < 4:
                started += 1
                election = candidate(memory, f"p{started}", ManualClock(draw.randrange(10**18)))
                running[f"p{started}"] = election, asyncio.create_task(process(election))
            elif action < 0.3 and running:
                election, task = running.pop(draw.choice(sorted(running)))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if draw.random() < 0.5:
                    await election.release()
            elif action < 0.5:
                memory.before = lambda method, path: refused() if draw.random() < 0.7 else None
            elif action < 0.6:
                memory.after = lambda method, path: lost() if draw.random() < 0.5 else None
            else:
                memory.before = memory.after = lambda method, path: None
            for _ in range(draw.randrange(40)):
                await asyncio.sleep(0.5)
                leaders = [name for name, (election, _) in running.items() if election.holds()]
                assert len(leaders) <= 1
                led += len(leaders)
        assert led > 100
        for _, task in running.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in running.values()), return_exceptions=True)

    run_virtual(scenario())
