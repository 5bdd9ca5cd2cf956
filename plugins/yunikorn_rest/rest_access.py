"""Credentials of the REST interface in a service: their file, and who needs none for reading."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from yunikorn.errors import UsageError
from yunikorn_rest.audit import Audit
from yunikorn_rest.guards import Throttle
from yunikorn_rest.operator_credentials import read_credentials, weak_permissions
from yunikorn_rest.rest_settings import RestSettings
from yunikorn_rest.route_access import AccessGate
from yunikorn_service.host_address import HostAddress
from yunikorn_service.service_settings import ServerTls

_log = logging.getLogger("yunikorn.rest")


class RestAccess:
    """Credentials and audit log of a service."""

    def __init__(
        self,
        settings: RestSettings,
        tls: ServerTls | None,
        now: Callable[[], int],
        stopwatch: Callable[[], int],
    ) -> None:
        """Read the credentials and open the audit log; raises `UsageError` for files that cannot be used."""
        self._settings, self._tls = settings, tls
        self.gate = AccessGate(throttle=Throttle(stopwatch))
        self.audit: Audit | None = None
        if settings.credentials is not None:
            self._read(settings.credentials)
            self.audit = self.gate.audit = Audit(settings.audit_log, now)

    def check(self, address: HostAddress, *, insecure: bool) -> None:
        """Set whether reading is open at an address.

        Raises `UsageError` if other machines could read without encryption or without credentials.
        """
        settings, tls = self._settings, self._tls
        known = self.gate.credentials is not None
        with_authority = tls is not None and tls.client_authority is not None
        self.gate.reading_is_open = address.is_local or settings.is_open or with_authority or not known
        if address.is_local:
            return
        if insecure:
            if known:
                _log.warning("%s: tokens are sent without encryption (--insecure-bind)", address.target)
            return
        if tls is None:
            raise UsageError(
                f"--rest {address.target} can be reached by other machines, without encryption and"
                " authentication: give --tls-cert and --tls-key (and --tls-client-ca), listen on 127.0.0.1,"
                " or give --insecure-bind if this is intended"
            )
        if not (with_authority or settings.is_open or known):
            raise UsageError(
                f"--rest {address.target} can be read by any client that reaches it: give --tls-client-ca or"
                " --rest-credentials, or --rest-open if this is intended"
            )

    @property
    def file(self) -> Path | None:
        """File of the credentials."""
        return self._settings.credentials

    def reload(self, why: str) -> None:
        """Use the current file; a file that cannot be used is logged, and the previous credentials stay."""
        if self.file is None:
            return
        try:
            if self._read(self.file):
                _log.info("%s: the credentials were reloaded", why)
        except UsageError as error:
            _log.error("%s: the old credentials stay in use:\n%s", why, error)

    def _read(self, file: Path) -> bool:
        """Read the file; returns True if the credentials have changed. Raises `UsageError`."""
        with_certificates = self._tls is not None and self._tls.client_authority is not None
        found = read_credentials(file, certificates=with_certificates)
        warning = weak_permissions(file)
        if warning:
            _log.warning("%s", warning)
        before, self.gate.credentials = self.gate.credentials, found
        return before is None or before.entries != found.entries

    def close(self) -> None:
        """Close the audit log."""
        if self.audit is not None:
            self.audit.close()
