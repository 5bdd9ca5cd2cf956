"""Detection of certificate keys that gRPC cannot serve.

gRPC serves fewer kinds of keys than Python loads, and only logs an error for others. A certificate is DER
(ITU-T X.690): elements of a tag, a length and a content. Its `SubjectPublicKeyInfo` (RFC 5280, section 4.1)
names the kind of key.
"""

from __future__ import annotations

import binascii
import re
import ssl
from collections.abc import Iterator

SERVED = "RSA (1,024 bits or more), EC P-256 and EC P-384"
"""Kinds of keys with which TLS handshakes of gRPC succeed."""
SMALLEST_RSA = 1024

_RSA = bytes.fromhex("2a864886f70d010101")
_EC = bytes.fromhex("2a8648ce3d0201")
_CURVES = {bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2b81040022")}  # P-256, P-384
_OTHERS = {
    bytes.fromhex("2a864886f70d01010a"): "RSA-PSS",
    bytes.fromhex("2b6570"): "Ed25519",
    bytes.fromhex("2b6571"): "Ed448",
    bytes.fromhex("2a8648ce380401"): "DSA",
}
_OTHER_CURVES = {
    bytes.fromhex("2b81040023"): "EC P-521",
    bytes.fromhex("2b81040021"): "EC P-224",
    bytes.fromhex("2b8104000a"): "EC secp256k1",
}
_VERSION = 0xA0
_BEFORE_KEY = 5
"""Fields between the version and the key: serial number, signature, issuer, validity, subject."""
_FIRST = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def unserved_key(pem: bytes) -> str:
    """Return the kind of key of the first certificate if gRPC does not serve that kind, otherwise "".

    A certificate whose form this module does not parse counts as served: `ssl` has checked the form.
    """
    first = _FIRST.search(pem)
    if first is None:
        return ""
    try:
        algorithm, key = _public_key(ssl.PEM_cert_to_DER_cert(first[0].decode("ascii")))
        return _unserved(algorithm, key)
    except (ValueError, IndexError, StopIteration, binascii.Error):
        return ""


def _unserved(algorithm: bytes, key: bytes) -> str:
    kind, *parameters = [content for _, content in _elements(algorithm)]
    if kind == _EC:
        curve = parameters[0]
        return "" if curve in _CURVES else _OTHER_CURVES.get(curve, "EC on another curve")
    if kind != _RSA:
        return _OTHERS.get(kind, "another kind")
    # A DER bit string begins with the number of its unused bits.
    _, numbers = next(_elements(key[1:]))
    _, modulus = next(_elements(numbers))
    bits = int.from_bytes(modulus, "big").bit_length()
    return "" if bits >= SMALLEST_RSA else f"RSA of {bits} bits"


def _public_key(certificate: bytes) -> tuple[bytes, bytes]:
    """Return the algorithm and the key of a certificate."""
    _, whole = next(_elements(certificate))
    _, signed = next(_elements(whole))
    fields = list(_elements(signed))
    if fields[0][0] == _VERSION:
        del fields[0]
    (_, algorithm), (_, key) = _elements(fields[_BEFORE_KEY][1])
    return algorithm, key


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tags and contents of consecutive DER elements; raises `ValueError` for a cut-off one."""
    at = 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        at += 2
        if length >= 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("an element is cut off")
        yield tag, data[at : at + length]
        at += length
