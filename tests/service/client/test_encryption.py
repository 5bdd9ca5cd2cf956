"""TLS in both directions, with certificates of an authority made for the test."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest

from tests.service.client.shim import Shim
from tests.service.harness import HERE, ServiceHarness, serve
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_service.client import AsyncClient, ClientOptions, ClientTls, ConnectionLost
from yunikorn_service.client.blocking import Client
from yunikorn_service.service_settings import ServerSettings, ServerTls

RM = RegisterResourceManagerRequest("rm")
EXTENSIONS = "subjectAltName=DNS:scheduler.test,IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, and certificates of a scheduler and of a client."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, to make certificates")
    folder = tmp_path_factory.mktemp("certificates")

    def run(*arguments: str) -> None:
        done = subprocess.run([openssl, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2")
    (folder / "extensions").write_text(EXTENSIONS, "utf-8")
    for name in ("scheduler", "client"):
        run("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        run("x509", "-req", "-in", f"{name}.csr", *signed, "-extfile", "extensions", "-out", f"{name}.pem")
    return folder


def test_mutual_tls_authenticates_both_sides(registry: Registry, certificates: Path) -> None:
    served = ServerTls(
        certificates / "scheduler.pem", certificates / "scheduler.key", certificates / "ca.pem"
    )
    known = ClientTls(certificates / "ca.pem", certificates / "client.pem", certificates / "client.key")

    async def scenario(harness: ServiceHarness) -> None:
        shim = Shim()
        async with AsyncClient(harness.address, RM, shim, options=ClientOptions(tls=known)):
            await shim.until(lambda: len(shim.running) == 3)
        named = attrs.evolve(known, name="scheduler.test")
        async with AsyncClient(harness.address, RM, Shim(), options=ClientOptions(tls=named)) as client:
            assert client.connected

    serve(registry, scenario, ServerSettings(HERE, tls=served))


@pytest.mark.slow  # waits for a clock
def test_clients_without_a_trusted_certificate_get_no_session(registry: Registry, certificates: Path) -> None:
    served = ServerTls(
        certificates / "scheduler.pem", certificates / "scheduler.key", certificates / "ca.pem"
    )

    async def scenario(harness: ServiceHarness) -> None:
        for options in (ClientOptions(tls=ClientTls(certificates / "ca.pem")), ClientOptions()):
            stranger = Client(harness.address, RM, options=options)
            with pytest.raises(ConnectionLost, match="no session after"):
                await asyncio.to_thread(stranger.start, 0.5)

    serve(registry, scenario, ServerSettings(HERE, tls=served))


def test_invalid_certificate_files_are_reported(tmp_path: Path) -> None:
    def refused(tls: ClientTls, reason: str) -> None:
        with pytest.raises(UsageError, match=reason):
            Client("127.0.0.1:1", RM, options=ClientOptions(tls=tls)).start(5)

    (tmp_path / "text").write_text("hello", "utf-8")
    refused(ClientTls(tmp_path / "none"), r"Tls\.authority: .*none cannot be read: No such file")
    refused(ClientTls(tmp_path / "text"), r"Tls\.authority: .*text is not in PEM form")
    refused(ClientTls(key=tmp_path / "text"), "certificate and key belong together")
