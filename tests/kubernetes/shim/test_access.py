"""First contact with an API server that is away, has just started, or refuses access."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from tests.kubernetes.api_server.memory_server import MemoryServer, answer, failure, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn.errors import UsageError
from yunikorn_kubernetes.api_server.api_resources import NODES, PODS
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.shim.api_server_check import FirstContact

FORBIDDEN = failure(403, "Forbidden", "no rights are known")
NOT_READY = failure(500, "InternalError", "informer-sync failed")
READY = ServerAnswer(200, {}, b"ok")
Rule = Callable[[str], "ServerAnswer | Exception | None"]


def now() -> float:
    """Return the time of the loop."""
    return asyncio.get_running_loop().time()


class Server(MemoryServer):
    """Server that starts at second 0, and answers by `rule` until then; it permits everything afterwards."""

    def __init__(self, starts_after: float, rule: Rule) -> None:
        super().__init__()
        self.starts_at = now() + starts_after
        self.rule = rule
        self.before = self._answer

    def _answer(self, method: str, path: str) -> ServerAnswer | Exception | None:
        if now() < self.starts_at and (found := self.rule(path)) is not None:
            return found
        if path.startswith("/readyz"):
            return READY
        if "accessreviews" in path:
            return answer(201, {"status": {"allowed": True}})
        return None


def outcome(starts_after: float, rule: Rule, *, election: bool | None = None) -> tuple[bool | str, float]:
    """Return the result of a wait for a server, or its error, and the seconds that the wait took."""

    async def scenario() -> tuple[bool | str, float]:
        began = now()
        access = FirstContact(ApiServer(Server(starts_after, rule)), seeded(1))
        try:
            found: bool | str = await access.wait(
                [(PODS, ""), (NODES, "")], ("yunikorn", "yunikorn-scheduler"), election
            )
        except UsageError as error:
            found = str(error)
        return found, now() - began

    return run_virtual(scenario())


def forbidden(path: str) -> ServerAnswer:
    """Refuse everything, as a server that has not read any rights."""
    return NOT_READY if path.startswith("/readyz") else FORBIDDEN


def forbidden_lease(path: str) -> ServerAnswer | None:
    """Refuse leases, as a server that has not read all rights."""
    return forbidden(path) if "/leases/" in path or path.startswith("/readyz") else None


@pytest.mark.parametrize("election", [None, True, False])
@pytest.mark.parametrize("rule", [forbidden, forbidden_lease, lambda _: FORBIDDEN, lambda _: refused()])
def test_a_server_that_starts_is_waited_for(rule: Rule, election: bool | None) -> None:
    found, seconds = outcome(10.0, rule, election=election)
    assert found is (election is not False)
    if not (rule is forbidden_lease and election is False):
        assert 10.0 <= seconds <= 30.0


def forbidden_but_ready(path: str) -> ServerAnswer:
    """Refuse everything for good."""
    return READY if path.startswith("/readyz") else FORBIDDEN


def test_a_server_that_is_ready_and_refuses_is_believed_at_once() -> None:
    found, seconds = outcome(1000.0, forbidden_but_ready)
    assert "the API server refuses access" in str(found)
    assert seconds == 0.0


def test_a_server_that_never_says_that_it_is_ready_is_believed_after_a_while() -> None:
    found, seconds = outcome(1000.0, lambda _: FORBIDDEN)
    assert "the API server refuses access" in str(found)
    assert seconds == pytest.approx(15.0)


def test_refused_credentials_are_reported_at_once() -> None:
    found, seconds = outcome(1000.0, lambda _: failure(401, "Unauthorized"))
    assert "does not accept the credentials" in str(found)
    assert seconds == 0.0


def test_only_the_lease_refused_for_good_is_no_leader_election(caplog: pytest.LogCaptureFixture) -> None:
    def rule(path: str) -> ServerAnswer | None:
        return FORBIDDEN if "/leases/" in path else None

    caplog.set_level(logging.WARNING)
    assert outcome(1000.0, rule) == (False, 0.0)
    assert "no leader election: the API server refuses the lease yunikorn/yunikorn-scheduler" in caplog.text
    found, _ = outcome(1000.0, rule, election=True)
    assert "the API server refuses access" in str(found)
