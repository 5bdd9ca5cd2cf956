"""The server beside the interface: health, reflection, TLS, addresses, and shutdown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import grpc.aio
import pytest
import trustme
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tests.service.harness import HERE, Ended, ServiceHarness, serve
from tests.service.kit import CONFIG, work
from yunikorn.clock import Clock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import Answer, Command, Update
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.address import HostAddress
from yunikorn_service.call_endings import CallRefusal
from yunikorn_service.certificates import ServerCertificates
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.service_settings import Patience, ServerSettings, ServerTls
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.protocol import CALLBACKS, REGISTER, SCHEDULER, path

Code = grpc.StatusCode


# -- health -----------------------------------------------------------------------------------------------


async def health_of(harness: ServiceHarness, service: str = "") -> int:
    """Return the status of the health service: SERVING is 1, NOT_SERVING is 2."""
    call = harness.channel.unary_unary("/grpc.health.v1.Health/Check")
    answer = await call(health_pb2.HealthCheckRequest(service=service).SerializeToString())
    return int(health_pb2.HealthCheckResponse.FromString(answer).status)


def test_health_is_reported_for_the_server_and_each_service(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        for service in ("", SCHEDULER, CALLBACKS):
            assert await health_of(harness, service) == health_pb2.HealthCheckResponse.SERVING
        await harness.server.report(green=False)
        for service in ("", SCHEDULER, CALLBACKS):
            assert await health_of(harness, service) == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError):
            await health_of(harness, "no.such.Service")

    serve(registry, scenario)


# -- reflection -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_describes_every_service_completely(registry: Registry, version: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        call = harness.channel.stream_stream(method)()

        async def ask(**question: Any) -> reflection_pb2.ServerReflectionResponse:
            await call.write(reflection_pb2.ServerReflectionRequest(**question).SerializeToString())
            return reflection_pb2.ServerReflectionResponse.FromString(await call.read())

        listed = await ask(list_services="")
        names = [service.name for service in listed.list_services_response.service]
        reflections = {f"grpc.reflection.{version}.ServerReflection" for version in ("v1", "v1alpha")}
        assert set(names) == {SCHEDULER, CALLBACKS, "grpc.health.v1.Health", *reflections}
        for name in names:
            found = (await ask(file_containing_symbol=name)).file_descriptor_response
            files = [FileDescriptorProto.FromString(one) for one in found.file_descriptor_proto]
            there = {file.name for file in files}
            assert all(set(file.dependency) <= there for file in files), name
            assert name in {f"{file.package}.{one.name}" for file in files for one in file.service}
            if name == SCHEDULER:
                [service] = [service for file in files for service in file.service]
                assert [method.name for method in service.method] == [
                    "RegisterResourceManager",
                    "Update",
                    "UpdateAllocation",
                    "UpdateApplication",
                    "UpdateNode",
                ]
        await call.done_writing()

    serve(registry, scenario)


# -- TLS --------------------------------------------------------------------------------------------------


class Certificates:
    """An authority and certificates signed by it, as files."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.roots = self.authority.cert_pem.bytes()
        server = self.authority.issue_cert("localhost", "127.0.0.1")
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"
        server.cert_chain_pems[0].write_to_path(self.certificate)
        server.private_key_pem.write_to_path(self.key)
        self.client_authority = folder / "clients.pem"
        self.clients = trustme.CA()
        self.clients.cert_pem.write_to_path(self.client_authority)

    def channel(self, address: str, client: trustme.LeafCert | None = None) -> Any:
        """Return a channel over TLS."""
        credentials = grpc.ssl_channel_credentials(
            self.roots,
            *((client.private_key_pem.bytes(), client.cert_chain_pems[0].bytes()) if client else ()),
        )
        return grpc.aio.secure_channel(address, credentials)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Create certificates for each test."""
    return Certificates(tmp_path)


async def register_over(channel: Any) -> None:
    """Register over a channel; raises gRPC's error."""
    request = v0_11.REGISTER_REQUEST.encode(RegisterResourceManagerRequest("rm"))
    await channel.unary_unary(path(SCHEDULER, REGISTER))(request)
    await channel.close()


def test_only_tls_clients_are_accepted_over_tls(registry: Registry, certificates: Certificates) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await register_over(certificates.channel(harness.address))
        with pytest.raises(grpc.aio.AioRpcError):
            await register_over(grpc.aio.insecure_channel(harness.address))

    serve(registry, scenario, ServerSettings(HERE, ServerTls(certificates.certificate, certificates.key)))


def test_only_clients_of_the_authority_are_accepted(registry: Registry, certificates: Certificates) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        known = certificates.clients.issue_cert("shim.example")
        await register_over(certificates.channel(harness.address, known))
        for stranger in (None, certificates.authority.issue_cert("shim.example")):
            with pytest.raises(grpc.aio.AioRpcError):
                await register_over(certificates.channel(harness.address, stranger))

    tls = ServerTls(certificates.certificate, certificates.key, certificates.client_authority)
    serve(registry, scenario, ServerSettings(HERE, tls))


