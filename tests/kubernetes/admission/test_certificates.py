"""Certificates of the webhooks over the years."""

from __future__ import annotations

import contextlib
import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from yunikorn_kubernetes.admission.webhook_certificates import (
    RENEWAL,
    Authority,
    ServerCertificate,
    complete,
    names,
    read_authorities,
    server_certificate,
)

START = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


def stored(authorities: list[Authority]) -> dict[str, bytes]:
    """Return the data of the secret with these authorities."""
    data = {}
    for number, authority in enumerate(authorities, 1):
        certificate, key = names(number)
        data[certificate], data[key] = authority.pem, authority.key_pem
    return data


def issuer(server: ServerCertificate, authorities: list[Authority]) -> Authority:
    """Return the authority that signed a certificate."""
    certificate = x509.load_pem_x509_certificate(server.certificate)
    found = []
    for one in authorities:
        with contextlib.suppress(InvalidSignature):
            certificate.verify_directly_issued_by(one.certificate)
            found.append(one)
    return found[0]


def test_authorities_end_half_a_year_apart() -> None:
    first, second = complete([None, None], START)
    assert 180 < abs((first.end - second.end).days) < 190


def test_authorities_are_kept_until_they_are_near_their_end() -> None:
    made = complete([None, None], START)
    found = read_authorities(stored(made), START + 30 * DAY)
    assert [one.pem if one else None for one in found] == [one.pem for one in made]


def test_over_five_years_the_server_always_has_an_authority_that_was_known_before() -> None:
    authorities = complete([None, None], START)
    server = server_certificate(authorities, ["webhook.yunikorn.svc"], START)
    known = {one.pem for one in authorities}
    replaced = 0
    for day in range(5 * 365):
        now = START + day * DAY
        if now < server.renewal:
            continue
        found = read_authorities(stored(authorities), now)
        assert found.count(None) <= 1, "both authorities end at the same time"
        authorities = complete(found, now)
        server = server_certificate(authorities, ["webhook.yunikorn.svc"], now)
        pems = {one.pem for one in authorities}
        assert issuer(server, authorities).pem in known, "the API server does not know this authority yet"
        replaced += len(pems - known)
        known = pems
        assert server.renewal > now
    assert 5 <= replaced <= 15


def test_damaged_authorities_are_replaced() -> None:
    made = complete([None, None], START)
    data = stored(made)
    other = complete([None], START)[0]
    assert read_authorities({**data, "cacert1.pem": b"nonsense"}, START)[0] is None
    assert read_authorities({**data, "cakey1.pem": b""}, START)[0] is None
    assert read_authorities({**data, "cakey1.pem": other.key_pem}, START)[0] is None
    del data["cakey2.pem"]
    first, second = read_authorities(data, START)
    assert first is not None
    assert second is None


def test_server_certificate_is_signed_and_names_the_hosts() -> None:
    authorities = complete([None, None], START)
    made = server_certificate(authorities, ["a.ns.svc", "a.ns"], START)
    certificate = x509.load_pem_x509_certificate(made.certificate)
    named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["a.ns.svc", "a.ns"]
    assert certificate.not_valid_after_utc <= issuer(made, authorities).end
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    assert made.renewal <= min(one.end for one in authorities) - RENEWAL
