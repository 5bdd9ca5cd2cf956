"""Certificates of a server, which can be replaced while the server runs.

Keys that gRPC cannot serve are detected: gRPC serves fewer kinds of keys than Python loads, and only logs an
error for others. A certificate is DER (ITU-T X.690): elements of a tag, a length and a content. Its
`SubjectPublicKeyInfo` (RFC 5280, section 4.1) names the kind of key.

`Handshakes` logs failed TLS handshakes, which gRPC reports on standard error only. gRPC has no API for
connections that were never established. At the log level INFO, its library writes a line to standard error
for each of them, among lines about other things. A service that uses TLS reads these lines, logs the failed
handshakes, and passes on all lines that are not from gRPC.
"""

from __future__ import annotations

import binascii
import contextlib
import faulthandler
import io
import logging
import os
import re
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yunikorn.errors import UsageError, printable
from yunikorn_service.service_settings import ServerTls

if TYPE_CHECKING:
    import grpc


class ServerCertificates:
    """Certificates in the form that gRPC expects; open connections keep their initial certificates."""

    def __init__(self, tls: ServerTls) -> None:
        """Read the files; raises `UsageError` for a file that cannot be used."""
        self._tls = tls
        self._files = _read(tls)
        self._next: grpc.ServerCertificateConfiguration | None = None
        """Configuration that gRPC has not fetched yet."""

    def credentials(self) -> grpc.ServerCredentials:
        """Return server credentials that follow `reload`."""
        # Not at the top: `yunikorn serve` imports this module before it sets GRPC_VERBOSITY, or without gRPC.
        import grpc

        fetch: Any = self._fetch  # the type stubs omit the None that gRPC documents
        return grpc.dynamic_ssl_server_credentials(
            _configuration(self._files), fetch, self._tls.client_authority is not None
        )

    def reload(self) -> bool:
        """Read the files again; returns True if they have changed.

        Raises `UsageError` for a file that cannot be used, and keeps the previous certificates then.
        """
        files = _read(self._tls)
        if files == self._files:
            return False
        self._files, self._next = files, _configuration(files)
        return True

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the new configuration, or None for no change; called by gRPC threads per connection."""
        found, self._next = self._next, None
        return found


def _configuration(files: tuple[bytes, bytes, bytes | None]) -> grpc.ServerCertificateConfiguration:
    import grpc  # see `credentials`

    key, certificate, roots = files
    return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=roots)


def _read(tls: ServerTls) -> tuple[bytes, bytes, bytes | None]:
    """Return the key, the certificate and the clients' authority; raises `UsageError`."""
    authority = tls.client_authority
    files = (
        _pem(tls.key, "--tls-key", "PRIVATE KEY"),
        _pem(tls.certificate, "--tls-cert", "CERTIFICATE"),
        None if authority is None else _pem(authority, "--tls-client-ca", "CERTIFICATE"),
    )
    _check(tls)
    unserved = unserved_key(files[1])
    if unserved:
        text = f"gRPC does not support keys of this kind ({unserved}): use {SERVED}"
        raise UsageError(f"--tls-cert {tls.certificate}: {text}")
    return files


def check_files(tls: ServerTls) -> None:
    """Raise `UsageError` for files that cannot be used."""
    _read(tls)


def _check(tls: ServerTls) -> None:
    """Load the files with `ssl`, because gRPC only logs unusable files; raises `UsageError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # gRPC decides which keys are strong enough.
    context.set_ciphers("ALL:@SECLEVEL=0")
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    except (OSError, ValueError) as error:
        what = f"--tls-cert {tls.certificate} and --tls-key {tls.key}"
        raise UsageError(f"{what} cannot be used together: {_reason(error)}") from error
    if tls.client_authority is not None:
        try:
            context.load_verify_locations(tls.client_authority)
        except (OSError, ValueError) as error:
            what = f"--tls-client-ca {tls.client_authority}"
            raise UsageError(f"{what} cannot be used: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", "") or getattr(error, "strerror", "") or error
    return str(reason).lower().replace("_", " ")


def _pem(file: Path, option: str, what: str) -> bytes:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {file}: cannot be read: {error.strerror or error}") from error
    if b"-----BEGIN" not in data or what.encode() not in data:
        raise UsageError(f"{option} {file}: contains no {what.lower()} in PEM form (-----BEGIN ...)")
    return data


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


_log = logging.getLogger("yunikorn.grpc")

VERBOSITY = "INFO"
"""Log level at which gRPC reports failed handshakes."""
OFTEN = 10
"""Number of failures per reason that are all logged; later ones are logged when their number doubles."""
REASONS = 100
"""Maximum number of reasons that are counted separately."""
PATIENCE = 1.0
"""Seconds to wait for the last lines when the logging ends."""

_OF_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
_UNSPECIFIC = ": Invalid certificate verification context"
"""End of lines about handshakes that failed before a certificate was checked."""
_FAILED = re.compile(r"\] Handshake failed with error (?:\w+: )?(?:error:\w+:[\w ]*:\w*:)?(.*)")


class Handshakes:
    """Logger of failed handshakes, fed with the lines of standard error."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def take(self, line: str) -> bool:
        """Process a line of standard error; returns False if the line is not from gRPC."""
        if not _OF_GRPC.match(line):
            return False
        failed = _FAILED.search(line)
        if failed is None:
            _log.debug("the library of gRPC: %s", line.partition("] ")[2])
        else:
            self._failed(failed[1].removesuffix(_UNSPECIFIC).strip())
        return True

    def _failed(self, reason: str) -> None:
        if reason not in self._times and len(self._times) >= REASONS:
            reason = "other reasons"
        self._times[reason] += 1
        times = self._times[reason]
        if times <= OFTEN or times & (times - 1) == 0:
            counted = f" ({times} times so far)" if times > 1 else ""
            _log.warning("a TLS handshake failed: %s%s", printable(reason), counted)


@contextlib.contextmanager
def handshakes_logged() -> Iterator[None]:
    """Log failed handshakes of this process while the context is active.

    The standard error of the process (descriptor 2) is read by a thread here. `sys.stderr` bypasses that
    thread, because the traceback of a crash must not wait for a thread. Without standard error (`2>&-`) there
    is no log to write to, and gRPC writes to the null device.
    """
    before = sys.stderr
    if before is None:
        _occupy(2)
        yield
        return
    kept = os.dup(2)
    reading, writing = os.pipe()
    before.flush()
    sys.stderr = io.TextIOWrapper(
        os.fdopen(os.dup(kept), "wb", 0), errors="backslashreplace", line_buffering=True, write_through=True
    )
    os.dup2(writing, 2)
    os.close(writing)
    faulthandler.enable(sys.stderr)
    reader = threading.Thread(
        target=_copy_lines, args=(reading, kept), name="yunikorn-handshakes", daemon=True
    )
    reader.start()
    try:
        yield
    finally:
        faulthandler.disable()
        os.dup2(kept, 2)
        sys.stderr, ours = before, sys.stderr
        ours.close()
        # A child process that still runs may keep the write end of the pipe open.
        reader.join(PATIENCE)


def _occupy(descriptor: int) -> None:
    """Open the null device as this descriptor if closed; gRPC would write to the next opened file."""
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, os.O_WRONLY)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)


def _copy_lines(reading: int, kept: int) -> None:
    handshakes = Handshakes()
    with open(reading, encoding="utf-8", errors="backslashreplace") as lines, os.fdopen(kept, "wb", 0) as out:
        for line in lines:
            if not handshakes.take(line.rstrip("\n")):
                out.write(line.encode("utf-8", "backslashreplace"))
