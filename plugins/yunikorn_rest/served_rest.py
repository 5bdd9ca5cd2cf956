"""REST interface of a service: its socket, its certificates, and its part in the life of the service."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from yunikorn.clock import Clock, stopwatch
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_rest.app import rest_app
from yunikorn_rest.config_changes import ConfigChanges
from yunikorn_rest.endpoints import RestContext
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import EventHub, StreamLimits
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.operator_actions import OperatorChanges
from yunikorn_rest.rest_access import RestAccess
from yunikorn_rest.rest_server import RestServer, ServerLimits
from yunikorn_rest.rest_settings import RestSettings
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_rest.web.all_pages import pages
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.background import BackgroundTasks
from yunikorn_service.certificates import check_files
from yunikorn_service.config_files import Reloading, watch
from yunikorn_service.descriptors import connection_limit
from yunikorn_service.host_address import UNIX, HostAddress
from yunikorn_service.log_levels import LogLevels
from yunikorn_service.logs import AREAS
from yunikorn_service.service_settings import ServerSettings, ServerTls

if TYPE_CHECKING:
    from yunikorn_rest.metrics.service_metrics import ServiceMetrics

_log = logging.getLogger("yunikorn.rest")

BACKLOG = 1024


class Rest:
    """REST interface of a core. `start` and `stop` must be called in the same event loop."""

    def __init__(
        self,
        core: AsyncScheduler,
        settings: RestSettings,
        registry: Registry,
        metrics: ServiceMetrics | None,
        store: EventStore,
        clock: Clock,
        server: ServerSettings | None = None,
        history: KeptHistory | None = None,
    ) -> None:
        """Create the interface; `server` says whether TLS is used. Raises `UsageError` for unusable files."""
        server = server or ServerSettings()
        self._settings, self._tls, self._insecure = settings, server.tls, server.insecure
        events = settings.events
        limits = StreamLimits(events.streams, events.streams_per_host, events.answer)
        self._events = EventHub(store, clock.now, limits)
        if metrics is not None:
            metrics.parts.append(self._events.figures)
        self._access = RestAccess(self._settings, self._tls, clock.now, stopwatch)
        audit = self._access.audit
        self._unready: Callable[[], str] = lambda: ""
        self._shared = RestContext(
            core,
            registry,
            stopwatch,
            metrics=metrics,
            events=self._events,
            gate=self._access.gate,
            log_levels=LogLevels(AREAS),
            steering=None if audit is None else OperatorChanges(core, audit),
            core_alive=lambda: core.threaded.alive,
            unready=lambda: self._unready(),
            past=history,
        )
        self._tasks = BackgroundTasks(_log)
        web = pages(stopwatch, has_history=history is not None)
        self._app = rest_app(self._shared, (*ENDPOINTS, *web.endpoints), web.error_page)
        self._context: ssl.SSLContext | None = None
        self._server: RestServer | None = None

    async def start(self) -> str:
        """Listen; returns the URL with the bound port, or "" if the default address is in use.

        Raises `UsageError` if the service cannot listen at the address that was given.
        """
        address = parse(self._settings.address)
        self._access.check(address, insecure=self._insecure)
        self._context = None if self._tls is None else _context(self._tls)
        try:
            listening = _listen(address)
        except UsageError as error:
            if not self._settings.is_default:
                raise
            _log.warning("%s. The service runs without REST", error)
            self._events.store.switch_off()
            return ""
        hosts = (_host_header(address.host), *self._settings.hosts) if address.is_local else ()
        limits = ServerLimits(connections=connection_limit())
        self._server = RestServer(self._app, listening, self._context, hosts, limits)
        await self._server.start()
        self._tasks.begin(self._shared.history.keep(self._shared.core), "the history of samples")
        file = self._access.file
        if file is not None:
            changed = watch(lambda: [file], self._credentials_changed)
            self._tasks.begin(changed, "the watch of the file of credentials")
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{address.at_port(listening.getsockname()[1])}"

    async def stop(self) -> None:
        """Answer the requests in progress, and close all connections."""
        self._tasks.cancel_all()
        self._events.end_all()
        self._shared.snapshots.stop()
        if self._server is not None:
            await self._server.stop()
        if self._shared.past is not None:
            self._shared.past.close()
        self._access.close()

    async def _credentials_changed(self) -> None:
        await asyncio.to_thread(self._access.reload, "the file has changed")

    def change_configurations(self, reloading: Reloading, source: Callable[[], str]) -> None:
        """Let operators change the configurations of the service; see `ConfigChanges`."""
        if self._shared.steering is not None:
            self._shared.steering.configuration = ConfigChanges(reloading, source)

    def keep_audit(self, listener: Callable[[int, Mapping[str, object]], None]) -> None:
        """Pass on the entries of the audit log with their times (ns)."""
        if self._access.audit is not None:
            self._access.audit.listener = listener

    def ask_readiness(self, unready: Callable[[], str]) -> None:
        """Fail the readiness probe while `unready` returns a reason."""
        self._unready = unready

    def reload_credentials(self) -> None:
        """Use the current file of credentials; an unusable one is logged, and changes nothing."""
        self._access.reload("SIGHUP")

    def reload_certificates(self) -> bool:
        """Use the current certificate files for new connections; returns True, raises `UsageError`."""
        if self._context is None or self._tls is None:
            return False
        _load(self._context, self._tls)
        return True


def parse(text: str) -> HostAddress:
    """Parse the address of the REST interface; raises `UsageError`."""
    if text.startswith(UNIX):
        raise UsageError(f"--rest {text}: REST is served at HOST:PORT only, or `off`")
    try:
        return HostAddress.parse(text)
    except UsageError as error:
        # The text of the error is about gRPC, whose addresses may also be Unix sockets.
        example = "[::1]:9080" if text.count(":") > 1 else "127.0.0.1:9080"
        raise UsageError(f"--rest {text}: give HOST:PORT, such as {example}, or off") from error


def _listen(address: HostAddress) -> socket.socket:
    """Return a socket that listens at an address; raises `UsageError`."""
    port = int(address.target.rpartition(":")[2])
    try:
        family, kind, _, _, found = socket.getaddrinfo(
            address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind)
        try:
            # Connections of an earlier process that are still closing do not prevent a new start.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(found)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        in_use = "the address is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise UsageError(
            f"cannot listen at {address.target}: {in_use}. Choose another with --rest, or --rest off"
        ) from error
    return listening


def _host_header(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _context(tls: ServerTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    _load(context, tls)
    if tls.client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load(context: ssl.SSLContext, tls: ServerTls) -> None:
    """Load the files into a context; raises `UsageError`."""
    check_files(tls)
    context.load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    if tls.client_authority is not None:
        context.load_verify_locations(tls.client_authority)
