"""Certificates of the webhooks: two authorities, and a certificate for the server.

The API server trusts both authorities, whose ends are half a year apart. When one is near its end, it is
replaced, and the certificate of the server comes from the other, which the API server knows already.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Mapping

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR = datetime.timedelta(days=365)
HALF_YEAR = datetime.timedelta(days=182)
RENEWAL = datetime.timedelta(days=90)
"""Time before the end of an authority from which it is replaced."""
SERVER_RENEWAL = datetime.timedelta(days=30)
"""Time before the end of the server's certificate, or of its authority, from which it is replaced."""
CLOCK_SKEW = datetime.timedelta(minutes=5)
"""Time by which the clocks of two machines may differ."""
COUNT = 2
_CURVE = ec.SECP256R1()


@attrs.frozen
class Authority:
    """Certificate and key of a certificate authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """Certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Key in PEM."""
        return _key_pem(self.key)

    @property
    def end(self) -> datetime.datetime:
        """Time from which the certificate is invalid."""
        return self.certificate.not_valid_after_utc


@attrs.frozen
class ServerCertificate:
    """Certificate of the server with its key, both in PEM."""

    certificate: bytes
    key: bytes
    renewal: datetime.datetime
    """Time from which another one is needed."""
    end: datetime.datetime
    """Time from which nothing trusts it any more."""


def names(index: int) -> tuple[str, str]:
    """Return the names of the certificate and the key of an authority (1 or 2) in the secret."""
    return f"cacert{index}.pem", f"cakey{index}.pem"


def read_authorities(data: Mapping[str, bytes], now: datetime.datetime) -> list[Authority | None]:
    """Return the authorities in a secret; None for one that is missing, damaged or near its end."""
    return [_read(data, index, now) for index in range(1, COUNT + 1)]


def _read(data: Mapping[str, bytes], index: int, now: datetime.datetime) -> Authority | None:
    certificate_name, key_name = names(index)
    try:
        certificate = x509.load_pem_x509_certificate(data[certificate_name])
        key = serialization.load_pem_private_key(data[key_name], None)
    except (KeyError, ValueError, TypeError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    if now + RENEWAL >= certificate.not_valid_after_utc or now < certificate.not_valid_before_utc:
        return None
    return Authority(certificate, key)


def complete(found: list[Authority | None], now: datetime.datetime) -> list[Authority]:
    """Return authorities with new ones in place of those that are None; their ends are apart."""
    authorities: list[Authority] = [one for one in found if one is not None]
    made: list[Authority] = []
    while len(authorities) < len(found):
        made.append(new_authority(now, _next_end(now, authorities)))
        authorities.append(made[-1])
    new = iter(made)
    return [next(new) if one is None else one for one in found]


def _next_end(now: datetime.datetime, others: list[Authority]) -> datetime.datetime:
    """Return the end of a new authority: in a year, or in half a year where another one ends then."""
    late = now + YEAR
    near = HALF_YEAR / 2
    return now + HALF_YEAR if any(abs(one.end - late) < near for one in others) else late


def new_authority(now: datetime.datetime, end: datetime.datetime) -> Authority:
    """Make an authority."""
    key = ec.generate_private_key(_CURVE)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "yunikorn-admission-controller-ca")])
    public = key.public_key()
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def server_certificate(
    authorities: list[Authority], hosts: list[str], now: datetime.datetime
) -> ServerCertificate:
    """Make a certificate for the server at `hosts`.

    It comes from the authority that has existed longest: the API server may not know the other one yet.
    """
    authority = min(authorities, key=lambda one: one.certificate.not_valid_before_utc)
    key = ec.generate_private_key(_CURVE)
    public = key.public_key()
    end = min(now + YEAR, authority.end)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])]))
        .issuer_name(authority.certificate.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_issuer(authority), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    first_end = min(one.end for one in authorities)
    return ServerCertificate(pem, _key_pem(key), min(end - SERVER_RENEWAL, first_end - RENEWAL), end)


def _issuer(authority: Authority) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
