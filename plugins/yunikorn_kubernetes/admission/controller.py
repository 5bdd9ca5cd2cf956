"""Admission controller: its view of the cluster, its settings, and its life from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from yunikorn.clock import Clock
from yunikorn.errors import ConfigError, UsageError
from yunikorn_kubernetes.admission.config_map_validation import RestScheduler, review_config_map
from yunikorn_kubernetes.admission.pods import ReviewedCluster, review_pod
from yunikorn_kubernetes.admission.reviews import Request, ReviewAnswer
from yunikorn_kubernetes.admission.trust import UNCHECKED, Trust, has_secret, needed
from yunikorn_kubernetes.admission.webhook_server import WebhookHealth, WebhookServer
from yunikorn_kubernetes.admission.webhooks import Reachable, host_of, is_host
from yunikorn_kubernetes.api_server.access_reviews import denied, refused_list
from yunikorn_kubernetes.api_server.api_resources import (
    CONFIG_MAPS,
    NAMESPACES,
    PRIORITY_CLASSES,
    ApiResource,
)
from yunikorn_kubernetes.api_server.back_off import RandomSource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.api_server.reflector import ObjectChange, Reflector
from yunikorn_kubernetes.config_maps import NAMES
from yunikorn_kubernetes.objects import ConfigMap, Namespace, PriorityClass
from yunikorn_kubernetes.shim_config_maps import ClusterConfig, read_config
from yunikorn_kubernetes.shim_settings import DNS_LABEL, AdmissionSettings, ShimLogLevels, is_dns_label
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.admission")

PATIENCE = 2.0
"""Seconds to wait for a namespace that is not known yet."""
ADVICE = "see the roles in deploy/kubernetes/admission-access.yaml"
_READ: tuple[tuple[ApiResource[Any], bool], ...] = (
    (NAMESPACES, False),
    (PRIORITY_CLASSES, False),
    (CONFIG_MAPS, True),
)


@attrs.frozen
class AdmissionOptions:
    """Options of the command line."""

    namespace: str
    """Namespace of the scheduler and of its ConfigMaps."""
    host: str
    port: int
    url: str = ""
    """URL by which the API server reaches this process, for one outside of the cluster."""
    set_levels: Callable[[ShimLogLevels], object] = lambda _: None
    """Sets the levels of logs that the ConfigMaps name."""
    token_file: Path | None = None
    """File with the token to send to the scheduler; it is read for each validation."""

    def check(self) -> None:
        """Raise `UsageError` with all names that cannot be used."""
        problems = []
        if not is_dns_label(self.namespace):
            problems.append(f"--namespace {self.namespace!r} is no namespace: expected {DNS_LABEL}")
        host = host_of(self.url)
        if self.url and not is_host(host):
            problems.append(
                f"--url {self.url}: {host!r} is no address and no host name, whose parts between dots are"
                f" {DNS_LABEL}"
            )
        if problems:
            raise UsageError("\n".join(problems))


class AdmissionController:
    """One replica of the admission controller. To be created and used in one event loop."""

    def __init__(
        self, server: ApiServer, options: AdmissionOptions, *, random: RandomSource, clock: Clock
    ) -> None:
        self._options = options
        self._server = server
        self._config: ClusterConfig | None = None
        self._namespaces: Reflector[Namespace] = Reflector(server, NAMESPACES, _ignore, random=random)
        self._classes: Reflector[PriorityClass] = Reflector(server, PRIORITY_CLASSES, _ignore, random=random)
        self._config_maps: Reflector[ConfigMap] = Reflector(
            server, CONFIG_MAPS, self._config_map_changed, random=random, namespace=options.namespace
        )
        self._trust = Trust(server, self._reachable, clock, lambda: self._settings.require_validation)
        self._webhooks = WebhookServer(self._mutate, self._validate, self._health)
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve while the context lasts; yields the port.

        The webhooks are announced to the API server when this replica can answer. Raises `UsageError` if the
        API server refuses to be read or the address cannot be used, and `ApiError` if it does not answer.
        """
        await self._check_rights()
        reflectors = (self._namespaces, self._classes, self._config_maps)
        async with aiohttp.ClientSession() as self._session, _running(*(one.run for one in reflectors)):
            for one in reflectors:
                await one.synced.wait()
            self._read_settings()
            await self._trust.renew(self._webhooks.use)
            port = await self._webhooks.start(self._options.host, self._options.port)
            try:
                await self._trust.repair()
                async with _running(self._keep_trust):
                    yield port
            finally:
                await self._webhooks.stop()

    async def _check_rights(self) -> None:
        """Raise `UsageError` with everything that the API server does not let this process do."""
        own = self._options.namespace
        refused = [await refused_list(self._server, each, own if there else "") for each, there in _READ]
        # Deployments made for Apache YuniKorn have an empty secret, and no right to create one.
        rights = needed(own, creates_secret=not await has_secret(self._server, own))
        missing = [*filter(None, refused), *await denied(self._server, rights)]
        if missing:
            raise UsageError("\n".join(["the API server refuses what is needed:", *missing, ADVICE]))

    def _reachable(self) -> Reachable:
        return Reachable(self._settings.webhook_service, self._options.namespace, self._options.url)

    @property
    def _settings(self) -> AdmissionSettings:
        assert self._config is not None
        return self._config.settings.admission

    async def _keep_trust(self) -> None:
        await self._trust.keep(self._webhooks.use)

    def _health(self) -> WebhookHealth:
        problem = self._trust.problem
        if self._trust.is_expired:
            return WebhookHealth(f"the certificate has expired; {UNCHECKED}: {problem}", serves=False)
        # Webhooks that the API server calls and trusts stay ready: without them pods are not prepared.
        return WebhookHealth(f"{UNCHECKED}: {problem}" if problem else "")

    # -- settings -----------------------------------------------------------------------------------------

    def _config_map_changed(self, change: ObjectChange[ConfigMap]) -> None:
        if self._config is not None and change.object.metadata.name in NAMES:
            self._read_settings()

    def _read_settings(self) -> ClusterConfig:
        """Read the settings, and use them; those in force stay if the new ones have a problem."""
        try:
            config = read_config(self._known_maps(), current=self._config)
        except ConfigError as error:
            used = "the defaults are" if self._config is None else "the settings before stay"
            for problem in error.problems:
                _log.error("%s; %s in use", problem, used)
            config = self._config or read_config({})
        for warning in config.warnings:
            _log.warning("%s", warning)
        self._config = config
        self._options.set_levels(config.settings.logs)
        return config

    # -- reviews ------------------------------------------------------------------------------------------

    async def _mutate(self, request: Request) -> ReviewAnswer:
        name = request.effective_namespace
        namespace = self._namespaces.store.get(name) or await self._new_namespace(name)
        return review_pod(request, self._settings, ReviewedCluster(namespace, self._classes.store))

    async def _new_namespace(self, name: str) -> Namespace | None:
        """Return a namespace that the watch has not reported yet; None if it cannot be read at once."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._server.get(NAMESPACES, "", name)
        except (ApiError, TimeoutError) as error:
            _log.warning("namespace %s is not known, so its annotations do not count: %s", name, error)
            return None

    async def _validate(self, request: Request) -> ReviewAnswer:
        assert self._session is not None
        settings = self._settings
        return await review_config_map(
            request,
            self._options.namespace,
            self._known_maps(),
            RestScheduler(self._session, settings.scheduler_address, self._options.token_file),
            required=settings.require_validation,
        )

    def _known_maps(self) -> dict[str, ConfigMap]:
        store, namespace = self._config_maps.store, self._options.namespace
        found = {name: store.get(f"{namespace}/{name}") for name in NAMES}
        return {name: one for name, one in found.items() if one is not None}


def _ignore(_: object) -> None:
    """Do nothing: the store of the reflector is enough."""


@contextlib.asynccontextmanager
async def _running(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run works that never end while the context lasts."""
    tasks = BackgroundTasks(_log)
    for work in works:
        tasks.begin(work(), work.__qualname__)
    try:
        yield
    finally:
        await tasks.close()
