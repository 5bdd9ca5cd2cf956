"""Route of plugins: what is installed, where it is used, and what failed."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence

import attrs

from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.kinds import PluginKind
from yunikorn.framework.offers import Broken, Offer
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.plugin_uses import uses_by_partition
from yunikorn_rest.answers import Answer
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.plugin_shapes import (
    BrokenPlugin,
    InstalledPlugin,
    PluginCalls,
    PluginFault,
    PluginPlaces,
    Plugins,
)
from yunikorn_service.fields import shape_like
from yunikorn_service.method_meters import MethodUse

PLACES = 10
"""Number of places that an answer names for each plugin and partition."""
FAULTS = 100
"""Number of failures that are read without a pause."""

Used = dict[tuple[str, str, type], list[PluginPlaces]]
"""Uses by kind, origin and class."""


@attrs.frozen
class Installed:
    """Objects of the core that the answer is made from; they do not change."""

    offers: tuple[Offer, ...]
    broken: tuple[Broken, ...]
    configs: tuple[tuple[str, SchedulerConfig, Registry], ...]
    """Configurations with the plugins that they may use, by the id of the resource manager."""
    faults: tuple[PluginFault, ...]


@Route("/ws/v1/plugins", Plugins)
async def plugins(call: Call) -> Answer:
    """Installed plugins, where configurations use them, their faults and counted calls."""
    return await call.json(await installed_plugins(call))


async def installed_plugins(call: Call) -> Plugins:
    """Return the installed plugins, their uses and their faults."""
    registry, metrics = call.context.registry, call.context.metrics
    calls = () if metrics is None else metrics.uses()

    def read(scheduler: Scheduler) -> Generator[None, None, Installed]:
        return (yield from read_plugins(scheduler, registry))

    installed = await call.read(read)
    # A configuration may have thousands of queues, each with policies.
    return await call.apart(lambda: shape_of(installed, calls))


def read_plugins(scheduler: Scheduler, registry: Registry) -> Generator[None, None, Installed]:
    """Return the plugins of all resource managers, and those of `registry`, with all failures."""
    offers: dict[tuple[str, str, type], Offer] = {}
    configs: list[tuple[str, SchedulerConfig, Registry]] = []
    registries = [registry]
    for status in list(scheduler.sessions()):
        in_force = scheduler.plugins(status.rm_id, in_force=True)
        configs.append((status.rm_id, scheduler.configuration(status.rm_id), in_force))
        # Plugins of a file are in force only; disabled ones are not.
        registries += [scheduler.plugins(status.rm_id), in_force]
    broken: dict[str, Broken] = {}
    for one in registries:
        for offer in one.offers():
            offers.setdefault(_key(offer), offer)
        broken.update((str(each), each) for each in one.broken)
        yield
    faults: list[PluginFault] = []
    for failure in list(scheduler.failures):
        faults.append(shape_like(PluginFault, failure, last_message=failure.last))
        if len(faults) % FAULTS == 0:
            yield
    return Installed(tuple(offers.values()), tuple(broken.values()), tuple(configs), tuple(faults))


def shape_of(installed: Installed, calls: Sequence[MethodUse]) -> Plugins:
    """Convert what the core has, and the counted calls."""
    uses = _uses_of(installed.configs)
    faults: defaultdict[str, list[PluginFault]] = defaultdict(list)
    for fault in installed.faults:
        faults[fault.plugin].append(fault)
    counted: defaultdict[tuple[str, str], list[MethodUse]] = defaultdict(list)
    for use in calls:
        counted[use.kind, use.plugin].append(use)
    offers = sorted(installed.offers, key=lambda one: (one.kind.id, one.name))
    found = tuple(_plugin(one, uses, faults[one.origin], counted[one.kind.id, one.origin]) for one in offers)
    known = {one.origin for one in offers}
    return Plugins(
        plugins=found,
        broken=tuple(shape_like(BrokenPlugin, one) for one in installed.broken),
        other_faults=tuple(one for one in installed.faults if one.plugin not in known),
    )


def _key(offer: Offer) -> tuple[str, str, type]:
    return offer.kind.id, offer.origin, offer.cls


def _uses_of(configs: Iterable[tuple[str, SchedulerConfig, Registry]]) -> Used:
    found: Used = defaultdict(list)
    for rm_id, config, plugins in configs:
        places: dict[tuple[PluginKind, str, str], list[str]] = {}
        for partition, named_use in uses_by_partition(config):
            for use in named_use.with_nested(plugins):
                places.setdefault((use.kind, use.name, partition), []).append(use.place)
        for (kind, name, partition), named in places.items():
            # The name may be that of several offers, of which the configuration chooses one. A plugin that is
            # not required may be missing, and the core's own order `weighted` is no plugin.
            with contextlib.suppress(UnknownPlugin):
                found[_key(plugins.find(kind, name))].append(
                    PluginPlaces(
                        rm_id=rm_id, partition=partition, count=len(named), places=tuple(named[:PLACES])
                    )
                )
    return found


def _plugin(
    offer: Offer, uses: Used, faults: Sequence[PluginFault], calls: Sequence[MethodUse]
) -> InstalledPlugin:
    places = tuple(uses.get(_key(offer), ()))
    return shape_like(
        InstalledPlugin,
        offer,
        kind=offer.kind.id,
        in_use=bool(places),
        uses=places,
        faults=tuple(faults),
        calls=tuple(shape_like(PluginCalls, one) for one in calls),
    )


ENDPOINTS = (plugins,)