def test_invalid_certificates_are_reported(certificates: Certificates, tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"
    with pytest.raises(UsageError, match=r"--tls-key .*gone\.pem: cannot be read: No such file"):
        ServerCertificates(ServerTls(certificates.certificate, gone))
    with pytest.raises(UsageError, match=r"--tls-key .*cert\.pem: contains no private key in PEM form"):
        ServerCertificates(ServerTls(certificates.certificate, certificates.certificate))
    with pytest.raises(UsageError, match=r"--tls-cert .*key\.pem: contains no certificate in PEM form"):
        ServerCertificates(ServerTls(certificates.key, certificates.key))


# -- addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "local"),
    [
        ("127.0.0.1:3333", "127.0.0.1:3333", True),
        ("127.8.8.8:1", "127.8.8.8:1", True),
        ("localhost:3333", "localhost:3333", True),
        ("[::1]:3333", "[::1]:3333", True),
        ("unix:/run/y.sock", "unix:/run/y.sock", True),
        (":3333", "0.0.0.0:3333", False),
        ("0.0.0.0:3333", "0.0.0.0:3333", False),
        ("[::]:0", "[::]:0", False),
        ("10.1.2.3:3333", "10.1.2.3:3333", False),
        ("yunikorn.example:3333", "yunikorn.example:3333", False),
    ],
)
def test_valid_addresses_and_their_reachability(text: str, target: str, local: bool) -> None:
    address = HostAddress.parse(text)
    assert (address.target, address.is_local) == (target, local)


@pytest.mark.parametrize("text", ["", "3333", "host", "host:", "host:x", "host:70000", "::1:3333", "unix:"])
def test_invalid_addresses_are_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        HostAddress.parse(text)


def test_remote_addresses_need_tls_or_an_explicit_option(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()

    with pytest.raises(UsageError, match="--insecure-bind if this is intended"):
        serve(registry, scenario, ServerSettings("0.0.0.0:0"))
    serve(registry, scenario, ServerSettings("0.0.0.0:0", insecure=True))


def test_address_in_use_is_reported(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        async def never(_: ServiceHarness) -> None:
            raise AssertionError

        def again() -> None:
            serve(registry, never, ServerSettings(harness.address))

        with pytest.raises(UsageError, match=r"cannot listen at .*: the address is in use"):
            await asyncio.to_thread(again)

    serve(registry, scenario)


def test_unix_socket_is_served(registry: Registry, tmp_path: Path) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        assert harness.address == f"unix:{tmp_path}/y.sock"
        await harness.register()

    serve(registry, scenario, ServerSettings(f"unix:{tmp_path}/y.sock"))


# -- the end ----------------------------------------------------------------------------------------------


def test_stop_sends_outstanding_responses_and_ends_streams(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(3))
        await stream.allocations(3)
        await stream.send(work(3, app="more"))
        await harness.core.call(lambda core: None)
        stopping = asyncio.create_task(harness.server.stop())
        reported: list[UpdateResponse] = []
        with pytest.raises(Ended, match="UNAVAILABLE: the scheduler is stopping"):
            await stream.collect(reported)
        # The session is not shut down, because the RM will come back.
        assert not [response for response in reported if response.released_allocations]
        states = {one.state for response in reported for one in response.updated_applications}
        assert states <= {"Accepted", "Starting", "Running"}
        await stopping

    serve(registry, scenario)


@pytest.mark.slow  # waits for a clock
def test_health_watchers_do_not_delay_the_stop(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        watch = harness.channel.unary_stream("/grpc.health.v1.Health/Watch")(
            health_pb2.HealthCheckRequest().SerializeToString()
        )
        statuses = [health_pb2.HealthCheckResponse.FromString(await watch.read()).status]
        stopping = asyncio.create_task(harness.server.stop())
        statuses.append(health_pb2.HealthCheckResponse.FromString(await watch.read()).status)
        assert statuses == [1, 2]
        await stopping

    serve(registry, scenario, ServerSettings(HERE, patience=Patience(stop=3600.0)))


@pytest.mark.parametrize("text", ["short", "x" * 50_000, "ä" * 50_000, "a problem\n" * 5_000])
def test_reason_is_truncated_to_the_header_size(text: str) -> None:
    details = CallRefusal(Code.INVALID_ARGUMENT, text).details
    assert len(quote(details)) <= 6_000
    assert details.startswith(text[:900])
    assert ("characters in total" in details) == (details != text)


def test_a_long_reason_arrives(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        queues = ",".join(f"{{name: 'ä {i}', x: 1}}" for i in range(500))
        with pytest.raises(Ended, match=r"(?s)queues\[0\].*characters in total"):
            await harness.register(config=f"partitions: [{{name: default, queues: [{queues}]}}]")

    serve(registry, scenario, configurations=Configurations({"": CONFIG}, allow_rm_config=True))


def test_failed_core_ends_every_stream(registry: Registry) -> None:
    def make(clock: Clock) -> Scheduler:
        class Buggy(Scheduler):
            def apply(self, command: Command[Answer]) -> Answer:
                if isinstance(command, Update) and command.request.remove_applications:
                    raise ArithmeticError("the accounting is wrong")
                return super().apply(command)

        return Buggy(registry, clock, configurations=Configurations({"": CONFIG}))

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register()
        stream = harness.stream()
        await stream.send(work(1))
        await stream.allocations(1)
        request = work(0)
        request.remove_applications = [None]  # type: ignore[list-item]
        with pytest.raises(ArithmeticError):
            await harness.core.carry_out(Update(request))
        await stream.send(UpdateRequest("rm"))
        ended = await stream.end()
        assert ended.code is Code.UNAVAILABLE
        assert "the core has failed: ArithmeticError: the accounting is wrong" in ended.text
        with pytest.raises(Ended, match="UNAVAILABLE: the core has failed"):
            await harness.register()

    serve(registry, scenario, make=make)


# -- preparation --------------------------------------------------------------------------------------------


def test_registrations_wait_for_the_preparation_of_the_core(registry: Registry) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        states: list[str] = []

        async def prepare() -> None:
            await asyncio.sleep(0)
            states.append(await harness.state("one") + await harness.state("two"))

        harness.core.preparation = prepare
        await asyncio.gather(harness.register("one"), harness.register("two"))
        assert states == ["StoppedStopped"]
        assert [await harness.state("one"), await harness.state("two")] == ["Running", "Running"]

    serve(registry, scenario)
