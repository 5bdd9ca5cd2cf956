"""The door for people and programs that speak HTTP: REST, pages and metrics.

The libraries are imported when the door is opened, because they may not be installed; so is the
service, because `--help` reads the options of all doors.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import click

from yunikorn import api
from yunikorn.clock import MILLISECOND, SECOND, Clock, stopwatch
from yunikorn.errors import UsageError
from yunikorn_commands.extras import MissingExtra, importing_extra
from yunikorn_commands.path_types import SERVICE_FILE
from yunikorn_rest.metrics import families
from yunikorn_rest.rest_settings import DEFAULT_REST, EVENT_LIMITS, EventLimits, RestSettings
from yunikorn_service.measurements import Measurements
from yunikorn_service.option_values import OFF
from yunikorn_service.service_door import CoreParts, ServiceDoor, option, reload_certificates
from yunikorn_service.service_settings import ServerSettings

if TYPE_CHECKING:
    from yunikorn_rest.event_store import EventStore
    from yunikorn_rest.kept_history import KeptHistory
    from yunikorn_rest.metrics.service_metrics import ServiceMetrics
    from yunikorn_rest.served_rest import Rest
    from yunikorn_service.service import Service


class RestDoor(ServiceDoor):
    """Serve REST, pages and metrics."""

    name = "rest"

    def __init__(
        self,
        settings: RestSettings,
        server: ServerSettings,
        rest: type[Rest],
        metrics: type[ServiceMetrics] | None,
    ) -> None:
        """Create a closed door with the class of the interface, and that of metrics, or None for none."""
        self._settings, self._server = settings, server
        self._rest_class, self._metrics_class = rest, metrics
        self._store: EventStore | None = None
        self._rest: Rest | None = None
        self._parts: CoreParts | None = None

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the address, and who may read and change what."""
        return (
            option(
                "--rest",
                metavar="ADDRESS",
                help="Where to serve REST: HOST:PORT (port 0: any free port), or off."
                f"  [default: {DEFAULT_REST} if the extra web is installed]",
            ),
            option(
                "--rest-host",
                "rest_hosts",
                multiple=True,
                metavar="NAME",
                help=(
                    "Another host name under which clients may reach REST on a loopback address. May be"
                    " repeated."
                ),
            ),
            option(
                "--metrics",
                type=click.Choice(("on", OFF)),
                help=(
                    "Count and measure for Prometheus, at /ws/v1/metrics of REST.  [default: on if REST is"
                    " served]"
                ),
            ),
            option(
                "--event-limit",
                "event_limits",
                multiple=True,
                metavar="NAME=NUMBER",
                help=f"Limits of events that REST serves: {', '.join(EVENT_LIMITS)}. May be repeated.",
            ),
            option("--rest-open", is_flag=True, help="Let other machines read REST without credentials."),
            option(
                "--rest-credentials",
                type=SERVICE_FILE,
                metavar="FILE",
                help="Let the operators in FILE change things over REST (see `yunikorn token`).",
            ),
            option(
                "--audit-log",
                type=SERVICE_FILE,
                metavar="FILE",
                help="Append changes over REST, and refused ones, to FILE as JSON lines.",
            ),
        )

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], settings: ServerSettings) -> Self | None:
        """Return the door; None if REST is off, or not installed and not requested.

        Raises `UsageError` for metrics, credentials or an audit log that would have no effect.
        """
        address = values["rest"]
        made = RestSettings(
            address or DEFAULT_REST,
            address is None,
            values["rest_hosts"],
            values["rest_open"],
            values["rest_credentials"],
            values["audit_log"],
            EventLimits.parse(values["event_limits"]),
        )
        rest = rest_server(address)
        if made.credentials is not None and rest is None:
            raise UsageError("--rest-credentials needs REST, which is off or not installed: give --rest")
        if made.audit_log is not None and made.credentials is None:
            raise UsageError(
                "--audit-log needs --rest-credentials: without it nothing can be changed over REST"
            )
        metrics = metrics_class(values["metrics"], rest is not None)
        return None if rest is None else cls(made, settings, rest, metrics)

    def prepare(self, parts: CoreParts) -> None:
        """Keep the latest events of the core, and let it measure what the metrics show."""
        from yunikorn_rest.decision_store import DecisionStore
        from yunikorn_rest.event_store import EventStore

        self._parts = parts
        limits = self._settings.events
        self._store = EventStore(_instance(parts.clock), limits.stored, DecisionStore(limits.decisions))
        parts.event_receivers.append(self._store)
        if self._metrics_class is not None:
            parts.measurements = Measurements(stopwatch)

    async def start(self, service: api.Service) -> str:
        """Listen; returns the URL. Raises `UsageError` if the service cannot listen at a given address."""
        from yunikorn_service.service import Service

        assert isinstance(service, Service)
        assert self._store is not None
        self._rest = rest = self._rest_class(
            service.core,
            self._settings,
            service.registry,
            self._metrics(service),
            self._store,
            service.clock,
            self._server,
            self._history(service.clock),
        )
        rest.change_configurations(service.reloading, service.config_source)
        rest.ask_readiness(service.unready)
        if self._parts is not None and self._parts.history is not None:
            rest.keep_audit(self._parts.history.audited)
        url = await rest.start()
        return f"{url}/ws/v1" if url else ""

    def _history(self, clock: Clock) -> KeptHistory | None:
        """Return the history that another door of the service records, if there is one."""
        recorded = None if self._parts is None else self._parts.history
        if recorded is None:
            return None
        from yunikorn_rest.kept_history import KeptHistory

        return KeptHistory(recorded.target, clock.now)

    def _metrics(self, service: Service) -> ServiceMetrics | None:
        if self._metrics_class is None:
            return None
        core = service.core
        made = self._metrics_class(
            core.read, core.threaded, service.budgets.seconds, service.statistics, service.sinks
        )
        made.parts.append(lambda: worker_figures(service))
        recorded = None if self._parts is None else self._parts.history
        if recorded is not None:
            made.parts.append(lambda: recording_figures(recorded.status()))
        return made

    async def stop(self) -> None:
        """Answer the requests in progress, and close all connections."""
        if self._rest is not None:
            await self._rest.stop()

    async def reload(self) -> None:
        """Use the current certificates and credentials."""
        if self._rest is not None:
            reload_certificates(self._rest.reload_certificates)
            self._rest.reload_credentials()


