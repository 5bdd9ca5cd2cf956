"""Gangs of workloads: their pods are kept back until as many exist as start together.

The owner of the pods says how many that are. Then all of them are sent to the core in one update, as an
Atomic gang. A gang whose pods do not come in time is as large as the number of those that exist. Once a
member was placed, or has ended, each further pod starts by itself: a replacement never waits for a gang.

A member that is gone before the gang was placed takes the gang back from the core: the owner is read again,
and the gang is made of the pods that are there then.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable

import attrs

from yunikorn.resources import Resource, Tally, grow
from yunikorn_kubernetes import names
from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.conditions import SKIPPED
from yunikorn_kubernetes.shim.member_choices import choices, easiest_first
from yunikorn_kubernetes.shim.pod_group_conditions import PodGroupConditions
from yunikorn_kubernetes.shim.shim_cluster import AssignmentWatcher, ShimCluster
from yunikorn_kubernetes.translation.pod_applications import ApplicationTerms, is_ours, is_terminated
from yunikorn_kubernetes.translation.task_groups import ATOMIC, AnnotatedGang, AnnotatedTaskGroup
from yunikorn_kubernetes.workloads.chosen_readers import POD_GROUP
from yunikorn_kubernetes.workloads.pod_groups import TAG_DISRUPTION
from yunikorn_kubernetes.workloads.workload_readings import (
    Key,
    WorkloadReading,
    WorkloadReadings,
    gang_metadata,
)
from yunikorn_service.background import BackgroundTasks
from yunikorn_service.waiting_requests import AWAITS_VICTIMS

_log = logging.getLogger("yunikorn.kubernetes.workloads")

TIMEOUT = 30.0
"""Seconds without a further pod after which a gang is made of those that exist."""
FIRST_NOTE = 2.0
"""Seconds after which the conditions of pods say what they wait for."""
OTHER_CHOICE, SAME_CHOICE = 1.0, 1800.0
"""Seconds after which other pods of a PodGroup are chosen, because there is no room for those that were; and
after which all are tried again. In that time the gang gets the rights of one that has waited long."""
REFUSED_AGAIN = 60.0
"""Seconds after which a PodGroup is tried again that the core refuses."""
FORMING, SUBMITTED, STARTED, REFUSED = "forming", "submitted", "started", "refused"


@attrs.frozen
class Membership:
    """Application and role of a pod."""

    app_id: str = ""
    """Application of its gang; empty for the one that the pod names."""
    group: str = ""
    """Role in a gang that has not started; empty for a pod that starts by itself."""
    priority: int | None = None
    """Priority of the gang; None for that of the pod."""


BY_ITSELF = Membership()


@attrs.define(eq=False)
class FormingGang:
    """Gang of a workload with its pods that exist, also those that have ended."""

    reading: WorkloadReading
    state: str = FORMING
    pods: dict[str, Pod] = attrs.Factory(dict)
    """Latest versions by uid."""
    roles: dict[str, tuple[str, int]] = attrs.Factory(dict)
    """Role and number of each pod, as they were when the pod joined."""
    keys: set[Key] = attrs.Factory(set)
    members: dict[str, str] = attrs.Factory(dict)
    """Roles of the members that start together, by uid; empty while the gang is forming."""
    placed: set[str] = attrs.Factory(set)
    """Uids of the pods that have a node or have succeeded."""
    group: str = ""
    """PodGroup as `namespace/name`; empty for a gang that no PodGroup describes."""
    is_late: bool = False
    """True once the time for further pods is over."""
    choice: int = 0
    """Number of choices of members that had no room."""
    choices: int = 1
    """Number of choices of members that differ."""
    looks: int = 0
    """Number of times at which the gang was looked at."""
    asked: Key | None = None
    """Key under which the owner was read last for the gang."""
    is_confirmed: bool = False
    """True if the owner was read after the latest pod came."""

    @property
    def id(self) -> str:
        """Id of its application."""
        return self.reading.app_id

    @property
    def needed(self) -> int:
        """Number of pods that start together; one where each starts by itself."""
        return self.reading.gang.needed if self.reading.gang is not None else 1

    def waiting(self) -> list[Pod]:
        """Return the pods without a node, in the order of their numbers."""
        found = [pod for pod in self.pods.values() if not (pod.spec.node_name or is_terminated(pod))]
        return sorted(found, key=lambda pod: (self.number(pod), pod.metadata.name))

    def role(self, pod: Pod) -> str:
        """Return the role of a pod."""
        return self.roles[pod.metadata.uid][0]

    def number(self, pod: Pod) -> int:
        """Return the place of a pod in the order of the members."""
        return self.roles[pod.metadata.uid][1]

    def running(self) -> list[Pod]:
        """Return the pods with a node, oldest first; none of a workload whose pods start by themselves."""
        found = [pod for pod in self.pods.values() if pod.spec.node_name and not is_terminated(pod)]
        found.sort(key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name))
        return found if self.reading.gang is not None else []

    def choose(self, size: Callable[[Pod], Resource]) -> tuple[dict[str, str], int]:
        """Return the roles by uid of the pods that start together, and how many are missing.

        The `size` of pods decides where more exist than start together, and no number: small ones fit first.
        """
        gang, waiting = self.reading.gang, self.waiting()
        self.choices = 1
        if len(waiting) > self.needed:
            waiting = easiest_first(waiting, size, self.number)
            if self.group:
                known = choices(waiting, self.needed, size)
                self.choices = len(known)
                waiting = known[self.choice % self.choices]
        chosen: dict[str, str] = {}
        missing = 0
        for role in gang.roles if gang is not None else ():
            there = [one.metadata.uid for one in waiting if self.role(one) == role.name]
            chosen.update(dict.fromkeys(there[: role.needed], role.name))
            missing += max(0, role.needed - len(there))
        return chosen, missing


class WorkloadGangs(AssignmentWatcher):
    """Decides for each pod whether it waits for its gang, and in which application it is scheduled."""

    def __init__(
        self,
        cluster: ShimCluster,
        readings: WorkloadReadings,
        writes: QueuedWrites,
        events: PodEvents,
        look_at: Callable[[Iterable[Pod]], object],
        conditions: PodGroupConditions,
        *,
        timeout: float = TIMEOUT,
    ) -> None:
        """Create without gangs; `look_at` is called with pods for which the answer may have changed."""
        self._cluster, self._readings, self._writes, self._events = cluster, readings, writes, events
        self._look_at, self._conditions, self._timeout = look_at, conditions, timeout
        self._gangs: dict[str, FormingGang] = {}
        """Gangs by id of their application."""
        self._of_pod: dict[str, FormingGang] = {}
        self._unread: dict[Key, dict[str, Pod]] = {}
        """Pods by uid whose owner is being read, or whose PodGroup does not exist yet, by key."""
        self._pods_of_key: dict[Key, set[str]] = {}
        self._key_of_pod: dict[str, Key] = {}
        self._started_unread: set[Key] = set()
        """Keys of pods that had a node, or have ended, when their owner had not been read."""
        self._timers = BackgroundTasks(_log)
        cluster.watcher = self

    # -- life -------------------------------------------------------------------------------------------

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Read the owners of the pods of a cluster before it is reported."""
        await self._readings.prepare(pod for pod in pods if is_ours(pod))

    def recover_from(self, pods: Iterable[Pod]) -> None:
        """Note the gangs whose members had started before a recovery."""
        for pod in pods:
            if is_ours(pod) and (pod.spec.node_name or is_terminated(pod)):
                self.membership(pod)
        for gang in self._gangs.values():
            if gang.state == STARTED and (running := gang.running()):
                # The core counts what runs up to this size as the part that only ends as a whole.
                members = {pod.metadata.uid: gang.role(pod) for pod in running[: gang.needed]}
                self._cluster.terms[gang.id] = self._terms(gang, members)

    def clear(self) -> None:
        """Forget all gangs, before a new recovery."""
        self._timers.cancel_all()
        for known in (self._gangs, self._of_pod, self._unread, self._pods_of_key, self._key_of_pod):
            known.clear()
        self._started_unread.clear()

    def close(self) -> None:
        """End the work in the background."""
        self._timers.cancel_all()
        self._readings.close()
        self._conditions.close()

    # -- pods -------------------------------------------------------------------------------------------

    def membership(self, pod: Pod) -> Membership | str:
        """Return how a pod is scheduled, or why it waits."""
        uid = pod.metadata.uid
        gang = self._of_pod.get(uid)
        if gang is None:
            key = self._key_of_pod.get(uid) or self._readings.key_of(pod)
            if key is None:
                return BY_ITSELF
            self._key_of_pod[uid] = key
            self._pods_of_key.setdefault(key, set()).add(uid)
            reading = self._readings.known(pod, key)
            if reading is None:
                if pod.spec.node_name:
                    self._started_unread.add(key)
                    return BY_ITSELF
                # A reader may have been switched off since it was asked for the key.
                is_readable = key[0] == POD_GROUP or self._readings.reader_of(pod) is not None
                return self._await_reading(pod, key) if is_readable else BY_ITSELF
            self._unread.get(key, {}).pop(uid, None)
            role = reading.roles.role(pod)
            if not reading.has(role):
                return BY_ITSELF
            gang = self._join(pod, key, reading, role)
        gang.pods[uid] = pod
        return self._membership_in(gang, pod)

    def refused(self, app_id: str, reason: str) -> bool:
        """Let the pods of a gang start by themselves that the core refuses; return False for other gangs.

        The gang was taken from an owner who did not ask for one. A PodGroup has asked, and waits: the queues
        may change.
        """
        gang = self._gangs.get(app_id)
        if gang is None or gang.state != SUBMITTED:
            return False
        if gang.group:
            self._refuse(gang, reason)
            return True
        note = f"{gang.reading.note}: the scheduler refuses it, so each pod starts by itself: {reason}"
        first = gang.pods[next(iter(gang.members))]
        self._events.pod(first, "GangRefused", "GangScheduling", note, warning=True)
        self._withdraw(gang)
        self._start(gang)
        return True

    def _refuse(self, gang: FormingGang, reason: str) -> None:
        """Keep the pods of a PodGroup back that the core refuses, and try again later."""
        self._withdraw(gang)
        gang.state = REFUSED
        note = f"{gang.reading.note}: the scheduler refuses it: {reason}"
        self._look_at(gang.waiting())
        self._note(gang.waiting(), note)
        self.waits(gang.id, note)
        self._later(REFUSED_AGAIN, ("again", gang.id), lambda: self._try_again(gang))

    def _try_again(self, gang: FormingGang) -> None:
        if gang.state == REFUSED:
            gang.state = FORMING
            self._form(gang)

    def _withdraw(self, gang: FormingGang) -> None:
        """Take the application of a gang back from the core."""
        app = self._cluster.applications.get(gang.id)
        if app is not None:
            self._cluster.remove_application(app)
        gang.members = {}

    def _membership_in(self, gang: FormingGang, pod: Pod) -> Membership | str:
        uid, reading = pod.metadata.uid, gang.reading
        if pod.spec.node_name or is_terminated(pod):
            self._place(gang, pod)
        if uid in gang.members:
            return Membership(gang.id, gang.members[uid], reading.priority)
        if reading.gang is None:
            return Membership(gang.id, "", reading.priority)
        if gang.state == STARTED:
            # The core counts replacements, and pods beyond the needed number, among the members.
            return Membership(gang.id, gang.role(pod), reading.priority)
        return reading.note

    def _await_reading(self, pod: Pod, key: Key) -> str:
        waiting = self._unread.setdefault(key, {})
        if not waiting:
            self._readings.begin(pod, key, lambda: self._was_read(key))
        waiting[pod.metadata.uid] = pod
        if key[0] == POD_GROUP:
            note = f"its PodGroup {key[1]} does not exist"
            self._later(FIRST_NOTE, ("note", key), lambda: self._note([*waiting.values()], note))
            return note
        return f"its {key[0]} is being read"

    def _was_read(self, key: Key) -> None:
        self._look_at([*self._unread.pop(key, {}).values()])

    def group_changed(self, group: str) -> None:
        """Continue with the pods of a PodGroup that was created or deleted."""
        key = POD_GROUP, group, ""
        self._timers.cancel(("note", key))
        self._was_read(key)

    def _settle_precedence(self, pod: Pod, reading: WorkloadReading) -> None:
        ignored = gang_metadata(pod)
        if ignored:
            note = f"{ignored} of the pod is ignored, because the pod names the {reading.label}: remove one"
            self._events.pod(pod, "GangScheduling", "TaskGroupsError", note, warning=True)

    def _join(self, pod: Pod, key: Key, reading: WorkloadReading, role: str) -> FormingGang:
        gang = self._gangs.get(reading.app_id)
        if gang is None:
            gang = self._gangs[reading.app_id] = FormingGang(reading)
            gang.group = key[1] if key[0] == POD_GROUP else ""
            if reading.gang is None or reading.gang.has_started:
                self._start(gang)
        gang.keys.add(key)
        self._of_pod[pod.metadata.uid] = gang
        gang.pods[pod.metadata.uid] = pod
        gang.roles[pod.metadata.uid] = role, reading.roles.number(pod)
        if gang.group:
            self._settle_precedence(pod, reading)
        if key in self._started_unread:
            self._start(gang)
        if gang.state != STARTED:
            self._later(FIRST_NOTE, ("note", gang.id), lambda: self._note_waiting(gang))
        if gang.state == FORMING:
            self._plan(gang)
        return gang

    def _note_waiting(self, gang: FormingGang) -> None:
        """Say in the conditions of pods that are kept back what they wait for."""
        if gang.state == FORMING:
            chosen, missing = gang.choose(self._cluster.translation.resource)
            note = f"{gang.reading.note}: {len(chosen)} of {len(chosen) + missing} pods exist"
            self._note(gang.waiting(), note)
            self.waits(gang.id, note)
        elif gang.state == SUBMITTED:
            rest = (pod for pod in gang.waiting() if pod.metadata.uid not in gang.members)
            self._note(rest, f"{gang.reading.note}: the pod is one more, and starts when these have started")

    def _note(self, pods: Iterable[Pod], note: str) -> None:
        for pod in pods:
            self._writes.set_condition(PodRef.of(pod), SKIPPED, note)

    # -- forming ----------------------------------------------------------------------------------------

    def _plan(self, gang: FormingGang) -> None:
        """Look at a gang when all changes of this turn are known, and give it time for further pods."""
        gang.is_late = gang.is_confirmed = False
        self._timers.cancel(("late", gang.id))
        self._later(self._timeout, ("late", gang.id), lambda: self._be_late(gang))
        if ("look", gang.id) not in self._timers:
            self._later(0.0, ("look", gang.id), lambda: self._form(gang))

    def _later(self, seconds: float, key: tuple[str, object], act: Callable[[], object]) -> None:
        async def work() -> None:
            await (self._readings.sleep(seconds) if seconds else asyncio.sleep(0))
            self._timers.cancel(key)
            act()

        if key not in self._timers:
            self._timers.begin(work(), f"{key[0]} of {key[1]}", key=key)

    def _be_late(self, gang: FormingGang) -> None:
        """Read the owner a last time, then make the gang of the pods that exist.

        The number of a PodGroup is what its author asks for, and is waited for without an end.
        """
        if gang.group:
            return
        gang.is_late = gang.is_confirmed = True
        self._read_again(gang)

    def _read_again(self, gang: FormingGang) -> None:
        pod = next(iter(gang.waiting()), None)
        key = self._key_of_pod.get(pod.metadata.uid) if pod is not None else None
        if pod is None or key is None or gang.state != FORMING:
            return
        if gang.asked == key and self._readings.is_being_read(key):
            return
        gang.asked = key
        if gang.group or self._readings.reader_of(pod) is None:
            # No owner describes the gang, or its kind has been switched off meanwhile.
            self._form(gang)
        else:
            self._readings.begin(pod, key, lambda: self._use(gang, pod, key))

    def _use(self, gang: FormingGang, pod: Pod, key: Key) -> None:
        reading = self._readings.known(pod, key)
        if reading is not None and gang.state == FORMING:
            if reading.app_id == gang.id:
                gang.reading = reading
            else:
                # The owner does not describe a gang any more.
                self._start(gang)
            self._form(gang)

    def _form(self, gang: FormingGang) -> None:
        """Send the members of a gang to the core if they are complete, or if no more pods come."""
        if gang.state != FORMING or self._gangs.get(gang.id) is not gang:
            return
        gang.looks += 1
        if len(gang.pods) < gang.needed and not gang.is_late:
            return
        chosen, missing = gang.choose(self._cluster.translation.resource)
        if not chosen or (missing and not gang.is_late):
            return
        if gang.looks > 1 and not gang.is_confirmed:
            # The owner may want more pods, or fewer, than when it was read first.
            gang.is_confirmed = True
            self._read_again(gang)
            return
        if missing:
            note = (
                f"{gang.reading.note}: {len(chosen)} of {len(chosen) + missing} pods exist, and no more came"
                f" for {self._timeout:g} s: these start together"
            )
            first = gang.pods[next(iter(chosen))]
            self._events.pod(first, "GangIncomplete", "GangScheduling", note, warning=True)
        self._stop_timers(gang)
        gang.state, gang.members = SUBMITTED, chosen
        if len(chosen) < len(gang.pods):
            self._later(FIRST_NOTE, ("note", gang.id), lambda: self._note_waiting(gang))
        app = self._cluster.applications.get(gang.id)
        if app is not None and not app.tasks:
            # The core has not completed the run before.
            self._cluster.remove_application(app)
        self._cluster.terms[gang.id] = self._terms(gang, chosen)
        self._look_at([gang.pods[uid] for uid in chosen])

    def _terms(self, gang: FormingGang, members: dict[str, str]) -> ApplicationTerms:
        translation = self._cluster.translation
        total: Tally = {}
        counts: dict[str, int] = {}
        sizes: dict[str, Resource] = {}
        for uid, role in members.items():
            sizes[role] = resource = translation.resource(gang.pods[uid])
            counts[role] = counts.get(role, 0) + 1
            grow(total, resource)
        groups = tuple(AnnotatedTaskGroup(role, counts[role], {}, sizes[role]) for role in counts)
        made = AnnotatedGang(groups, Resource(total), style=ATOMIC)
        return ApplicationTerms(gang.id, made, self._tags(gang))

    @staticmethod
    def _tags(gang: FormingGang) -> dict[str, str]:
        reading = gang.reading
        text = reading.note if reading.gang is not None else reading.label
        roles = reading.gang.roles if reading.gang is not None else ()
        steps = {role.name: role.step for role in roles if role.step > 1}
        grows_by = {names.GANG_STEP: json.dumps(steps)} if steps else {}
        return {names.APP_TAG_WORKLOAD: text, **grows_by, **reading.tags}

    def _stop_timers(self, gang: FormingGang) -> None:
        for what in ("late", "look", "note", "again", "other"):
            self._timers.cancel((what, gang.id))

    # -- the start, and what follows --------------------------------------------------------------------

    def assigned(self, uid: str) -> None:
        """Note that a pod has a node: its gang has started."""
        gang = self._of_pod.get(uid)
        if gang is not None:
            self._place(gang, gang.pods[uid], has_node=True)

    def unassigned(self, uid: str) -> None:
        """Note that a pod is not on its node any more."""
        gang = self._of_pod.get(uid)
        if gang is not None:
            gang.placed.discard(uid)
            self._report(gang)

    def preempted(self, uid: str) -> None:
        """Note that the core ends a pod; this concerns its PodGroup if the group needs the pod."""
        gang = self._of_pod.get(uid)
        if gang is None or not gang.group:
            return
        is_whole = gang.reading.tags.get(TAG_DISRUPTION) == POD_GROUP
        if is_whole or len(gang.placed) <= gang.needed:
            name = gang.pods[uid].metadata.name
            self._conditions.disrupted(gang.group, f"pod {name} was preempted to make room")
        # The pod still has its node, but the group must not count as scheduled while its members end.
        gang.placed.discard(uid)

    def waits(self, app_id: str, message: str, *, lacks_nodes: bool = False) -> None:
        """Note why a pod of an application waits, in the condition of its PodGroup."""
        gang = self._gangs.get(app_id)
        if gang is not None and gang.group:
            self._conditions.waits(gang.group, message)
            if lacks_nodes and gang.state == SUBMITTED and gang.choices > 1:
                pause = SAME_CHOICE if gang.choice and gang.choice % gang.choices == 0 else OTHER_CHOICE
                self._later(pause, ("other", gang.id), lambda: self._choose_others(gang))

    def _choose_others(self, gang: FormingGang) -> None:
        """Send other members of a PodGroup to the core than those without room, unless these preempt."""
        tasks = (self._cluster.tasks.get(uid) for uid in gang.members)
        shown = [task.shown.kinds for task in tasks if task is not None and task.shown is not None]
        if gang.state == SUBMITTED and not any(AWAITS_VICTIMS in kinds for kinds in shown):
            self._withdraw(gang)
            gang.state, gang.choice = FORMING, gang.choice + 1
            self._look_at(gang.waiting())
            self._form(gang)

    def _place(self, gang: FormingGang, pod: Pod, *, has_node: bool = False) -> None:
        """Count a pod that has a node or has ended."""
        if pod.status.phase == "Succeeded" or ((has_node or pod.spec.node_name) and not is_terminated(pod)):
            gang.placed.add(pod.metadata.uid)
        self._start(gang)
        self._report(gang)

    def _report(self, gang: FormingGang) -> None:
        """Note in the condition of a PodGroup whether enough members have a node."""
        if not gang.group:
            return
        placed, needed = len(gang.placed), gang.needed
        if placed >= needed:
            self._conditions.scheduled(gang.group, True, f"{needed} pods have a node or have succeeded")
        elif gang.state == STARTED and gang.pods:
            note = f"{placed} of the {needed} pods that are needed have a node or have succeeded"
            self._conditions.scheduled(gang.group, False, note)

    def _start(self, gang: FormingGang) -> None:
        """Let every further pod of a gang start by itself."""
        if gang.state == STARTED:
            return
        gang.state = STARTED
        self._stop_timers(gang)
        self._cluster.terms[gang.id] = ApplicationTerms(gang.id, None, self._tags(gang))
        rest = [pod for pod in gang.waiting() if pod.metadata.uid not in gang.members]
        if rest:
            self._look_at(rest)

    def has(self, pod: Pod) -> bool:
        """Return True for a pod of a gang that exists."""
        return pod.metadata.uid in self._of_pod

    def seen(self, pod: Pod) -> None:
        """Note the latest version of a pod that is scheduled."""
        gang = self._of_pod.get(pod.metadata.uid)
        if gang is not None:
            gang.pods[pod.metadata.uid] = pod

    def ended(self, pod: Pod) -> None:
        """Note that the containers of a pod have ended; the pod still exists."""
        uid = pod.metadata.uid
        gang = self._of_pod.get(uid)
        if gang is not None:
            gang.pods[uid] = pod
            if pod.spec.node_name:
                self._place(gang, pod)

    def gone(self, pod: Pod) -> None:
        """Note that a pod does not exist any more."""
        uid = pod.metadata.uid
        key = self._key_of_pod.pop(uid, None)
        if key is None:
            return
        unread = self._unread.get(key, {})
        unread.pop(uid, None)
        if not unread:
            self._unread.pop(key, None)
        gang = self._of_pod.pop(uid, None)
        if gang is not None:
            del gang.pods[uid], gang.roles[uid]
            gang.placed.discard(uid)
            self._report(gang)
            if not gang.pods:
                self._conditions.forget(gang.group)
                self._stop_timers(gang)
                self._cluster.terms.pop(gang.id, None)
                del self._gangs[gang.id]
            elif gang.state == SUBMITTED and uid in gang.members:
                self._take_back(gang)
            elif gang.state == FORMING:
                self._read_again(gang)
        pods = self._pods_of_key[key]
        pods.discard(uid)
        if not pods:
            del self._pods_of_key[key]
            self._started_unread.discard(key)
            self._readings.forget(key)

    def _take_back(self, gang: FormingGang) -> None:
        """Withdraw a gang from the core that has lost a member before it was placed."""
        self._withdraw(gang)
        gang.state = FORMING
        self._look_at(gang.waiting())
        self._plan(gang)
        self._read_again(gang)
