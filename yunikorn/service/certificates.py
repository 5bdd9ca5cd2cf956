"""Certificates of a server, which can be replaced while the server runs."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import grpc

from yunikorn.errors import UsageError
from yunikorn.service.certificate_keys import SERVED, unserved_key
from yunikorn.service.settings import ServerTls


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
