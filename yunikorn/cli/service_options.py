"""Values of the options that all commands share that run a service, and the parts of the service for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from yunikorn.cli.output import results_only
from yunikorn.errors import UsageError
from yunikorn.service.logs import logging_to, parse_levels
from yunikorn.service.service_settings import (
    DEFAULT_REST,
    Budget,
    EventLimits,
    RestSettings,
    ServerSettings,
    ServerTls,
)

if TYPE_CHECKING:
    from yunikorn.metrics.service_metrics import ServiceMetrics
    from yunikorn.service.rest import Rest

OFF = "off"


@attrs.frozen
class SharedOptions:
    """Values of the shared options, which `yunikorn serve` declares."""

    rest: str | None
    rest_hosts: tuple[str, ...]
    metrics: str | None
    event_limits: tuple[str, ...]
    rest_open: bool
    rest_credentials: Path | None
    audit_log: Path | None
    plugin_budget: float | None
    stats: float | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    insecure_bind: bool
    record: Path | None
    record_size: int | None
    levels: tuple[str, ...]
    log_format: str

    def __attrs_post_init__(self) -> None:
        """Raise `click.BadParameter` for the size of a recording that is not wanted."""
        if self.record_size is not None and self.record is None:
            raise click.BadParameter("needs --record FILE", param_hint="--record-size")

    def settings(self) -> ServerSettings:
        """Return the settings of the service; raises `UsageError`."""
        rest = RestSettings(
            self.rest or DEFAULT_REST,
            self.rest is None,
            self.rest_hosts,
            self.rest_open,
            self.rest_credentials,
            self.audit_log,
            EventLimits.parse(self.event_limits),
        )
        tls = tls_files(self.tls_cert, self.tls_key, self.tls_client_ca)
        return ServerSettings(
            tls=tls, insecure=self.insecure_bind, budget=Budget(call=self.plugin_budget), rest=rest
        )

    def web(self) -> type[Rest] | None:
        """Return the class of the REST interface; None if REST is off, or not installed and not requested.

        Raises `UsageError` for credentials or an audit log that would have no effect.
        """
        found = rest_server(self.rest)
        if self.rest_credentials is not None and found is None:
            raise UsageError("--rest-credentials needs REST, which is off or not installed: give --rest")
        if self.audit_log is not None and self.rest_credentials is None:
            raise UsageError(
                "--audit-log needs --rest-credentials: without it nothing can be changed over REST"
            )
        return found

    @contextlib.contextmanager
    def logging(self) -> Iterator[None]:
        """Write the log of the service as the options say, with the prints of plugins, during the context."""
        with logging_to(None, parse_levels(self.levels), self.log_format), results_only(logged=True):
            yield


def tls_files(certificate: Path | None, key: Path | None, authority: Path | None) -> ServerTls | None:
    """Return the TLS files of a server; None for a server without TLS. Raises `UsageError`."""
    if certificate is None and key is None:
        if authority is not None:
            raise UsageError("--tls-client-ca needs --tls-cert and --tls-key: clients are checked over TLS")
        return None
    if certificate is None or key is None:
        given, missing = ("--tls-key", "--tls-cert") if certificate is None else ("--tls-cert", "--tls-key")
        raise UsageError(f"{given} needs {missing} too")
    return ServerTls(certificate, key, authority)


def rest_server(rest: str | None) -> type[Rest] | None:
    """Return the class of the REST interface; None if REST is off, or not installed and not requested."""
    if rest == OFF:
        return None
    try:
        from yunikorn.service.rest import Rest
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        if rest is None:
            return None
        raise UsageError(
            f"{error.name} is not installed, but is needed for --rest: pip install 'yunikorn[web]'"
        ) from error
    return Rest


def metrics_class(wanted: str | None, with_rest: bool) -> type[ServiceMetrics] | None:
    """Return the class of the metrics; None if metrics are off, or cannot be served and not requested."""
    if wanted == OFF or not (wanted or with_rest):
        return None
    if not with_rest:
        raise UsageError("--metrics on needs the REST interface, which is off or not installed: give --rest")
    try:
        from yunikorn.metrics.service_metrics import ServiceMetrics
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        if wanted is None:
            return None
        raise UsageError(
            f"{error.name} is not installed, but is needed for --metrics on: pip install 'yunikorn[web]'"
        ) from error
    return ServiceMetrics
