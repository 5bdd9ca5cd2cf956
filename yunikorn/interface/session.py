"""A resource manager's session: its configuration, its partitions, its callback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from yunikorn.errors import ConfigError, OptionError, PluginError, Problem, UnknownPlugin
from yunikorn.interface.delivery import collect
from yunikorn.interface.intake import DEFAULT_PARTITION, Intake
from yunikorn.interface.messages import ContainerSchedulingState, UpdateContainerSchedulingStateRequest
from yunikorn.interface.sinks import Sinks
from yunikorn.objects.journal import Journal
from yunikorn.objects.outbox import Outbox
from yunikorn.scheduling.partition_scheduler import PartitionScheduler
from yunikorn.scheduling.reload import Reload
from yunikorn.states import SESSION

if TYPE_CHECKING:
    from yunikorn.config.schema import PartitionConfig, SchedulerConfig
    from yunikorn.interface.messages import UpdateRequest, UpdateResponse
    from yunikorn.objects.environment import Environment
    from yunikorn.objects.node import Node
    from yunikorn.registry import Registry
    from yunikorn.scheduling.faults import FaultLog


class Callback(Protocol):
    """What a resource manager implements."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take in what the scheduler has to say."""
        ...


@runtime_checkable
class StateCallback(Protocol):
    """What a resource manager implements besides if it wants to know how its requests fare."""

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """A request fares otherwise than before; the hint for an autoscaler."""
        ...


class Session:
    """One resource manager and everything of it."""

    def __init__(
        self,
        rm_id: str,
        callback: Callback,
        config: SchedulerConfig,
        registry: Registry,
        environment: Environment,
        faults: FaultLog,
    ) -> None:
        self.rm_id = rm_id
        self.callback = callback
        self._state_callback = callback if isinstance(callback, StateCallback) else None
        self.config = config
        self.state = SESSION.initial
        self._registry = registry
        self._environment, self._faults = environment, faults
        self.stray = Outbox()
        """What has to be said about things of no partition of this RM."""
        enabled = registry.without(config.disabled)
        self.sinks = Sinks(environment.clock, faults)
        outlets = self.sinks.make(config.sinks, enabled)
        self._partitions: dict[str, PartitionScheduler] = {
            partition.name: self._make(partition, enabled) for partition in config.partitions
        }
        self.sinks.use(outlets)
        self._listen()
        self._intake = Intake(self)
        SESSION.fire(self, "register")

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"resource manager {self.rm_id}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine; a session has nothing more to do."""

    def _make(self, config: PartitionConfig, registry: Registry) -> PartitionScheduler:
        # Partitions of different RMs may have one name: inside they carry their RM's (decision 39).
        name = f"[{self.rm_id}]{config.name}"
        made = PartitionScheduler(name, config, registry, self._environment, self._faults)
        if self._state_callback is not None:
            made.report_states()
        return made

    def _listen(self) -> None:
        listening = bool(self.sinks)
        for partition in self._partitions.values():
            partition.partition.journal.listen(wanted=listening)

    # -- finding ------------------------------------------------------------------------------------

    @property
    def partitions(self) -> Iterator[PartitionScheduler]:
        """Its partitions, in the order of the configuration."""
        return iter(self._partitions.values())

    def partition(self, name: str) -> PartitionScheduler | None:
        """The partition of this name, as the RM writes it; empty is `default` (facts §20.5)."""
        prefix = f"[{self.rm_id}]"
        return self._partitions.get(name.removeprefix(prefix) or DEFAULT_PARTITION)

    def node(self, node_id: str, partition_name: str) -> tuple[PartitionScheduler, Node] | None:
        """A node and its partition: the one named, or whichever has it."""
        wanted = self.partition(partition_name) if partition_name else None
        for partition in [wanted] if wanted is not None else self._partitions.values():
            node = partition.partition.nodes.get(node_id)
            if node is not None:
                return partition, node
        return None

    # -- working ------------------------------------------------------------------------------------

    def take(self, request: UpdateRequest) -> None:
        """Take in an update."""
        self._intake.take(request)

    def flush(self) -> None:
        """Hand out what there is to say, events to the sinks and one response to the RM."""
        for partition in self._partitions.values():
            self._send_events(partition.partition.journal)
        response = collect(self._outboxes())
        if response is not None:
            self.callback.recv_update_response(response)
        if self._state_callback is not None:
            self._send_states(self._state_callback)

    def _send_states(self, callback: StateCallback) -> None:
        for partition in self._partitions.values():
            for one in partition.outstanding.drain() if partition.outstanding is not None else ():
                state = ContainerSchedulingState[one.state]
                request = UpdateContainerSchedulingStateRequest(
                    one.application_id, one.key, state, one.reason
                )
                callback.update_container_scheduling_state(request)

    def _send_events(self, journal: Journal) -> None:
        events = journal.drain()
        if events:
            self.sinks.send(events)
            self._listen()

    def _outboxes(self) -> Iterator[tuple[str, Outbox]]:
        yield "", self.stray
        for name, partition in self._partitions.items():
            yield name, partition.partition.outbox

    # -- configuration ------------------------------------------------------------------------------

    def reload(self, config: SchedulerConfig) -> None:
        """Use another configuration from now on; raises `ConfigError` and changes nothing (decision 11)."""
        enabled = self._registry.without(config.disabled)
        made: dict[str, PartitionScheduler] = {}
        try:
            outlets = self.sinks.make(config.sinks, enabled)
            plan = Reload(self._partitions, config, enabled)
            for name, new in plan.new.items():
                made[name] = self._make(new, enabled)
        except (UnknownPlugin, OptionError, PluginError) as error:
            for unused in made.values():
                unused.close("the configuration was refused")
            raise ConfigError([Problem("", str(error))]) from error
        plan.apply()
        for name, gone in plan.gone.items():
            gone.close(f"partition {name} was removed from the configuration")
            self._hand_out_last(name, gone)
        self._partitions = {
            partition.name: self._partitions.get(partition.name) or made[partition.name]
            for partition in config.partitions
        }
        self.config = config
        self.sinks.use(outlets)
        self._listen()

    def _hand_out_last(self, name: str, gone: PartitionScheduler) -> None:
        self._send_events(gone.partition.journal)
        response = collect([(name, gone.partition.outbox)])
        if response is not None:
            self.callback.recv_update_response(response)

    def close(self, reason: str) -> None:
        """The RM is gone: its partitions are removed."""
        SESSION.fire(self, "shutdown")
        for partition in self._partitions.values():
            partition.close(reason)
        self.flush()
        self._partitions = {}
        self.sinks.close()
