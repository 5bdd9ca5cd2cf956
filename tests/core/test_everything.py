"""Random histories of everything an RM can send: accounting and bounds hold, no ask is lost or overlooked."""

from __future__ import annotations

import os
import sys
from typing import Any

import attrs
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.core.book_keepers import check_books
from tests.core.doorkeepers import check_holds, check_placed
from tests.core.everything import (
    AMOUNTS,
    APPS,
    ASKS,
    ATTRIBUTES,
    CAPACITIES,
    GROUPS,
    KEYS,
    NODES,
    STOPPABLE,
    TASKS,
    configurations,
    starting,
)
from tests.core.partition_checks import (
    QueuePosition,
    check_bounds,
    check_empty,
    check_partition_accounting,
    check_places,
    check_starts,
    check_victims,
    closed_queues,
    is_wanted,
    may_go_on,
    usage_and_bounds,
)
from tests.core.predicates import plugins
from tests.core.strict import StrictRM, Submitted, replay
from tests.core.victim_choosers import check_unprotected
from tests.example_counts import examples
from yunikorn.accounting.partition import Partition
from yunikorn.clock import SECOND
from yunikorn.errors import ConfigError
from yunikorn.explain.explanations import POSITION, first_reasons
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    NewNodeInfo,
    NodeAction,
    TerminationType,
    UserGroupInformation,
)
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource
from yunikorn.scheduling.user_groups import FORCE_TAG
from yunikorn.states import STOPPED

Drawn = dict[str, Any]
CONFIRMED = [
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
]


