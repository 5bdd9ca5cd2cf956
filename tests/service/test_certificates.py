"""Certificates that are replaced while the service runs, and failing handshakes."""

from __future__ import annotations

import ipaddress
import signal
import ssl
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.service.harness import HERE, ServiceHarness, serve
from tests.service.process import Service, Start
from tests.service.test_server import Certificates, register_over
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_service.certificates import Handshakes, ServerCertificates
from yunikorn_service.service_settings import ServerSettings, ServerTls

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Create certificates for each test."""
    return Certificates(tmp_path)


def serial_of(address: str) -> int:
    """Return the serial number of the server's certificate."""
    host, port = address.split(":")
    pem = ssl.get_server_certificate((host, int(port)), timeout=30)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def renew(certificates: Certificates) -> None:
    """Replace the certificate by another of the same authority, with another key."""
    leaf = certificates.authority.issue_cert("localhost", "127.0.0.1")
    leaf.cert_chain_pems[0].write_to_path(certificates.certificate)
    leaf.private_key_pem.write_to_path(certificates.key)


def tls_of(certificates: Certificates) -> ServerTls:
    """Return TLS settings without an authority for clients."""
    return ServerTls(certificates.certificate, certificates.key)


def test_certificates_are_replaced_while_streams_continue(
    registry: Registry, certificates: Certificates
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        old = certificates.channel(harness.address)
        watch = old.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        await watch.read()
        renew(certificates)
        assert harness.server.reload_certificates()
        await register_over(certificates.channel(harness.address))
        assert not harness.server.reload_certificates(), "nothing has changed since"
        await harness.server.report(green=False)
        await watch.read()
        await old.close()

    serve(registry, scenario, ServerSettings(HERE, tls_of(certificates)))


def test_changed_client_authority_applies_to_new_connections(
    registry: Registry, certificates: Certificates
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        known = certificates.clients.issue_cert("shim.example")
        await register_over(certificates.channel(harness.address, known))
        others = trustme.CA()
        others.cert_pem.write_to_path(certificates.client_authority)
        assert harness.server.reload_certificates()
        await register_over(certificates.channel(harness.address, others.issue_cert("shim.example")))
        with pytest.raises(grpc.aio.AioRpcError):
            await register_over(certificates.channel(harness.address, known))

    tls = ServerTls(certificates.certificate, certificates.key, certificates.client_authority)
    serve(registry, scenario, ServerSettings(HERE, tls))


@pytest.mark.parametrize("failure", ["gone", "no key", "another's key", "no certificate"])
def test_invalid_certificates_change_nothing(
    registry: Registry, certificates: Certificates, failure: str
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        if failure == "gone":
            certificates.key.unlink()
        elif failure == "no key":
            certificates.key.write_text("-----BEGIN PRIVATE KEY-----\nxx\n-----END PRIVATE KEY-----\n")
        elif failure == "another's key":
            leaf = certificates.authority.issue_cert("localhost")
            leaf.private_key_pem.write_to_path(certificates.key)
        else:
            certificates.certificate.write_text(
                "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"
            )
        with pytest.raises(UsageError, match="--tls-"):
            harness.server.reload_certificates()
        await register_over(certificates.channel(harness.address))

    serve(registry, scenario, ServerSettings(HERE, tls_of(certificates)))


def test_mismatched_key_is_rejected_at_the_start(certificates: Certificates) -> None:
    leaf = certificates.authority.issue_cert("localhost")
    leaf.private_key_pem.write_to_path(certificates.key)
    with pytest.raises(UsageError, match=r"--tls-cert .*cert\.pem and --tls-key .*key\.pem cannot be used"):
        ServerCertificates(tls_of(certificates))


def test_invalid_authority_is_rejected(certificates: Certificates) -> None:
    certificates.client_authority.write_text("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n")
    with pytest.raises(UsageError, match=r"--tls-client-ca .*clients\.pem cannot be used"):
        ServerCertificates(
            ServerTls(certificates.certificate, certificates.key, certificates.client_authority)
        )


def give_key(certificates: Certificates, key: Any) -> None:
    """Write a certificate for this key over the old one."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2120, 1, 1))
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    signed = builder.add_extension(names, critical=False).sign(key, digest)
    certificates.roots = signed.public_bytes(Encoding.PEM)
    certificates.certificate.write_bytes(certificates.roots)
    certificates.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


UNSERVED: dict[str, Callable[[], Any]] = {
    "EC secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
    "EC P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EC on another curve": lambda: ec.generate_private_key(ec.BrainpoolP256R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}
SERVED: dict[str, Callable[[], Any]] = {
    "EC P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EC P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


@pytest.mark.parametrize("kind", UNSERVED)
def test_keys_unsupported_by_grpc_are_rejected(
    registry: Registry, certificates: Certificates, kind: str
) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        roots = certificates.roots
        give_key(certificates, UNSERVED[kind]())
        with pytest.raises(UsageError, match=rf"gRPC does not support keys of this kind \({kind}\)"):
            harness.server.reload_certificates()
        certificates.roots = roots
        await register_over(certificates.channel(harness.address))

    serve(registry, scenario, ServerSettings(HERE, tls_of(certificates)))
    give_key(certificates, UNSERVED[kind]())
    with pytest.raises(UsageError, match=kind):
        ServerCertificates(tls_of(certificates))


@pytest.mark.parametrize("kind", SERVED)
def test_keys_supported_by_grpc_are_used(registry: Registry, certificates: Certificates, kind: str) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        give_key(certificates, SERVED[kind]())
        assert harness.server.reload_certificates()
        await register_over(certificates.channel(harness.address))

    serve(registry, scenario, ServerSettings(HERE, tls_of(certificates)))


# -- in a process -------------------------------------------------------------------------------------------


def over_tls(start: Start, certificates: Certificates, config: Path, *more: str) -> Service:
    """Start a service with TLS."""
    return start(
        *("--config", str(config), "--grpc", "127.0.0.1:0"),
        *("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key), *more),
    )


def address_of(service: Service) -> str:
    """Return the address of the service."""
    return service.welcome.partition(" at ")[2].partition(" over")[0]


@UNIX
def test_sighup_reads_the_certificates_again(start: Start, certificates: Certificates, config: Path) -> None:
    service = over_tls(start, certificates, config)
    before = serial_of(address_of(service))
    renew(certificates)
    service.signal(signal.SIGHUP)
    service.wait_for("SIGHUP: the certificates were reloaded for new connections")
    after = serial_of(address_of(service))
    assert after != before
    certificates.key.write_text("nothing")
    service.signal(signal.SIGHUP)
    service.wait_for("SIGHUP: the old certificates stay in use: --tls-key")
    assert serial_of(address_of(service)) == after
    service.signal(signal.SIGTERM)
    assert service.end() == 0


@UNIX
def test_failed_handshakes_are_logged(start: Start, certificates: Certificates, config: Path) -> None:
    service = over_tls(start, certificates, config, "--tls-client-ca", str(certificates.client_authority))
    stranger = certificates.authority.issue_cert("shim.example")
    call(certificates, address_of(service), stranger)
    service.wait_for("WARNING  grpc: a TLS handshake failed: CERTIFICATE_VERIFY_FAILED")
    call(certificates, address_of(service), None)
    service.wait_for("WARNING  grpc: a TLS handshake failed: PEER_DID_NOT_RETURN_A_CERTIFICATE")
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    assert "ssl_transport_security" not in "".join(service.log)


def call(certificates: Certificates, address: str, client: trustme.LeafCert | None) -> None:
    """Make a call that the server refuses."""
    pair = (client.private_key_pem.bytes(), client.cert_chain_pems[0].bytes()) if client else ()
    channel: Any = grpc.secure_channel(address, grpc.ssl_channel_credentials(certificates.roots, *pair))
    with pytest.raises(grpc.RpcError):
        channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=30)
    channel.close()


@UNIX
def test_other_standard_error_output_is_passed_on(
    start: Start, certificates: Certificates, config: Path, tmp_path: Path
) -> None:
    config.write_text("partitions: [{name: default, queues: 7}]")
    service = over_tls(start, certificates, config)
    assert service.end() == 2
    assert "partitions[0].queues" in "".join(service.log)


@UNIX
def test_a_service_without_standard_error_serves(certificates: Certificates, config: Path) -> None:
    pair = ("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key))
    service = Service("--config", str(config), "--grpc", "127.0.0.1:0", *pair, without_stderr=True)
    try:
        assert " over TLS" in service.welcome
        assert serial_of(address_of(service))
        service.signal(signal.SIGTERM)
        assert service.end() == 0
    finally:
        service.close()


# -- log lines of gRPC -------------------------------------------------------------------------------------

FAILED = (
    "I1122 07:13:34.815756   20980 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL:"
    " error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: unable to get local issuer"
)


def test_only_grpc_lines_are_captured(caplog: pytest.LogCaptureFixture) -> None:
    handshakes = Handshakes()
    assert handshakes.take(FAILED)
    assert handshakes.take("W1122 07:13:34.628785   20974 log.cc:102] Log level INFO is not suitable")
    assert not handshakes.take("Traceback (most recent call last):")
    assert not handshakes.take("I am no line of gRPC")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["a TLS handshake failed: CERTIFICATE_VERIFY_FAILED: unable to get local issuer"]


def test_many_failures_are_counted_and_logged_briefly(caplog: pytest.LogCaptureFixture) -> None:
    handshakes = Handshakes()
    for _ in range(5000):
        handshakes.take(FAILED)
    reported = [record.getMessage() for record in caplog.records]
    assert len(reported) < 30
    assert reported[-1].endswith("(4096 times so far)")
    for number in range(5000):
        handshakes.take(f"{FAILED} {number}")
    assert len(caplog.records) < 2000
