"""The client for threaded programs, with a service in a process of its own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.service.client.service_process import Service
from tests.service.kit import PATIENCE
from yunikorn.errors import UsageError
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.client import Client, ConnectionLost, Refused

RM = RegisterResourceManagerRequest("rm")
WORK = UpdateRequest(
    "",
    new_schedulable_nodes=[NewNodeInfo("n1", schedulable_resource=Resource(vcore=2))],
    new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("ann"))],
    asks=[AllocationAsk("one", "app", resource_ask=Resource(vcore=1))],
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`yunikorn serve`, running."""
    with Service(tmp_path_factory.mktemp("service")) as served:
        yield served


class Listener:
    """Records allocations, and sends another ask from within the callback."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.placed: list[str] = []
        self.threads: set[int] = set()
        self.trouble: list[str] = []
        self.both = threading.Event()

    def report(self) -> list[UpdateRequest]:
        self.threads.add(threading.get_ident())
        return [WORK]

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.threads.add(threading.get_ident())
        for placed in response.new_allocations:
            self.placed.append(placed.allocation_key)
            if placed.allocation_key == "one":
                self.ask_for_another()
        if len(self.placed) == 2:
            self.both.set()

    def ask_for_another(self) -> None:
        assert self.client is not None
        try:
            self.client.wait()
        except UsageError as error:
            self.trouble.append(str(error))
        self.client.update(
            UpdateRequest("", asks=[AllocationAsk("two", "app", resource_ask=Resource(vcore=1))])
        )


def test_callbacks_run_in_one_thread_and_may_send_updates(service: Service) -> None:
    listener = Listener()
    listener.client = client = Client(service.address, RM, listener)
    with client:
        assert listener.both.wait(PATIENCE)
        assert listener.placed == ["one", "two"]
        assert listener.threads == {client.call(threading.get_ident)}
        assert threading.get_ident() not in listener.threads
        assert listener.trouble == ["a callback must not wait for the client, which waits for the callback"]
        assert not client.wait(0)
    with pytest.raises(UsageError, match="this client is closed"):
        client.update(UpdateRequest("rm"))
    client.close()


def test_responses_can_be_iterated(service: Service) -> None:
    with Client(service.address, RM) as client:
        assert client.connected
        assert client.update(WORK)
        keys: list[str] = []
        for response in client.responses():
            keys += [one.allocation_key for one in response.new_allocations]
            if keys:
                break
        assert keys == ["one"]


def test_disconnect_ends_blocked_calls(service: Service) -> None:
    client = Client(service.address, RM)
    client.start()
    waiting = threading.Thread(target=client.wait)
    waiting.start()
    client.disconnect()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_failed_starts_raise_clear_errors(service: Service, tmp_path: Path) -> None:
    nobody = Client(f"unix:{tmp_path}/nobody", RM)
    with pytest.raises(ConnectionLost, match=r"no session after 0.2 s: registering: .*nobody"):
        nobody.start(timeout=0.2)
    with pytest.raises(UsageError, match="started already"):
        nobody.start()
    with pytest.raises(Refused, match="'gpus'"):
        Client(service.address, RegisterResourceManagerRequest("rm", policy_group="gpus")).start()
    with pytest.raises(UsageError, match="was not started"):
        Client(service.address, RM).update(UpdateRequest("rm"))


@pytest.mark.parametrize("leave", [Client.close, Client.disconnect])
def test_client_that_was_never_started_can_be_closed(leave: Callable[[Client], None]) -> None:
    leave(Client("127.0.0.1:1", RM))


def test_missing_grpc_is_reported_with_what_to_install(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python("-c", "import sys; sys.modules['grpc'] = None\nimport yunikorn_service.client")
    assert "grpc is not installed, which the client needs: pip install 'yunikorn[grpc]'" in done.stderr
