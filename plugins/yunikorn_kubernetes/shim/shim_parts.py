"""Parts of a shim at work, made when the process begins to schedule; a standby does without them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from yunikorn.clock import SECOND, Clock
from yunikorn_kubernetes.api_server.back_off import RandomSource
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.patterns import matches
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBinder
from yunikorn_kubernetes.shim.shim import Registration, Shim
from yunikorn_kubernetes.shim.translator import Translator
from yunikorn_kubernetes.shim.watches import Watches
from yunikorn_kubernetes.shim_config_maps import ClusterConfig
from yunikorn_kubernetes.shim_settings import ServiceSettings
from yunikorn_kubernetes.volumes.volume_binder import VolumeBinder
from yunikorn_kubernetes.workloads.chosen_readers import WorkloadReaders
from yunikorn_kubernetes.workloads.owner_objects import object_reader
from yunikorn_kubernetes.workloads.workload_readings import WorkloadReadings
from yunikorn_service.async_scheduler import AsyncScheduler


@attrs.frozen
class ShimParts:
    """Parts of a shim at work."""

    watches: Watches
    writes: QueuedWrites
    shim: Shim


def make_parts(
    core: AsyncScheduler,
    server: ApiServer,
    events: PodEvents,
    settings: ServiceSettings,
    current: Callable[[], ClusterConfig | None],
    *,
    readers: WorkloadReaders,
    version: str,
    clock: Clock,
    chance: RandomSource,
    permitted: Callable[[], bool],
    pod_groups: bool,
    devices: bool,
    taint_rules: bool,
    images: bool,
) -> ShimParts:
    """Make the parts that watch, write and decide.

    `current` returns the configuration of the ConfigMaps at each registration, None where the core has one of
    its own. `permitted` is asked before each write. With `pod_groups` the API server has PodGroups, with
    `devices` claims to devices, and with `taint_rules` DeviceTaintRules; `images` are read if a policy counts
    them.
    """
    watches = Watches(
        server,
        chance,
        pod_groups=pod_groups,
        devices=devices,
        taint_rules=taint_rules,
        device_resources=settings.device_class_resources,
        images=images,
    )
    writes = QueuedWrites(server, watches.pods_by_name, clock=clock, random=chance, permitted=permitted)
    timeout = settings.volume_bind_timeout / SECOND
    shim = Shim(
        core,
        writes,
        events,
        VolumeBinder(server, watches.volumes, random=chance, timeout=timeout),
        Translator(
            watches.references,
            watches.volumes,
            lambda below: min(int(chance.uniform(0, below)), below - 1),
            settings,
            watches.claims,
            images=images,
        ),
        clock,
        lambda: _registration(current(), settings, version),
        readings=_readings(server, watches, settings, readers),
        gang_timeout=settings.workload_gang_timeout / SECOND,
        claim_binder=ClaimBinder(server, watches.claims, random=chance, clock=clock) if devices else None,
    )
    return ShimParts(watches, writes, shim)


def _registration(config: ClusterConfig | None, settings: ServiceSettings, version: str) -> Registration:
    if config is None:
        return Registration(settings.cluster_id, version=version)
    service = config.settings.service
    return Registration(service.cluster_id, service.policy_group, config.queues, config.extra, version)


def _readings(
    server: ApiServer, watches: Watches, settings: ServiceSettings, readers: WorkloadReaders
) -> WorkloadReadings:
    if settings.disable_gang_scheduling:
        return WorkloadReadings.of_nothing()
    return WorkloadReadings(
        readers,
        object_reader(server),
        namespaces=watches.references.namespaces,
        groups=watches.pod_groups,
        bypasses=partial(matches, settings.workload_bypass_queues),
    )
