"""Keeping of the certificates and of the configurations of the webhooks."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest

from tests.kubernetes.api_server.memory_server import MemoryServer, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import UsageError
from yunikorn_kubernetes.admission.controller import AdmissionOptions
from yunikorn_kubernetes.admission.trust import INTERVAL, MUTATING, RETRY, VALIDATING, Trust
from yunikorn_kubernetes.admission.webhook_certificates import ServerCertificate
from yunikorn_kubernetes.admission.webhooks import MUTATIONS, VALIDATIONS, Reachable
from yunikorn_kubernetes.api_server.calls import ApiServer

YEAR = 365 * 86400
SERVICE = Reachable("webhooks", "yunikorn")


def keeping(
    steps: Any, reachable: list[Reachable], memory: MemoryServer | None = None
) -> list[ServerCertificate]:
    """Run a keeper while `steps(trust, clock)` runs, and return the certificates that it passed on."""
    used: list[ServerCertificate] = []

    async def main() -> None:
        clock = ManualClock(1_800_000_000 * SECOND)
        trust = Trust(ApiServer(memory or MemoryServer()), lambda: reachable[-1], clock)
        keeper = asyncio.create_task(trust.keep(used.append))
        try:
            await steps(trust, clock)
            assert not keeper.done()
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    run_virtual(main())
    return used


def test_a_name_that_fits_in_no_certificate_does_not_end_the_keeper(caplog: pytest.LogCaptureFixture) -> None:
    reachable = [SERVICE]

    async def steps(trust: Trust, clock: ManualClock) -> None:
        await asyncio.sleep(1.0)
        assert trust.problem == ""
        reachable.append(Reachable("wébhooks", "yunikorn"))
        await asyncio.sleep(INTERVAL)
        assert trust.problem.startswith("bug: ValueError")
        reachable.append(Reachable("webhooks-2", "yunikorn"))
        await asyncio.sleep(RETRY)
        assert trust.problem == ""

    assert len(keeping(steps, reachable)) == 2
    assert "certificates and configurations of the webhooks were not checked: bug: ValueError" in caplog.text
    assert "Traceback" in caplog.text


def test_a_server_that_is_away_is_tried_again() -> None:
    memory = MemoryServer()

    async def steps(trust: Trust, clock: ManualClock) -> None:
        await asyncio.sleep(1.0)
        memory.before = lambda method, path: refused()
        clock.advance(2 * YEAR)
        await asyncio.sleep(INTERVAL)
        assert "refused" in trust.problem
        assert trust.is_expired
        memory.before = lambda method, path: None
        await asyncio.sleep(RETRY)
        assert trust.problem == ""
        assert not trust.is_expired

    first, second = keeping(steps, [SERVICE], memory)
    assert second.end - first.end > datetime.timedelta(days=365)


@pytest.mark.parametrize(
    ("namespace", "url", "parts"),
    [
        ("schéduler", "", ["--namespace 'schéduler' is no namespace"]),
        ("Yunikorn", "https://höst:9089", ["--namespace 'Yunikorn'", "--url https://höst:9089"]),
        ("yunikorn", "https://:9089", ["'' is no address and no host name"]),
        ("yunikorn", "https://[1:9089", ["'' is no address and no host name"]),
    ],
)
def test_names_that_cannot_be_used_are_refused_at_the_start(
    namespace: str, url: str, parts: list[str]
) -> None:
    with pytest.raises(UsageError) as refused_names:
        AdmissionOptions(namespace, "127.0.0.1", 0, url).check()
    for part in parts:
        assert part in str(refused_names.value)


@pytest.mark.parametrize("url", ["", "https://10.0.0.1:9089", "https://[::1]:9089", "https://a.b-c.example"])
def test_usual_names_are_accepted(url: str) -> None:
    AdmissionOptions("yunikorn", "127.0.0.1", 0, url).check()


def test_the_failure_policy_for_config_maps_follows_the_settings() -> None:
    required = [False]

    async def main() -> None:
        server = ApiServer(MemoryServer())
        trust = Trust(server, lambda: SERVICE, ManualClock(1_800_000_000 * SECOND), lambda: required[-1])
        for one, policy in ((False, "Ignore"), (True, "Fail"), (False, "Ignore")):
            required.append(one)
            await trust.check(lambda _: None)
            (pods,) = (await server.get(MUTATING, "", MUTATIONS))["webhooks"]
            (config_maps,) = (await server.get(VALIDATING, "", VALIDATIONS))["webhooks"]
            assert (pods["failurePolicy"], config_maps["failurePolicy"]) == ("Ignore", policy)

    run_virtual(main())
