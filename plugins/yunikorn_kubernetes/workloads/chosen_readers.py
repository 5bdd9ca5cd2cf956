"""The workload readers of a process: which one reads which kind of owner."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from yunikorn.clock import stopwatch
from yunikorn.errors import UnknownPlugin, UsageError, YunikornError
from yunikorn.framework.kinds import WORKLOAD_READER
from yunikorn.framework.offers import Offer
from yunikorn.framework.registry import DISTRIBUTION, Registry
from yunikorn_kubernetes.workloads.reader_calls import ReaderCalls, Report
from yunikorn_kubernetes.workloads.workload_reader import (
    WorkloadReader,
    api_group,
    controller_reference,
)

if TYPE_CHECKING:
    from yunikorn_kubernetes.objects import Pod

_log = logging.getLogger("yunikorn.kubernetes.workloads")

SETTING = "service.workloadKinds"
ALL, NONE, POD_GROUP = WORKLOAD_READER.core_names
"""Words of the settings: all kinds, no kind, and the gangs that pods name themselves."""


class WorkloadReaders:
    """Readers by the owners that they read, and the names of those that are switched on."""

    def __init__(self, readers: Iterable[ReaderCalls], switched_on: Collection[str] = (ALL,)) -> None:
        """Take readers of which no two read one kind of owner."""
        self._by_place = {reader.place: reader for reader in readers}
        self._by_label = {one.name_label: one for one in self._by_place.values() if one.name_label}
        self.switched_on = switched_on
        """Entries of the setting, as far as they do not leave readers out."""

    @property
    def plurals(self) -> Mapping[tuple[str, str], str]:
        """Names of the resources by API group and kind."""
        return {place: reader.plural for place, reader in self._by_place.items()}

    def reader_of(self, pod: Pod) -> ReaderCalls | None:
        """Return the reader of the workload that a pod belongs to; None for other pods.

        A label of the pod is followed rather than its controller: the Jobs of a JobSet belong to the JobSet.
        """
        controller = controller_reference(pod.metadata.owner_references)
        if controller is None:
            return None
        labels = pod.metadata.labels
        found = next((reader for label, reader in self._by_label.items() if label in labels), None)
        return found or self._by_place.get((api_group(controller.api_version), controller.kind))


def is_chosen(name: str, entries: Collection[str]) -> bool:
    """Return True if a setting such as `all, -Job` has a name."""
    return f"-{name}" not in entries and (name in entries or ALL in entries)


def choose_readers(
    registry: Registry, entries: Collection[str], report: Report, now: Callable[[], int] = stopwatch
) -> WorkloadReaders:
    """Return the readers of a registry, as the setting `service.workloadKinds` chooses among them.

    Of several readers for one kind of owner, the one that the setting names is used, else the default one.
    Raises `UsageError` with all names that no reader has, and all kinds for which several readers remain.
    """
    problems: list[str] = []
    named: list[Offer] = []
    left_out: list[Offer] = []
    words = []
    for entry in entries:
        name = entry.removeprefix("-")
        if name in WORKLOAD_READER.core_names:
            words.append(entry)
            continue
        try:
            (left_out if entry != name else named).append(registry.find(WORKLOAD_READER, name))
        except UnknownPlugin as error:
            problems.append(str(error))
    offers = [offer for offer in registry.offers(WORKLOAD_READER) if offer not in left_out]
    made: list[tuple[Offer, WorkloadReader]] = []
    for offer in offers:
        try:
            if not _gives_way(offer, offers, named):
                made.append((offer, registry.make(WORKLOAD_READER, registry.reference(offer), {})))
        except UsageError as error:
            problems.append(str(error))
        except YunikornError as error:
            report(offer.origin, "making it", error)
            if offer in named:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(f"{SETTING}: {problem}" for problem in dict.fromkeys(problems)))
    times = Counter(offer.name for offer, _ in made)
    names = {offer: offer.name if times[offer.name] == 1 else registry.reference(offer) for offer, _ in made}
    readers = [ReaderCalls(reader, names[offer], offer.origin, report, now) for offer, reader in made]
    return WorkloadReaders(readers, [*words, *(names[offer] for offer in named)])


def _gives_way(offer: Offer, offers: Collection[Offer], named: Collection[Offer]) -> bool:
    """Return True if another reader goes before `offer`. Raises `UsageError` if that is not determined."""
    rivals = [one for one in offers if _overlap(one, offer)]
    first = [one for one in rivals if one in named] or [one for one in rivals if _is_default(one)] or rivals
    objects = f"{offer.cls.kind} of {offer.cls.group}" if offer.cls.group else offer.cls.kind
    if len(first) > 1:
        origins = " and ".join(one.origin for one in first)
        raise UsageError(
            f"{objects} is read by {origins}: name one of them, as NAME or NAME@DISTRIBUTION, or leave out"
            " the others, as -NAME or -NAME@DISTRIBUTION"
        )
    if first != [offer]:
        what = (
            "workload reader %s is not used: %s reads %s as well, and goes before it unless %s says otherwise"
        )
        _log.info(what, offer.origin, first[0].origin, objects, SETTING)
    return first != [offer]


def _overlap(one: Offer, other: Offer) -> bool:
    """Return True if two readers would both read the owners of some pod."""
    by_label = bool(one.cls.name_label) and one.cls.name_label == other.cls.name_label
    return by_label or (one.cls.group, one.cls.kind) == (other.cls.group, other.cls.kind)


def _is_default(offer: Offer) -> bool:
    return offer.distribution == DISTRIBUTION
