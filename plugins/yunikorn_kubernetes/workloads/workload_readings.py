"""Readings of workloads: of each pod whose owner is of a known kind, the gang to which the pod belongs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import attrs

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED
from yunikorn_kubernetes import names
from yunikorn_kubernetes.api_server.access_reviews import ROLES
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.objects import Namespace, ObjectMeta, Pod
from yunikorn_kubernetes.translation.pod_applications import (
    APP_ID_SOURCES,
    controller_of,
    generated_ids,
    is_terminated,
    queue_name,
)
from yunikorn_kubernetes.workloads.chosen_readers import POD_GROUP, WorkloadReaders, is_chosen
from yunikorn_kubernetes.workloads.owner_objects import FoundOwner, NoOwner, ReadObject, find_owner
from yunikorn_kubernetes.workloads.pod_groups import PodGroup, group_name, label_of, terms_of
from yunikorn_kubernetes.workloads.reader_calls import ReaderCalls
from yunikorn_kubernetes.workloads.workload_reader import (
    WorkloadGang,
    WorkloadReader,
    controller_reference,
)
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.kubernetes.workloads")

RETRY = 2.0
"""Seconds until an owner is read again after the API server did not answer."""
AT_ONCE = 32
"""Owners that are read at the same time before a recovery."""
LENGTH_OF_UID = 8
"""Number of characters of the uid of an owner in the id of an application."""
Key = tuple[str, str, str]
"""Kind of the owner, uid of the controller or name of the PodGroup, and the part of the owner."""


@attrs.frozen
class WorkloadReading:
    """Gang of a pod, as far as its owner tells."""

    label: str
    """Name of the owner for users, such as `Job default/train`."""
    app_id: str = ""
    """Application of the gang; empty where the pod belongs to the application that its metadata name."""
    gang: WorkloadGang | None = None
    """None if each pod starts by itself."""
    reason: str = ""
    """Reason for which there is no gang."""
    tags: Mapping[str, str] = attrs.Factory(dict)
    priority: int | None = None
    """Priority of all members; None for those of the pods."""
    roles: ReaderCalls = attrs.Factory(lambda: ReaderCalls(WorkloadReader()))
    """Reader that knows the role of a pod."""

    def has(self, role: str) -> bool:
        """Return True if a pod of this role belongs to the application."""
        return bool(self.app_id) if self.gang is None else role in [one.name for one in self.gang.roles]

    @property
    def note(self) -> str:
        """Sentence about the gang for users."""
        gang = self.gang
        if gang is None:
            return f"{self.label}: no gang, because {self.reason}"
        return f"gang of {gang.needed} pods of {self.label} ({gang.reason})"


class WorkloadReadings:
    """Readings of all pods, made when a pod of a workload is seen first, and again when a gang changes."""

    def __init__(
        self,
        readers: WorkloadReaders,
        read: ReadObject,
        *,
        namespaces: Mapping[str, Namespace] = {},
        groups: Mapping[str, PodGroup] | None = None,
        bypasses: Callable[[str], bool] = lambda _: False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Create without readings.

        `groups` are the PodGroups by `namespace/name`, None if the API server has none. `bypasses` returns
        True for a queue, as pods name it, in which nothing is recognised.
        """
        self._readers, self._read, self.sleep = readers, read, sleep
        self._namespaces, self.groups, self._bypasses = namespaces, groups, bypasses
        self._known: dict[Key, WorkloadReading] = {}
        self._reading = BackgroundTasks(_log)
        self._refused: set[str] = set()
        """Kinds of which the API server has refused to show an object."""
        self._done: dict[Key, list[Callable[[], object]]] = {}
        """Functions to call when a reading under way ends, by key."""

    @classmethod
    def of_nothing(cls) -> WorkloadReadings:
        """Return readings that recognise no kind of work."""
        return cls(WorkloadReaders(()), _read_nothing)

    def close(self) -> None:
        """End all readings under way."""
        self._reading.cancel_all()
        self._done.clear()

    def reader_of(self, pod: Pod) -> ReaderCalls | None:
        """Return the reader of a pod whose owner determines its gang; None for all other pods.

        A pod that names an application or task groups itself, or that Kueue admits, is scheduled as it says.
        """
        reader = self._readers.reader_of(pod)
        if reader is None or gang_metadata(pod) or not self._is_wanted(reader.name, pod):
            return None
        if any(name.startswith(names.KUEUE) for name in pod.metadata.labels):
            return None
        return reader if reader.recognises(pod) else None

    def has_group(self, pod: Pod) -> bool:
        """Return True for a pod whose PodGroup determines its gang."""
        return self.groups is not None and bool(group_name(pod)) and self._is_wanted(POD_GROUP, pod)

    def _is_wanted(self, name: str, pod: Pod) -> bool:
        if pod.metadata.annotations.get(names.WORKLOAD_GANG) == "false" or self._bypasses(queue_name(pod)):
            return False
        namespace = self._namespaces.get(pod.metadata.namespace)
        annotations = namespace.metadata.annotations if namespace is not None else {}
        given = annotations.get(names.NAMESPACE_WORKLOAD_KINDS, "").strip()
        entries = [one.strip() for one in given.split(",")] if given else self._readers.switched_on
        return is_chosen(name, entries)

    def key_of(self, pod: Pod) -> Key | None:
        """Return the key of the reading that applies to a pod; None for a pod without a workload."""
        if self.has_group(pod):
            return POD_GROUP, f"{pod.metadata.namespace}/{group_name(pod)}", ""
        reader = self.reader_of(pod)
        if reader is None:
            return None
        return reader.kind, controller_of(pod), reader.part(pod)

    def known(self, pod: Pod, key: Key) -> WorkloadReading | None:
        """Return the reading of a pod; None while its owner has not been read, or its PodGroup is missing."""
        if key[0] == POD_GROUP:
            group = self.groups.get(key[1]) if self.groups is not None else None
            return None if group is None else _of_group(group, pod)
        return self._known.get(key)

    def begin(self, pod: Pod, key: Key, done: Callable[[], object]) -> None:
        """Read the owner of a pod in the background, and call `done`; a PodGroup is there by itself."""
        reader = self.reader_of(pod)
        if reader is None or key[0] == POD_GROUP:
            return
        self._done.setdefault(key, []).append(done)
        if key not in self._reading:
            work = self._read_again(pod, reader, key)
            self._reading.begin(work, f"the reading of the {reader.kind} of {key[1]}", key=key)

    async def _read_again(self, pod: Pod, reader: ReaderCalls, key: Key) -> None:
        while not await self._attempt(pod, reader, key):
            await self.sleep(RETRY)
        self._reading.cancel(key)
        for done in self._done.pop(key, ()):
            done()

    async def _attempt(self, pod: Pod, reader: ReaderCalls, key: Key) -> bool:
        """Read an owner once; return False if the API server does not answer."""
        try:
            self._known[key] = await self._answer(pod, reader, key)
        except ApiError as error:
            _log.warning("the %s of pod %s/%s cannot be read: %s", reader.kind, *_place(pod), error)
            return False
        return True

    async def _answer(self, pod: Pod, reader: ReaderCalls, key: Key) -> WorkloadReading:
        label = f"{reader.kind} of {pod.metadata.namespace}/{pod.metadata.name}"
        before = self._known.get(key)
        try:
            owner = await find_owner(pod, reader, self._read, self._readers.plurals)
            label = _label(reader, owner.meta)
            if any(name.startswith(names.KUEUE) for name in owner.meta.labels):
                return WorkloadReading(label, reason="Kueue admits it")
            found = reader.gang(owner.content, pod)
        except NoOwner as error:
            if error.is_refused and reader.kind not in self._refused:
                self._refused.add(reader.kind)
                _log.warning("pods of each %s start by themselves: %s; see %s", reader.kind, error, ROLES)
            # The sizes of an owner that is deleted before its pods are those that were read last.
            return before if before is not None else WorkloadReading(label, reason=str(error))
        except ApiError:
            raise
        except CONTAINED as error:
            _log.warning("%s cannot be read: %s", label, describe_error(error))
            return WorkloadReading(label, reason=f"its object is not as expected: {describe_error(error)}")
        if isinstance(found, str):
            return WorkloadReading(label, reason=found)
        if found.needed < 2:
            return WorkloadReading(label, reason="one pod is needed to start")
        return WorkloadReading(label, _app_id(reader, owner, key[2]), found, roles=reader)

    def is_being_read(self, key: Key) -> bool:
        """Return True while the owner of a key is being read."""
        return key in self._reading

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Read the owners of all pods that have not ended, so that a recovery finds them."""
        wanted: dict[Key, tuple[Pod, ReaderCalls]] = {}
        for pod in pods:
            reader = None if is_terminated(pod) else self.reader_of(pod)
            key = self.key_of(pod) if reader is not None else None
            if reader is not None and key is not None and key[0] != POD_GROUP:
                wanted.setdefault(key, (pod, reader))
        entries = iter(wanted.items())

        async def work() -> None:
            for key, (pod, reader) in entries:
                await self._attempt(pod, reader, key)

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(wanted)))))

    def forget(self, key: Key) -> None:
        """Drop a reading that no pod needs any more."""
        self._reading.cancel(key)
        self._done.pop(key, None)
        self._known.pop(key, None)


async def _read_nothing(*_: object) -> None:
    return None


def gang_metadata(pod: Pod) -> str:
    """Return the name of metadata in which a pod names its gang or application itself; empty without any."""
    meta = pod.metadata
    for name in (names.TASK_GROUPS, names.TASK_GROUP_NAME):
        if name in meta.annotations:
            return f"the annotation {name}"
    places = {"label": meta.labels, "annotation": meta.annotations}
    generated = ("", *generated_ids(meta.namespace))
    for place, name in APP_ID_SOURCES:
        if places[place].get(name, "") not in generated:
            return f"the {place} {name}"
    return ""


def _label(reader: ReaderCalls, owner: ObjectMeta) -> str:
    """Return the name of an owner for users, with that of the object which has made it."""
    above = controller_reference(owner.owner_references)
    made_by = f" of {above.kind} {above.name}" if above is not None else ""
    return f"{reader.kind} {owner.namespace}/{owner.name}{made_by}"


def _app_id(reader: ReaderCalls, owner: FoundOwner, part: str) -> str:
    parts = (reader.kind.lower(), owner.meta.namespace, owner.meta.name, part, owner.meta.uid[:LENGTH_OF_UID])
    return "-".join(filter(None, parts))


def _of_group(group: PodGroup, pod: Pod) -> WorkloadReading:
    meta: ObjectMeta = group.metadata
    terms = terms_of(group)
    app_id = f"podgroup-{meta.namespace}-{meta.name}-{meta.uid[:LENGTH_OF_UID]}"
    gang = terms.gang
    reason = "" if gang is not None else "its policy is basic"
    return WorkloadReading(label_of(group), app_id, gang, reason, terms.tags, terms.priority)


def _place(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
