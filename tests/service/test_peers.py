"""Identity of clients: peers are named in the log, and certificates may be bound to resource managers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme

from tests.service.harness import HERE, Ended, ServiceHarness, Stream, serve
from tests.service.kit import work
from tests.service.test_callbacks import Callbacks
from yunikorn.cli.main import main
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_service.service_settings import ServerSettings, ServerTls
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.generated import callbacks_pb2 as wire
from yunikorn_service.wire.protocol import CALLBACKS, CONNECT, REGISTER, SCHEDULER, UPDATE, path

Code = grpc.StatusCode


class Certificates:
    """An authority, and a server certificate of it."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        server = self.authority.issue_cert("localhost", "127.0.0.1")
        server.cert_chain_pems[0].write_to_path(folder / "server.pem")
        server.private_key_pem.write_to_path(folder / "server.key")
        self.authority.cert_pem.write_to_path(folder / "ca.pem")
        self.tls = ServerTls(folder / "server.pem", folder / "server.key", folder / "ca.pem")

    def channel(self, harness: ServiceHarness, common_name: str, *names: str) -> Any:
        """Return a channel with a client certificate for these names."""
        client = self.authority.issue_cert(*names, common_name=common_name)
        credentials = grpc.ssl_channel_credentials(
            self.authority.cert_pem.bytes(), client.private_key_pem.bytes(), client.cert_chain_pems[0].bytes()
        )
        options = [("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.aio.secure_channel(harness.address, credentials, options)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


async def register(channel: Any, rm_id: str) -> None:
    """Register; raises `Ended`."""
    call = channel.unary_unary(path(SCHEDULER, REGISTER))
    try:
        await call(v0_11.REGISTER_REQUEST.encode(RegisterResourceManagerRequest(rm_id)))
    except grpc.aio.AioRpcError as error:
        raise Ended(error.code(), error.details() or "") from error


def update(channel: Any) -> Stream:
    """Open an update stream."""
    return Stream(channel.stream_stream(path(SCHEDULER, UPDATE))())


@pytest.mark.parametrize("identity", ["cn", "san"])
def test_a_certificate_binds_its_client_to_its_rm_id(
    registry: Registry, certificates: Certificates, identity: str
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        mine = certificates.channel(harness, "mine", "mine")
        # The other field of the certificate is ignored.
        names = ("other", "mine") if identity == "cn" else ("mine", "other")
        other = certificates.channel(harness, *names)
        await register(mine, "mine")
        stream = update(mine)
        await stream.send(work(1, rm_id="mine"))
        await stream.allocations(1)
        with pytest.raises(Ended, match=r"PERMISSION_DENIED: rmID: 'mine' is not in the .* \('other'\)"):
            await register(other, "mine")
        stolen = update(other)
        await stolen.send(work(1, rm_id="mine"))
        assert (await stolen.end()).code is Code.PERMISSION_DENIED
        callbacks = Callbacks(other.stream_stream(path(CALLBACKS, CONNECT))())
        await callbacks.send(open=wire.Open(rm_id="mine"))
        assert (await callbacks.end()).code is Code.PERMISSION_DENIED
        with pytest.raises(Ended, match="INVALID_ARGUMENT"):
            await register(other, "")
        await register(other, "other")
        assert await harness.state("mine") == "Running"
        await stream.send(work(1, rm_id="mine", app="more"))
        await stream.allocations(1)
        for channel in (mine, other):
            await channel.close()

    serve(registry, scenario, ServerSettings(HERE, certificates.tls, identity=identity))


def test_registrations_and_takeovers_name_the_client(
    registry: Registry, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(harness: ServiceHarness) -> None:
        one, two = (certificates.channel(harness, name, name) for name in ("one", "two"))
        await register(one, "rm")
        first = update(one)
        await first.send(work(1))
        await first.allocations(1)
        for channel in (one, two):
            callbacks = Callbacks(channel.stream_stream(path(CALLBACKS, CONNECT))())
            await callbacks.send(open=wire.Open(rm_id="rm"))
            await callbacks.read()
        second = update(two)
        await second.send(work(1))
        assert (await first.end()).code is Code.ABORTED
        await register(two, "rm")
        for channel in (one, two):
            await channel.close()

    serve(registry, scenario, ServerSettings(HERE, certificates.tls))
    lines = caplog.messages
    start = "resource manager rm registered from ipv4:127.0.0.1:"
    assert "CN=one" in next(line for line in lines if line.startswith(start))
    taken = [line for line in lines if "replaces that from" in line or "replacing" in line]
    assert len(taken) == 3
    assert all(line.index("CN=two") < line.index("CN=one") for line in taken)


def test_a_client_without_a_certificate_is_named_by_its_address(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        with pytest.raises(Ended):
            await harness.register("")

    serve(registry, scenario)
    assert "resource manager rm registered from ipv4:127.0.0.1:" in caplog.text
    assert "(no certificate)" in caplog.text
    assert "the registration of a resource manager by ipv4:127.0.0.1:" in caplog.text


def test_an_identity_needs_certificates_of_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--demo", "--rm-identity", "cn"]) == 2
    assert "--rm-identity needs --tls-client-ca" in capsys.readouterr().err
