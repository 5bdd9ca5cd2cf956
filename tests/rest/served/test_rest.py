"""REST of `yunikorn serve`: addresses, TLS, signals, and a core at work."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.service.kit import PATIENCE
from tests.service.process import Service, Start
from tests.service.test_server import Certificates
from yunikorn.cli.main import main
from yunikorn.clock import SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.rest_settings import RestSettings
from yunikorn_rest.served_rest import Rest
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.runtime.threaded import ThreadedScheduler

FREE = "127.0.0.1:0"
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Create certificates for each test."""
    return Certificates(tmp_path)


def address_of(service: Service) -> str:
    """Return the address of the REST interface, without the path."""
    assert service.process.stdout is not None
    line = service.process.stdout.readline()
    assert line.startswith("REST: "), line
    return line.removeprefix("REST: ").strip().removesuffix("/ws/v1")


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of an address."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return host, int(port)


def get(url: str, context: ssl.SSLContext | None = None) -> Any:
    """Return the JSON body of an answer."""
    with urllib.request.urlopen(url, timeout=PATIENCE, context=context) as answer:
        return json.load(answer)


@UNIX
def test_service_answers_and_ends_on_sigterm(start: Start) -> None:
    service = start("--demo", "--grpc", "off", "--rest", FREE)
    address = address_of(service)
    service.wait_for("runs on node-1")
    (partition,) = get(f"{address}/ws/v1/partitions")
    assert (partition["clusterId"], partition["totalNodes"]) == ("demo", 4)
    (app, *_) = get(f"{address}/ws/v1/partition/default/applications/active")
    assert app["allocations"]
    assert get(f"{address}/ws/v1/scheduler/healthcheck")["Healthy"] is True
    service.signal(signal.SIGTERM)
    assert service.end() == 0


@UNIX
def test_open_connections_do_not_delay_the_end(start: Start) -> None:
    service = start("--demo", "--grpc", "off", "--rest", FREE)
    with socket.create_connection(host_and_port(address_of(service))) as idle:
        service.signal(signal.SIGTERM)
        assert service.end() == 0
        assert idle.recv(1) == b""


@UNIX
def test_rest_over_tls(start: Start, certificates: Certificates, config: Path) -> None:
    pair = ("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key))
    service = start("--config", str(config), "--grpc", FREE, "--rest", FREE, *pair)
    address = address_of(service)
    assert address.startswith("https://")
    context = ssl.create_default_context(cadata=certificates.roots.decode())
    context.check_hostname = False
    assert get(f"{address}/ws/v1/partitions", context) == []
    before = ssl.get_server_certificate(host_and_port(address), timeout=PATIENCE)
    leaf = certificates.authority.issue_cert("localhost", "127.0.0.1")
    leaf.cert_chain_pems[0].write_to_path(certificates.certificate)
    leaf.private_key_pem.write_to_path(certificates.key)
    service.signal(signal.SIGHUP)
    service.wait_for("SIGHUP: the certificates were reloaded for new connections")
    service.wait_for("SIGHUP: the certificates were reloaded for new connections")
    assert ssl.get_server_certificate(host_and_port(address), timeout=PATIENCE) != before
    service.signal(signal.SIGTERM)
    assert service.end() == 0


@UNIX
def test_clients_without_a_required_certificate_are_refused(
    start: Start, certificates: Certificates, config: Path
) -> None:
    service = start(
        *("--config", str(config), "--grpc", FREE, "--rest", FREE),
        *("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key)),
        *("--tls-client-ca", str(certificates.client_authority)),
    )
    address = address_of(service)
    context = ssl.create_default_context(cadata=certificates.roots.decode())
    context.check_hostname = False
    with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
        get(f"{address}/ws/v1/partitions", context)


@UNIX
def test_a_used_address_is_an_error(start: Start, config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        service = start("--config", str(config), "--grpc", FREE, "--rest", address)
        assert service.end() == 2
        log = "".join(service.log)
        assert f"cannot listen at {address}: the address is in use. Choose another with --rest" in log


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--rest", "nowhere"), "--rest nowhere: give HOST:PORT, such as 127.0.0.1:9080, or off\n"),
        (("--rest", "::1:9080"), "--rest ::1:9080: give HOST:PORT, such as [::1]:9080, or off\n"),
        (("--rest", "unix:/tmp/x"), "--rest unix:/tmp/x: REST is served at HOST:PORT only, or `off`"),
        (("--rest", "0.0.0.0:0"), "can be reached by other machines, without encryption"),
        (("--rest", ":0"), "can be reached by other machines, without encryption"),
        (("--rest", "no.such.host.invalid:0", "--insecure-bind"), "cannot listen at no.such.host.invalid:0"),
    ],
)
def test_addresses_that_cannot_be_used(
    options: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--demo", "--grpc", "off", *options]) == 2
    assert text in capsys.readouterr().err


def test_other_machines_need_a_certificate_unless_reading_is_open(
    certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = ("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key))
    assert main(["serve", "--demo", "--grpc", "off", "--rest", "0.0.0.0:0", *pair]) == 2
    assert (
        "give --tls-client-ca or --rest-credentials, or --rest-open if this is intended"
        in capsys.readouterr().err
    )


def test_a_used_default_address_leaves_the_service_without_rest(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        async def start() -> str:
            core = AsyncScheduler(ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()))
            settings = RestSettings(address, is_default=True)
            store = EventStore("instance")
            rest = Rest(core, settings, registry, None, store, SystemClock())
            bound = await rest.start()
            await rest.stop()
            assert not store.wanted
            return bound

        assert asyncio.run(start()) == ""
    assert f"cannot listen at {address}" in caplog.text
    assert "The service runs without REST" in caplog.text


WITHOUT_MODULES = """
import sys
from yunikorn.cli.main import main
from yunikorn_rest import rest_door

sys.modules.update(dict.fromkeys(sys.argv[2].split()))
assert rest_door.rest_server(None) is None
assert rest_door.rest_server("off") is None
sys.exit(main(["serve", "--demo", "--grpc", "off", "--rest", sys.argv[1]]))
"""


@pytest.mark.parametrize("missing", ["starlette.requests starlette.datastructures", "httptools", "jinja2"])
def test_without_a_package_of_the_extra_rest_is_off_unless_requested(
    missing: str, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_python("-c", WITHOUT_MODULES, FREE, missing)
    assert done.returncode == 2, done.stderr
    assert "is not installed, but is needed for --rest: pip install 'yunikorn[web]'" in done.stderr