def worker_figures(service: Service) -> dict[families.Family, float]:
    """Return the figures of the threads that call policies."""
    workers = service.workers
    return {
        families.POLICY_CALLS: len(workers),
        families.POLICY_CALLS_STUCK: workers.stuck,
        families.POLICY_CALLS_GIVEN_UP: workers.given_up,
    }


def recording_figures(status: Any) -> dict[families.Family, float]:
    """Return the figures of the recording of a history."""
    return {
        families.HISTORY_BACKLOG: status.backlog,
        families.HISTORY_LOST: status.lost,
        families.HISTORY_COMMITTED: status.committed * MILLISECOND / SECOND,
        families.HISTORY_AWAY: bool(status.problem),
    }


def _instance(clock: Clock) -> str:
    """Return an identifier for this start of the process: of the machine, the process and the time."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{socket.gethostname()} {os.getpid()} {clock.now()}"))


def rest_server(rest: str | None) -> type[Rest] | None:
    """Return the class of the REST interface; None if REST is off, or not installed and not requested."""
    if rest == OFF:
        return None
    try:
        with importing_extra("web", "for --rest"):
            from yunikorn_rest.served_rest import Rest

            if importlib.util.find_spec("jinja2") is None:  # imported at the first page only
                raise ModuleNotFoundError("no module named 'jinja2'", name="jinja2")
    except MissingExtra:
        if rest is None:
            return None
        raise
    return Rest


def metrics_class(wanted: str | None, with_rest: bool) -> type[ServiceMetrics] | None:
    """Return the class of the metrics; None if metrics are off, or cannot be served and not requested."""
    if wanted == OFF or not (wanted or with_rest):
        return None
    if not with_rest:
        raise UsageError("--metrics on needs the REST interface, which is off or not installed: give --rest")
    try:
        with importing_extra("web", "for --metrics on"):
            from yunikorn_rest.metrics.service_metrics import ServiceMetrics
    except MissingExtra:
        if wanted is None:
            return None
        raise
    return ServiceMetrics


@api.hookimpl
def yunikorn_doors() -> list[type[ServiceDoor]]:
    """Return the door of REST."""
    return [RestDoor]