class Everything(RuleBasedStateMachine):
    """An RM that sends valid and invalid messages at random, and checks the whole partition after each."""

    start = starting(configurations())

    def begin(self, config: str, *, reserving: bool, eager: bool) -> None:
        """Create the RM and the scheduler; with `eager`, schedule after every step."""
        self.eager = eager
        self.config = config
        self.timeouts = Timeouts(reservation=2 * SECOND if reserving else None, gang_patience=60 * SECOND)
        self.rm = StrictRM(config, plugins(), self.timeouts)
        self.made = self.submitted = 0
        self.resized = False
        self._watch_victims()

    def _watch_victims(self) -> None:
        evictor = self.rm.at_work().preemption._evictor
        evict = evictor.evict

        def watched(victims: Any, message: str, event: str, ask: Any = None, node: Any = None) -> None:
            check_victims(victims, ask, evictor.promised())
            check_unprotected(self.rm.at_work(), victims)
            evict(victims, message, event, ask, node)

        evictor.evict = watched  # type: ignore[method-assign]

    @property
    def partition(self) -> Partition:
        """Objects of the partition."""
        return self.rm.at_work().partition

    # -- applications -----------------------------------------------------------------------------------

    def _submit(self, app: Drawn, app_id: str = "") -> str:
        if not app_id:
            self.submitted += 1
            app_id = f"app{self.submitted}"
        known = app_id in self.rm.apps
        size = Resource(memory=app["size"] * app["each"]) if app["style"] else Resource()
        request = AddApplicationRequest(
            app_id, app["queue"], "", UserGroupInformation(app["user"], GROUPS[app["user"]]),
            {FORCE_TAG: "true"} if app["forced"] else {},
            app["limit"] * 1000, size, app["style"],
        )  # fmt: skip
        if not known:
            self.rm.apps[app_id] = Submitted(size if app["style"] == "Atomic" else None)
        self.rm.update(new_applications=[request])
        if known or app_id not in self.rm.apps or not app["style"]:
            return app_id
        for number in range(app["size"]):
            drawn = {"key": f"m{number}", "amount": {"memory": app["each"]}, "task": TASKS[0]}
            self._ask(app_id, {**drawn, "placeholder": app["style"] != "Atomic"})
        return app_id

    @rule(app=APPS, asks=st.lists(ASKS, max_size=3))
    def submit(self, app: Drawn, asks: list[Drawn]) -> None:
        self.submit_with(app, asks)

    def submit_with(self, app: Drawn, asks: list[Drawn]) -> None:
        """Submit a new application and its asks."""
        app_id = self._submit(app)
        for ask in asks:
            self._ask(app_id, ask)

    @rule(app=APPS, data=st.data())
    def submit_again(self, app: Drawn, data: st.DataObject) -> None:
        self._submit(app, f"app{data.draw(st.integers(1, self.submitted))}")

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data())
    def remove_app(self, data: st.DataObject) -> None:
        self._remove_app(self._draw_app(data))

    def _remove_app(self, app_id: str) -> None:
        self.rm.remove_app(app_id)
        self.rm.forget(app_id)

    def _draw_app(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(self.rm.alive())))

    # -- asks -------------------------------------------------------------------------------------------

    def _ask(self, app_id: str, ask: Drawn) -> None:
        rm, key, count = self.rm, ask["key"], ask.get("count", 1)
        promised = rm.promised(app_id, key)
        before = len(rm.responses)
        wanted = rm.wanted[app_id, key]
        rm.wanted[app_id, key] = count + promised
        rm.update(
            asks=[
                AllocationAsk(
                    key, app_id, "", Resource(ask["amount"]), count, ask.get("priority", 0), "",
                    ask.get("limit", 0) * 1000, dict(ask.get("tags", {})), ask.get("task", ""),
                    ask.get("placeholder", False), ask.get("originator", False), ask.get("policy"),
                )
            ]
        )  # fmt: skip
        if any(response.rejected_allocations for response in rm.responses[before:]):
            rm.wanted[app_id, key] = wanted

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data(), asks=st.lists(ASKS, min_size=1, max_size=3))
    def ask(self, data: st.DataObject, asks: list[Drawn]) -> None:
        for ask in asks:
            self._ask(self._draw_app(data), ask)

    @precondition(lambda self: self._gangs())
    @rule(data=st.data(), count=st.integers(1, 3), memory=st.sampled_from([1, 1, 2, 3]), tags=ASKS)
    def ask_in_place(self, data: st.DataObject, count: int, memory: int, tags: Drawn) -> None:
        """Send real tasks for placeholders that run."""
        app_id = data.draw(st.sampled_from(self._gangs()))
        drawn = {"key": tags["key"], "count": count, "amount": {"memory": memory}, "task": TASKS[0]}
        self._ask(app_id, {**drawn, "tags": tags["tags"], "limit": tags["limit"]})

    def _gangs(self) -> list[str]:
        return [app.id for app in self.partition.applications.values() if app.gang and app.gang.placeholders]

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data(), key=st.sampled_from(["", *KEYS]))
    def release_ask(self, data: st.DataObject, key: str) -> None:
        self.rm.release_ask(self._draw_app(data), key)

    # -- allocations ------------------------------------------------------------------------------------

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), count=st.integers(1, 3))
    def release(self, data: st.DataObject, count: int) -> None:
        for _ in range(min(count, len(self.rm.running))):
            one = self._draw_running(data)
            self.rm.release(one.application_id, one.uuid)
            assert one.uuid not in self.rm.running

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data())
    def fail_to_start(self, data: st.DataObject) -> None:
        self.rm.fails_to_start(self._draw_running(data))

    def _draw_running(self, data: st.DataObject) -> Allocation:
        return self.rm.running[data.draw(st.sampled_from(list(self.rm.running)))]

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data(), key=st.sampled_from(["", *KEYS, "m0"]))
    def release_by_key(self, data: st.DataObject, key: str) -> None:
        """Release by key, which ends the allocations of the key and withdraws its pending ask."""
        app_id = self._draw_app(data)
        held = [one for one in self.rm.running.values() if one.application_id == app_id]
        asked = any(ask == key for ask in self.partition.applications[app_id].asks)
        self.rm.unknown_releases = int(
            bool(key) and not asked and key not in [one.allocation_key for one in held]
        )
        self.rm.drop_asks(app_id, key)
        self.rm.release(app_id, "", key)
        assert not self.rm.unknown_releases
        left = [one for one in self.rm.running.values() if one.application_id == app_id]
        assert not [one for one in left if one.allocation_key == key or not key]

    @precondition(lambda self: self.rm.evicted)
    @rule(data=st.data(), count=st.integers(1, 4), by_key=st.integers(0, 4), twice=st.integers(0, 4))
    def confirm(self, data: st.DataObject, count: int, by_key: int, twice: int) -> None:
        before = self._usage_and_bounds()
        for _ in range(min(count, len(self.rm.evicted))):
            if not self.rm.evicted:
                break
            reported = self.rm.evicted[data.draw(st.sampled_from(list(self.rm.evicted)))]
            self._confirm(reported, by_key=not by_key)
            if not twice:
                self.rm.ends(
                    reported.application_id, reported.allocation_key, reported.termination_type, reported.uuid
                )
        if not self.resized:
            check_bounds(before, self._usage_and_bounds())

    def _usage_and_bounds(self) -> QueuePosition:
        return usage_and_bounds(self.partition)

    def _confirm(self, reported: AllocationRelease, *, by_key: bool = False) -> None:
        uuid = "" if by_key else reported.uuid
        self.rm.ends(reported.application_id, reported.allocation_key, reported.termination_type, uuid)

    @precondition(lambda self: self.rm.evicted)
    @rule()
    def confirm_all(self) -> None:
        for reported in list(self.rm.evicted.values()):
            if reported.uuid in self.rm.evicted:
                self._confirm(reported)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), termination=st.sampled_from(CONFIRMED))
    def end_without_request(self, data: st.DataObject, termination: TerminationType) -> None:
        """Report the end of an allocation whose release was not requested, or with another termination."""
        one = self._draw_running(data)
        self.rm.ends(one.application_id, one.allocation_key, termination, one.uuid)

    @rule(termination=st.sampled_from(CONFIRMED), app_id=st.sampled_from(["app1", "nobody"]))
    def end_unknown(self, termination: TerminationType, app_id: str) -> None:
        self.rm.ends(app_id, "k0", termination, "nothing#0")

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), amount=AMOUNTS, tags=st.sampled_from([{}, {"label": "a"}, {"label": "b"}]))
    def resize(self, data: st.DataObject, amount: dict[str, int], tags: dict[str, str]) -> None:
        one = self._draw_running(data)
        self.resized = self.resized or one.placeholder
        changed = Allocation(one.allocation_key, one.application_id, one.uuid, one.node_id, Resource(amount))
        changed.allocation_tags = tags
        before = len(self.rm.responses)
        self.rm.update(allocations=[changed])
        refused = [one for reported in self.rm.responses[before:] for one in reported.rejected_allocations]
        # A stopped partition accepts no ask.
        assert bool(refused) == (self.partition.state == STOPPED)
        if not refused:
            self.rm.running[one.uuid] = attrs.evolve(one, resource_per_alloc=Resource(amount))

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data(), node_id=st.sampled_from(NODES), amount=AMOUNTS, task=st.sampled_from(["", *TASKS]),
          key=st.sampled_from(KEYS), placeholder=st.booleans())  # fmt: skip
    def place(
        self,
        data: st.DataObject,
        node_id: str,
        amount: dict[str, int],
        task: str,
        key: str,
        placeholder: bool,
    ) -> None:
        """Report an allocation that the RM has placed itself."""
        self._report(self._own(self._draw_app(data), node_id, amount, task, key, placeholder))

    def _own(
        self, app_id: str, node_id: str, amount: dict[str, int], task: str, key: str, placeholder: bool
    ) -> Allocation:
        self.made += 1
        uuid = f"own#{self.made}"
        made = Allocation(key, app_id, uuid, node_id, Resource(amount))
        made.task_group_name, made.placeholder = task, placeholder
        ask = self.partition.applications[app_id].asks.get(key)
        self.rm.own[uuid] = ask is not None and is_wanted(ask)
        self.rm.sizes[uuid] = made.resource_per_alloc
        return made

    def _report(self, made: Allocation) -> None:
        self.rm.update(allocations=[made])

    @rule(key=st.sampled_from(KEYS), node_id=st.sampled_from(NODES), memory=st.integers(0, 3),
          tags=st.sampled_from([{}, {"port": "80"}]))  # fmt: skip
    def put_foreign(self, key: str, node_id: str, memory: int, tags: dict[str, str]) -> None:
        tags = {"foreign": "default", **tags}
        pod = Allocation(key, "", "", node_id, Resource(memory=memory), allocation_tags=tags)
        self.rm.update(allocations=[pod])

    @rule(key=st.sampled_from(KEYS))
    def release_foreign(self, key: str) -> None:
        foreign = key in [one.key for one in self.partition.foreign]
        apps = self.partition.applications.values()
        runs = any(one.key == key for app in apps for one in app.allocations.values())
        self.rm.unknown_releases = int(not foreign and not runs)
        before = len(self.rm.responses)
        self.rm.release(app_id="", key=key)
        assert not self.rm.unknown_releases
        refused = [one for reported in self.rm.responses[before:] for one in reported.rejected_allocations]
        assert bool(refused) == (runs and not foreign)

    # -- nodes --------------------------------------------------------------------------------------------

    @rule(node_id=st.sampled_from(NODES), capacity=CAPACITIES, attributes=ATTRIBUTES)
    def add_node(self, node_id: str, capacity: dict[str, int], attributes: dict[str, str]) -> None:
        self._add_node(NewNodeInfo(node_id, attributes, Resource(capacity)))

    def _add_node(self, new: NewNodeInfo) -> bool:
        before = len(self.rm.responses)
        known = new.node_id in self.rm.nodes
        self.rm.nodes[new.node_id] = None
        self.rm.update(new_schedulable_nodes=[new])
        taken = any(response.accepted_nodes for response in self.rm.responses[before:])
        if not taken and not known:
            del self.rm.nodes[new.node_id]
        return taken

    @precondition(lambda self: self.rm.apps)
    @rule(data=st.data(), capacity=CAPACITIES, amount=AMOUNTS, task=st.sampled_from(["", *TASKS]),
          key=st.sampled_from(KEYS), placeholder=st.booleans())  # fmt: skip
    def recover(
        self, data: st.DataObject, capacity: dict[str, int], amount: dict[str, int], task: str, key: str,
        placeholder: bool,
    ) -> None:  # fmt: skip
        """Register a node with a running allocation."""
        node_id = data.draw(st.sampled_from(NODES))
        if node_id in self.rm.nodes:
            return
        app_id = self._draw_app(data)
        made = self._own(app_id, node_id, amount, task, key, placeholder)
        self.rm.running[made.uuid] = made
        before = len(self.rm.responses)
        self._add_node(NewNodeInfo(node_id, {}, Resource(capacity), existing_allocations=[made]))
        reported = self.rm.responses[before:]
        if node_id not in self.rm.nodes or any(response.rejected_allocations for response in reported):
            del self.rm.running[made.uuid]
        elif task:
            self.rm.apps[app_id].atomic = None

    @rule(
        node_id=st.sampled_from(NODES),
        capacity=CAPACITIES,
        occupied=st.integers(0, 2),
        which=st.integers(0, 2),
    )
    def change_node(self, node_id: str, capacity: dict[str, int], occupied: int, which: int) -> None:
        if which:
            self.rm.change_node(node_id, capacity=capacity)
        else:
            self.rm.change_node(node_id, occupied={"memory": occupied})

    @rule(node_id=st.sampled_from(NODES), attributes=ATTRIBUTES)
    def relabel_node(self, node_id: str, attributes: dict[str, str]) -> None:
        self.rm.change_node(node_id, attributes=attributes)

    @rule(
        node_id=st.sampled_from(NODES),
        action=st.sampled_from([NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE]),
    )
    def drain_or_resume(self, node_id: str, action: NodeAction) -> None:
        self.rm.change_node(node_id, action)

    @rule(node_id=st.sampled_from(NODES), drain=st.booleans())
    def drain_by_operator(self, node_id: str, drain: bool) -> None:
        if node_id not in self.partition.nodes:
            return
        if drain:
            self.rm.scheduler.drain_node("rm", "default", node_id)
        else:
            self.rm.scheduler.undrain_node("rm", "default", node_id)

    @rule(node_id=st.sampled_from(NODES))
    def decommission(self, node_id: str) -> None:
        self.rm.change_node(node_id, NodeAction.DECOMMISSION)
        self.rm.nodes.pop(node_id, None)

    # -- configuration, switches, time --------------------------------------------------------------------

    @rule(config=configurations())
    def reload(self, config: str) -> None:
        try:
            self.rm.reload(config)
        except ConfigError as error:
            if "cannot change its type" not in str(error):
                raise

    @rule(path=st.sampled_from(STOPPABLE), stop=st.sampled_from([True, False, False]))
    def switch_queue(self, path: str, stop: bool) -> None:
        queue = self.partition.queue(path)
        if queue is None or (not stop and queue.settings.stopped) or queue.state == "Draining":
            return
        if stop:
            self.rm.scheduler.stop_queue("rm", "default", path)
        else:
            self.rm.scheduler.start_queue("rm", "default", path)

    @rule(stop=st.sampled_from([True, False, False, False]))
    def switch_partition(self, stop: bool) -> None:
        if stop:
            self.rm.scheduler.stop_partition("rm", "default")
        else:
            self.rm.scheduler.start_partition("rm", "default")

    @rule(seconds=st.sampled_from([1, 3, 12, 31, 61]))
    def pass_time(self, seconds: int) -> None:
        self.rm.pass_time(seconds)

    @rule()
    def pass_to_timer(self) -> None:
        due = self.rm.scheduler.next_timer()
        if due is not None and due < self.rm.clock.now() + 400 * SECOND:
            self.rm.clock.set(max(due, self.rm.clock.now()))
            self.rm.scheduler.fire_timers()

    # -- decisions ----------------------------------------------------------------------------------------

    @rule(most=st.integers(1, 3))
    def schedule_some(self, most: int) -> None:
        self._schedule(most)

    @rule()
    def schedule_all(self) -> None:
        self._schedule(None)

    def _schedule(self, most: int | None) -> int:
        before, closed = self._usage_and_bounds(), closed_queues(self.partition)
        reported, running = len(self.rm.responses), may_go_on(self.partition)
        held = {one.uuid for hold in self.partition.held_placements for one in hold.members}
        made = self.rm.schedule(most)
        check_bounds(before, self._usage_and_bounds())
        self._check_starts(running)
        for response in self.rm.responses[reported:]:
            check_places(self.rm.at_work(), response.new_allocations, closed, held)
        if most is None:
            self._has_decided_all()
            self.no_placeable_ask_is_pending()
        return len(made)

    def _has_decided_all(self) -> None:
        """Assert that another call at the same time finds nothing to decide or to report."""
        reported = len(self.rm.responses)
        self.rm.at_work()
        assert self.rm.scheduler.schedule() == 0, "the call before stopped early"
        assert self.rm.responses[reported:] == [], "the call before reported too little"

    def _check_starts(self, before: dict[str, bool]) -> None:
        check_starts(before, self.partition)

    def no_placeable_ask_is_pending(self) -> None:
        """Assert that each pending ask has a reason to wait, and each reservation a pending ask."""
        stopped = "Stopped" in (self.partition.state, self.partition.queues.root.state)
        assert stopped or not self.partition.accounting.node_reservations.inheritable
        for ask, _, reason in first_reasons(self.rm.at_work()):
            assert reason is not POSITION, f"{ask} could be placed"

    @invariant()
    def invariants_hold(self) -> None:
        if hasattr(self, "rm") and hasattr(self, "submitted"):
            if self.eager:
                self.schedule_all()
            check_partition_accounting(self.rm)
            check_books(self.rm.at_work())
            check_holds(self.rm.at_work())
            check_placed(self.rm.at_work(), self.rm.responses, self.rm.own)
            self.rm.responses.clear()

    # -- the end ------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if hasattr(self, "submitted") and sys.exception() is None:
            self.rm.responses.clear()
            self._end_everything()
            again = replay(self.rm.recorded, plugins(), self.timeouts)
            assert again == self.rm.all_said, "told the same, another scheduler answers otherwise"

    def _end_everything(self) -> None:
        rm = self.rm
        rm.scheduler.start_partition("rm", "default")
        rm.scheduler.start_queue("rm", "default", "root")
        self._schedule(None)
        self._becomes_idle()
        for one in list(rm.running.values()):
            if one.uuid in rm.running and not one.placeholder:
                rm.release(one.application_id, one.uuid)
        check_partition_accounting(rm)
        for app_id in list(rm.apps):
            self._remove_app(app_id)
        rm.schedule()
        check_partition_accounting(rm)
        assert rm.running == {}
        assert rm.evicted == {}
        assert not any(rm.wanted.values())
        check_empty(self.partition)
        assert not list(rm.at_work().preemption._evictor.promised())
        rm.pass_time(4 * 24 * 3600)
        assert rm.scheduler.next_timer() is None
        assert self.partition.ended == {}

    def _becomes_idle(self) -> None:
        """Assert that scheduling ends, and that reconsidering all objects finds no further decision."""
        rm, at = self.rm, self.rm.at_work()
        for _ in range(100):
            made = self._schedule(None)
            reported = len(rm.evicted)
            self.confirm_all()
            if not (made or reported):
                rm.pass_time(31)
                if not self._schedule(None) and not rm.evicted:
                    break
        else:
            raise AssertionError("work displaces work without an end")
        if any(node.reservations for node in at.partition.nodes.values()):
            # Reconsideration drops reservations of asks that a quota has stopped since.
            return
        at.orders.replace(at.orders.policies, at.orders.predicates)
        at.partition.reconsider()
        config = at.config.preemption
        at.preemption.reconfigure(at.preemption.quotas(config), config, at.preemption.policy)
        reported = len(rm.all_said)
        assert self._schedule(None) == 0, "this was overlooked"
        assert rm.evicted == {}, "this was overslept"
        rm.all_said[reported:] = []


EXAMPLES = examples(25)
STEPS = int(os.environ.get("YUNIKORN_STEPS", "40"))

TestEverything = Everything.TestCase
TestEverything.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
)
