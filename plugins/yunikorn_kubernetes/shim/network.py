"""The shim as a part of a service: credentials, leadership, recovery, and the end of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SystemClock
from yunikorn.errors import ConfigError, Problem, UsageError, YunikornError
from yunikorn.interface.commands import ReloadConfiguration
from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import find_credentials
from yunikorn_kubernetes.api_server.api_resources import CONFIG_MAPS, WATCHED
from yunikorn_kubernetes.api_server.back_off import from_system
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.lease import LeaderElection
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.rate_limit import RateLimit
from yunikorn_kubernetes.api_server.write_queue import Priority
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.config_maps import CONFIGS
from yunikorn_kubernetes.names import POD_PREFERENCES
from yunikorn_kubernetes.shim.api_server_check import FirstContact, are_served, is_served
from yunikorn_kubernetes.shim.config_map_follower import Configuration
from yunikorn_kubernetes.shim.leader_mark import LeaderMark
from yunikorn_kubernetes.shim_settings import ShimLogLevels
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.background import begin_shared

if TYPE_CHECKING:
    from yunikorn_kubernetes.shim.shim import Shim
    from yunikorn_kubernetes.shim.shim_parts import ShimParts
    from yunikorn_kubernetes.workloads.chosen_readers import WorkloadReaders
    from yunikorn_kubernetes.workloads.reader_calls import Report

_log = logging.getLogger("yunikorn.kubernetes")

FAILED = 1
"""Exit status of a shim that cannot continue."""
UNUSABLE = 2
"""Exit status where the ConfigMaps, the credentials or the rights cannot be used."""
DRAIN = 5.0
"""Seconds for the writes that are under way when the service stops."""
CONNECTIONS = 64
LEASE = "yunikorn-scheduler"
"""Name of the lease."""
BUSY = 20
"""Number of waiting bindings above which events wait."""


def _no_check(_: str) -> Iterable[Problem]:
    return ()


def _no_readers(entries: Collection[str], report: Report) -> WorkloadReaders:
    from yunikorn_kubernetes.workloads.chosen_readers import WorkloadReaders

    return WorkloadReaders(())


@attrs.frozen
class KubernetesOptions:
    """Options of the shim."""

    kubeconfig: str = ""
    """Kubeconfig file; empty for the credentials of the pod, of KUBECONFIG, or of the home folder."""
    context: str = ""
    namespace: str = ""
    """Namespace of the ConfigMaps and of the lease; empty for that of the credentials."""
    version: str = ""
    config_maps: bool = True
    """False if the core has a configuration of its own."""
    pod: str = ""
    """Name of the pod of this process in the namespace; then a label marks the pod of the leader, and standby
    replicas are ready."""
    leader_election: bool | None = None
    """True for a process that must have the lease, False for one that needs none; None for one that goes on
    without it, with a warning, if it has no right to leases, as in a deployment made for Apache YuniKorn."""
    check_queues: Callable[[str], Iterable[Problem]] = _no_check
    """Returns the problems of a queue configuration."""
    set_levels: Callable[[ShimLogLevels], object] = lambda _: None
    """Sets the levels of logs."""
    choose_readers: Callable[[Collection[str], Report], WorkloadReaders] = _no_readers
    """Returns the workload readers for the entries of their setting."""


class KubernetesNetwork:
    """The shim in the place of the gRPC server of a service."""

    def __init__(self, core: AsyncScheduler, options: KubernetesOptions) -> None:
        """Create a shim for a core, in an event loop; nothing connects before `start`."""
        self._core, self._options = core, options
        self._connection: ApiConnection | None = None
        self._namespace = options.namespace
        self._chance = from_system()
        self._images = False
        """True if the images of pods and nodes are read."""
        self._work: asyncio.Task[None] | None = None
        self._shim: Shim | None = None
        self._writes: QueuedWrites | None = None
        self._configuration: Configuration | None = None
        self._election: LeaderElection | None = None
        self._mark: LeaderMark | None = None
        self._is_candidate = False
        """True while the process waits for the lease."""
        self._unready = "the API server has not answered yet"
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """Exit status, once the shim has ended by itself."""

    @property
    def unready(self) -> str:
        """Reason for which the shim is not ready; empty if it is."""
        if self._is_candidate and self._election is not None:
            # A service that selects the label does not lead to a standby, which may be ready therefore.
            is_ready = self._mark is not None and not self._election.problem
            return "" if is_ready else self._election.waiting_for
        return self._unready

    @property
    def config_source(self) -> str:
        """Place of the configuration; empty if the core has one of its own."""
        if not self._options.config_maps:
            return ""
        kubectl, found = f"kubectl -n {self._namespace}", self._configuration
        missing, change = "", f"{kubectl} edit configmap {CONFIGS}"
        if found is not None and not found.has_configs:
            key = f"{found.current.settings.service.policy_group}.yaml"
            missing = ", which does not exist yet"
            change = f"{kubectl} create configmap {CONFIGS} --from-file={key}=FILE"
        return f"that of the ConfigMap {CONFIGS} in the namespace {self._namespace}{missing} ({change})"

    async def start(self) -> str:
        """Read the credentials, and begin to connect; returns the address of the API server.

        Raises `UsageError` if there are no usable credentials.
        """
        options = self._options
        credentials = find_credentials(options.kubeconfig, options.context, environment=os.environ)
        agent = f"yunikorn/{options.version}"
        self._connection = ApiConnection(credentials, user_agent=agent, connections=CONNECTIONS)
        access = await self._connection.access()
        self._namespace = options.namespace or access.namespace
        self._work = begin_shared(self._run(self._connection))
        self._work.add_done_callback(self._note_end)
        return access.url

    def _note_end(self, work: asyncio.Task[None]) -> None:
        self._unready, self._is_candidate = "the shim has ended", False
        if work.cancelled() or self.ended.done():
            return
        error = work.exception()
        if isinstance(error, YunikornError):
            cause = "the ConfigMaps cannot be used:\n" if isinstance(error, ConfigError) else ""
            _log.critical("the shim has ended: %s%s", cause, error)
            if isinstance(error, ConfigError | UsageError):
                self.ended.set_result(UNUSABLE)
                return
        elif error is not None:
            _log.critical("the shim has failed: %s: %s", type(error).__name__, error, exc_info=error)
        self.ended.set_result(FAILED)

    async def stop(self) -> None:
        """Stop the shim and the core."""
        self._unready, self._is_candidate = "the shim is stopping", False
        if self._writes is not None and not self.ended.done():
            await self._writes.drain(DRAIN)
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if self._shim is not None:
            self._shim.close()
        if self._mark is not None:
            await self._mark.remove_at_last()
        if self._election is not None:
            await self._election.release()
        await self._core.close()
        if self._connection is not None:
            await self._connection.close()

    async def report(self, green: bool) -> None:
        """Report whether the core makes progress; the readiness probe asks the core itself."""

    def reload_certificates(self) -> bool:
        """Return False: credentials are read again by themselves."""
        return False

    # -- the work -----------------------------------------------------------------------------------

    async def _run(self, connection: ApiConnection) -> None:
        server = ApiServer(connection)
        access = FirstContact(server, self._chance, self._waits)
        lists = [(resource, "") for resource in WATCHED]
        if self._options.config_maps:
            lists.append((CONFIG_MAPS, self._namespace))
        takes_part = await access.wait(lists, (self._namespace, LEASE), self._options.leader_election)
        if self._options.pod:
            mark = LeaderMark(server, self._namespace, self._options.pod, random=self._chance)
            self._mark = mark if await mark.remove() else None
        if takes_part:
            self._election = self._candidate(server)
            self._is_candidate = True
            await self._election.acquire()
            self._is_candidate = False
        try:
            await self._lead(connection, access)
        except* YunikornError as errors:
            raise errors.exceptions[0] from None

    def _waits(self, reason: str) -> None:
        self._unready = reason

    def _candidate(self, server: ApiServer) -> LeaderElection:
        clock = SystemClock()
        identity = f"{socket.gethostname()}_{os.getpid()}_{clock.now():x}"
        return LeaderElection(server, self._namespace, LEASE, identity, clock=clock, random=self._chance)

    def _leads(self) -> bool:
        """Return True while this process may write."""
        return self._election is None or self._election.holds()

    async def _lead(self, connection: ApiConnection, access: FirstContact) -> None:
        """Schedule the cluster until this is cancelled, or until this process must not lead any more."""
        self._unready = "the configuration is being read"
        async with asyncio.TaskGroup() as group:
            if self._election is not None:
                group.create_task(self._election.keep())
            if self._mark is not None:
                group.create_task(self._mark.set())
            server = ApiServer(connection, may_write=self._leads)
            events = self._events(server)
            group.create_task(events.run())
            options = self._options
            self._configuration = configuration = Configuration(
                options.check_queues, self._use, events, options.set_levels, self._use_settings
            )
            if options.config_maps:
                try:
                    await access.answered(lambda: configuration.load(server, self._namespace))
                except ConfigError:
                    await events.drain(DRAIN)
                    raise
            parts = await self._parts(connection, configuration, events, access)
            group.create_task(parts.watches.run())
            group.create_task(parts.writes.run())
            self._unready = "the objects of the cluster are being read"
            await parts.watches.synced()
            await parts.shim.workloads.prepare(parts.watches.pods())
            parts.watches.report_to(parts.shim)
            await parts.shim.start(parts.watches)
            group.create_task(parts.shim.run())
            group.create_task(parts.shim.conditions.run())
            if options.config_maps:
                group.create_task(configuration.follow())
            self._unready = ""
            _log.info("the cluster is scheduled")

    def _events(self, server: ApiServer) -> PodEvents:
        return PodEvents(
            server,
            instance=f"yunikorn-{socket.gethostname()}",
            clock=SystemClock(),
            random=self._chance,
            busy=lambda: self._writes is not None and self._writes.waiting.get(Priority.BIND, 0) > BUSY,
        )

    async def _parts(
        self, connection: ApiConnection, configuration: Configuration, events: PodEvents, access: FirstContact
    ) -> ShimParts:
        """Make the parts that watch, write and decide."""
        # Imported here because a process that waits for the API server or its lease needs none of them.
        from yunikorn_kubernetes.resource_claims.claim_objects import (
            CLAIM_RIGHTS,
            DEVICE_RESOURCES,
            DEVICE_TAINT_RULES,
        )
        from yunikorn_kubernetes.shim.shim_parts import make_parts
        from yunikorn_kubernetes.workloads.pod_groups import POD_GROUPS

        options, current = self._options, configuration.current
        settings = current.settings.service
        limit = RateLimit(max(settings.qps, 0), max(settings.burst, 1))
        limited = ApiServer(connection, rate_limit=limit, may_write=self._leads)
        self._images = POD_PREFERENCES in current.queues
        devices = await access.answered(lambda: are_served(limited, DEVICE_RESOURCES, CLAIM_RIGHTS))
        parts = make_parts(
            self._core,
            limited,
            events,
            settings,
            lambda: configuration.current if options.config_maps else None,
            readers=options.choose_readers(settings.workload_kinds, self._core.threaded.failures.reports.add),
            version=options.version,
            clock=SystemClock(),
            chance=self._chance,
            permitted=self._leads,
            pod_groups=await access.answered(lambda: is_served(limited, POD_GROUPS)),
            devices=devices,
            taint_rules=devices and await access.answered(lambda: is_served(limited, DEVICE_TAINT_RULES)),
            images=self._images,
        )
        if options.config_maps:
            parts.watches.add(CONFIG_MAPS, configuration.changed, self._namespace)
        self._shim, self._writes = parts.shim, parts.writes
        return parts

    async def _use(self, text: str) -> None:
        """Make the core use another queue configuration; raises `YunikornError` with all problems."""
        shim = self._shim
        if shim is not None and shim.is_running:
            await self._core.load_ahead(text)
            await self._core.carry_out(ReloadConfiguration(shim.rm_id, text))
            if POD_PREFERENCES in text and not self._images:
                _log.warning(
                    "the configuration has the policy %s for the first time: it counts the images of nodes"
                    " after a restart",
                    POD_PREFERENCES,
                )

    async def _use_settings(self, settings: Mapping[str, str]) -> None:
        """Make the core use other settings besides the queues."""
        shim = self._shim
        if shim is not None and shim.is_running:
            rm_id, extra = shim.rm_id, dict(settings)
            await self._core.carry_out(lambda core: core.change_settings(rm_id, extra))
