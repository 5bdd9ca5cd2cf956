"""Callback of a resource manager: its methods, its calls, and its role as a plugin.

Only `recv_update_response` is required. Further methods are used if the RM's object implements them, and a
missing method costs nothing. A method counts as implemented if the object has it, it is not None, and it is
not inherited from `ResourceManagerCallback`. A class may therefore derive from that class or from nothing,
and an object may disable a method by setting it to None.

`CallbackAdapter` makes the calls of the core. `RMFacade` is the resource manager as plugins see it: the
callback behind the `rm` of a configuration.

The plugins of a resource manager are its callback as `rm` and its own plugins. They apply to its partitions
only, and end with its session. Its predicates and event sinks are in use even if a configuration does not
name them (those that need options only if it does). A configuration that names one sets its position among
the others and its options; `plugins: {disable: [...]}` switches it off (`docs/decisions/archive/0046`). A
callback may also name installed predicates that are in use in this way (`predicates_in_force`,
`docs/decisions/archive/0119`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from yunikorn.config.queues_yaml import PluginRef, SchedulerConfig
from yunikorn.containment import (
    class_name,
    contained,
    describe_error,
    exact_text,
    items_of,
    safe_repr,
    safe_text,
    text_or_none,
)
from yunikorn.errors import (
    CallbackError,
    ConfigError,
    DisabledPlugin,
    Problem,
    UnknownPlugin,
    UsageError,
)
from yunikorn.framework.defaults import import_default
from yunikorn.framework.kinds import EVENT_SINK, PREDICATE, PluginKind
from yunikorn.framework.offers import Offer, describe_origin
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    EventRecord,
    NodePredicatesArgs,
    PredicatesArgs,
    PreemptionMode,
    ReSyncSchedulerCacheArgs,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
    UpdateResponse,
)

if TYPE_CHECKING:
    from yunikorn.api import Ask, Event, Node
    from yunikorn.framework.plugin_failures import PluginFailures


Answer = TypeVar("Answer")

OPTIONAL = (
    "predicates",
    "node_predicates",
    "update_container_scheduling_state",
    "resync_scheduler_cache",
    "send_events",
    "update_configuration",
)
"""Optional methods of a callback."""


class Callback(Protocol):
    """The part of the callback that every resource manager implements."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Apply a response of the scheduler."""
        ...


class ResourceManagerCallback:
    """Base class with all methods of a callback; override the ones that the resource manager implements.

    Every method is called in the core's thread, while it decides, and should return soon. An error of a
    method is contained and reported; it stops neither the core nor another RM.
    """

    predicates_in_force: Sequence[str] = ()
    """Installed predicates that apply to all partitions of the RM, in this order, unless its configuration
    names or disables them; read when the callback is registered or replaced."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Apply a response of the scheduler; called after each update and each scheduling round."""
        raise NotImplementedError(f"{type(self).__name__} does not implement recv_update_response(response)")

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Return None if the node may run the ask, else the reason why not.

        Called only for nodes with room. An error counts as a refusal of this node.
        """
        raise NotImplementedError

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Return the nodes that may not run the ask, each with the reason; all others may.

        Serves remote RMs: one round trip answers for many nodes. Called instead of `predicates` where both
        are implemented; the answers have to be the same as one by one. An error counts as a refusal of all
        nodes.
        """
        raise NotImplementedError

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Apply a new scheduling state of a pending ask, such as the hint for an autoscaler.

        See `docs/decisions/archive/0037`.
        """
        raise NotImplementedError

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        """Forget and assume these allocations in the RM's cache (`docs/decisions/archive/0037`)."""
        raise NotImplementedError

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Take these events, oldest first; an error switches events off until the next configuration."""
        raise NotImplementedError

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Save a configuration that is about to be used; without success in the response it is not used."""
        raise NotImplementedError


def implements(callback: object, method: str) -> bool:
    """Return True if a callback implements an optional method, one of `OPTIONAL`, itself."""
    found = getattr(callback, method, None)
    inherited = getattr(ResourceManagerCallback, method)
    return callable(found) and getattr(found, "__func__", found) is not inherited


def predicates_in_force(rm_id: str, callback: object) -> tuple[str, ...]:
    """Return the predicates that a callback puts in force; raise `UsageError` if it names them wrongly."""
    try:
        named = getattr(callback, "predicates_in_force", None)
        names = [] if named is None else [*named]
    except contained() as error:
        raise UsageError(
            f"resource manager {rm_id}: reading 'predicates_in_force' of its callback failed:"
            f" {describe_error(error)}"
        ) from error
    if isinstance(named, str) or not all(isinstance(name, str) and name for name in names):
        raise UsageError(
            f"resource manager {rm_id}: 'predicates_in_force' of its callback must be a list of names,"
            f" it is {safe_repr(named)}"
        )
    return tuple(dict.fromkeys(exact_text(name) for name in names))


class CallbackAdapter:
    """Access to a callback: its methods are determined once, and its failures name the resource manager.

    Raises `UsageError` if the callback names predicates in force that are no names.

    Notifications report an error to the `PluginFailures` and return whether they succeeded. Queries raise
    `CallbackError`, since the caller has to decide how to go on without an answer.
    """

    def __init__(self, rm_id: str, callback: Callback, failures: PluginFailures) -> None:
        self.callback = callback
        self.whose = f"resource manager {rm_id}"
        self.methods = frozenset(method for method in OPTIONAL if implements(callback, method))
        """The methods of `OPTIONAL` that the callback implements."""
        self.keeps_cache = "resync_scheduler_cache" in self.methods
        """True if the callback receives changes of the allocations in its cache."""
        self.wants_states = "update_container_scheduling_state" in self.methods
        """True if the callback receives scheduling states of asks."""
        self.records: Any = None
        """Module that makes events and cache changes for the callback; None if it takes neither."""
        if self.keeps_cache or "send_events" in self.methods:
            self.records = import_default("yunikorn_service.event_records")
        self.predicates_in_force = predicates_in_force(rm_id, callback)
        """Names of installed predicates that apply although a configuration does not name them."""
        self._failures = failures
        self._optional: Any = callback
        """The callback again, typed for calls of optional methods."""
        self.answers_at_once = "node_predicates" in self.methods
        """True if queries are for many nodes at once, instead of for one."""
        self.answers = self.answers_at_once or "predicates" in self.methods
        """True if the callback implements predicates of either kind."""
        self._predicates: Any = getattr(callback, "predicates", None)

    @property
    def offers(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """Implemented optional methods and predicates in force: what a configuration is completed with."""
        return self.methods, self.predicates_in_force

    # -- telling ------------------------------------------------------------------------------------

    def deliver(self, response: UpdateResponse) -> bool:
        """Deliver a response; return False if it was lost."""
        try:
            self.callback.recv_update_response(response)
        except contained() as error:
            return self._failed("handling a response", error)
        return True

    def send_state(self, request: UpdateContainerSchedulingStateRequest) -> bool:
        """Send the scheduling state of an ask."""
        method = self._optional.update_container_scheduling_state
        return self._notify("receiving the scheduling state of a request", method, request)

    def sync_cache(self, args: ReSyncSchedulerCacheArgs) -> bool:
        """Send the allocations that the RM's cache must assume and forget."""
        return self._notify("updating its cache", self._optional.resync_scheduler_cache, args)

    def _notify(self, operation: str, call: Callable[[Any], object], message: object) -> bool:
        try:
            call(message)
        except contained() as error:
            return self._failed(operation, error)
        return True

    def _failed(self, operation: str, error: BaseException) -> bool:
        self._failures.report(self.whose, operation, CallbackError(self.whose, operation, error))
        return False

    # -- asking -------------------------------------------------------------------------------------

    def refusal(self, args: PredicatesArgs) -> str | None:
        """Return the reason why a node may not run an ask, or None if it may; raise `CallbackError`."""
        operation = "answering predicates"
        try:
            # Hot path, called for every node and ask: no helper function in between.
            reason: str | None = self._predicates(args)
        except contained() as error:
            raise CallbackError(self.whose, operation, error) from error
        if reason is not None and type(reason) is not str:
            text = text_or_none(reason)
            if text is None:
                raise _useless(operation, self.whose, f"{safe_repr(reason)} instead of None or a text")
            return text
        return reason

    def refusals(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Return the nodes that may not run an ask, with the reasons; raise `CallbackError`."""
        operation = "answering predicates for several nodes"
        answer: object = self._ask(operation, self._optional.node_predicates, args)
        if not issubclass(type(answer), Mapping):
            text = f"{safe_repr(answer)} instead of a mapping of node ids to reasons"
            raise _useless(operation, self.whose, text)
        refused: dict[str, str] = {}
        for node_id, reason in self._ask(operation, items_of, answer):
            name, text_of = text_or_none(node_id), text_or_none(reason)
            if name is None or text_of is None:
                text = f"{safe_repr(reason)} for node {safe_repr(node_id)} instead of a text"
                raise _useless(operation, self.whose, text)
            refused[name] = text_of
        return refused

    def send_events(self, events: Sequence[EventRecord]) -> None:
        """Send events; raise `CallbackError`."""
        self._ask("receiving events", self._optional.send_events, events)

    def save_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Let the RM save a configuration; raise `CallbackError`."""
        operation = "saving a configuration"
        response = self._ask(operation, self._optional.update_configuration, request)
        if not issubclass(type(response), UpdateConfigurationResponse):
            text = f"{safe_repr(response)} instead of an UpdateConfigurationResponse"
            raise _useless(operation, self.whose, text)
        return self._ask(operation, _plain_response, response)

    def _ask(self, operation: str, call: Callable[[Any], Answer], question: object) -> Answer:
        try:
            return call(question)
        except contained() as error:
            raise CallbackError(self.whose, operation, error) from error


_LARGEST_CONFIG = 1 << 26
"""Largest number of characters of a configuration that a resource manager returns."""


def _plain_response(response: UpdateConfigurationResponse) -> UpdateConfigurationResponse:
    return UpdateConfigurationResponse(
        bool(response.success),
        text_or_none(response.old_config, _LARGEST_CONFIG) or "",
        safe_text(response.reason),
    )


def _useless(operation: str, whose: str, answer: str) -> CallbackError:
    return CallbackError(whose, operation, f"it returned {answer}")


class RMFacade:
    """Implementation of `yunikorn.api.ResourceManager` for one session; its callback can be replaced."""

    def __init__(
        self,
        callback_adapter: CallbackAdapter,
        queue_of: Callable[[str], str],
        preemption_modes: Iterable[int],
    ) -> None:
        self.callback_adapter = callback_adapter
        declared = frozenset(preemption_modes) | {PreemptionMode.END}
        self.preemption_modes = tuple(mode.name.lower() for mode in PreemptionMode if mode in declared)
        """Modes of preemption that the RM has declared, and `end`, which needs no declaration."""
        self._queue_of = queue_of
        self._records: Any = None

    @property
    def answers_at_once(self) -> bool:
        """True if the callback implements `node_predicates`, which takes precedence over `predicates`."""
        return self.callback_adapter.answers_at_once

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """Return None if the RM lets the node run the ask, or be reserved for the ask, else the reason.

        Raises `CallbackError`.
        """
        callback_adapter = self.callback_adapter
        if callback_adapter.answers_at_once:
            return self.refusals(ask, [node], allocate=allocate)[0]
        if callback_adapter.answers:
            return callback_adapter.refusal(PredicatesArgs(ask.key, node.id, allocate, ask.app.id))
        return None

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the results of `refusal` for several nodes; raise `CallbackError`."""
        if not self.callback_adapter.answers_at_once:
            return [self.refusal(ask, node, allocate=allocate) for node in nodes]
        ids = [node.id for node in nodes]
        reasons = self.callback_adapter.refusals(NodePredicatesArgs(ask.key, ask.app.id, ids, allocate))
        return [reasons.get(node_id) for node_id in ids]

    def send_events(self, batch: Sequence[Event]) -> None:
        """Send events as records; raise `CallbackError`."""
        if "send_events" in self.callback_adapter.methods:
            self._records = self._records or self.callback_adapter.records.EventRecords(self._queue_of)
            if records := self._records.of(batch):
                self.callback_adapter.send_events(records)


RM = "rm"
"""Name of the resource manager itself, as a predicate and as an event sink."""


def plugin_name(plugin: object) -> str:
    """Return the name of a plugin registered without one: its `__name__`, its `name`, or its class."""
    for attribute in ("__name__", "name"):
        try:
            found = getattr(plugin, attribute, None)
        except contained():
            continue
        if issubclass(type(found), str) and exact_text(found):  # type: ignore[arg-type]
            return exact_text(found)  # type: ignore[arg-type]
    return class_name(type(plugin))


def add_plugin(plugin: object, name: str, rm_id: str, registry: Registry, failures: PluginFailures) -> bool:
    """Add a plugin to the registry of one RM; leave out and report a plugin that cannot be used."""
    of = f"resource manager {rm_id}"
    taken = registry.register(plugin, name, of)
    if not taken:
        reason = registry.broken[-1].reason.removeprefix("registering: ")
        failures.report(describe_origin(name, of, ""), "registering it", reason)
    return taken


def registry_for(rm_id: str, callback: object, registry: Registry, failures: PluginFailures) -> Registry:
    """Return the plugins of an RM: those of `framework.registry`, and the `plugins` of its callback.

    Raises `UsageError` if `plugins` is no list.
    """
    own = registry.extended()
    plugins = getattr(callback, "plugins", None) or ()
    if isinstance(plugins, str) or not isinstance(plugins, Iterable):
        raise UsageError(
            f"resource manager {rm_id}: 'plugins' of its callback must be a list, it is {safe_repr(plugins)}"
        )
    for plugin in plugins:
        add_plugin(plugin, plugin_name(plugin), rm_id, own, failures)
    return own


def with_rm(config: SchedulerConfig, enabled: Registry, callback_adapter: CallbackAdapter) -> SchedulerConfig:
    """Return the configuration as it applies to an RM.

    The plugins of the RM and its predicates in force are added, and references to methods that its callback
    lacks are removed. Raises `ConfigError` with all predicates in force that cannot be used.
    """
    events_wanted = "send_events" in callback_adapter.methods
    in_force, problems = _offers_in_force(enabled, callback_adapter)
    partitions = []
    for one in config.partitions:
        added = _unnamed(in_force, one.predicates, enabled)
        problems += (
            Problem(
                "",
                f"{callback_adapter.whose} puts predicate '{offer.name}' in force, which needs options:"
                f" name it under 'predicates' of partition {one.name}, or disable it",
            )
            for offer in added
            if _needs_options(offer)
        )
        refs = (*one.predicates, *(PluginRef(enabled.reference(offer)) for offer in added))
        partitions.append(
            attrs.evolve(one, predicates=_with(refs, PREDICATE, enabled, callback_adapter.answers))
        )
    if problems:
        raise ConfigError(problems)
    return attrs.evolve(
        config,
        partitions=tuple(partitions),
        sinks=_with(config.sinks, EVENT_SINK, enabled, events_wanted),
    )


def _offers_in_force(
    enabled: Registry, callback_adapter: CallbackAdapter
) -> tuple[list[Offer], list[Problem]]:
    """Return the offers that a callback puts in force, without disabled ones, and why others cannot be."""
    found: list[Offer] = []
    problems: list[Problem] = []
    for name in callback_adapter.predicates_in_force:
        try:
            found.append(enabled.find(PREDICATE, name))
        except DisabledPlugin:
            continue
        except UnknownPlugin as error:
            problems.append(Problem("", f"{callback_adapter.whose} puts '{name}' in force: {error}"))
    return found, problems


def _unnamed(offers: Iterable[Offer], refs: Iterable[PluginRef], enabled: Registry) -> list[Offer]:
    """Return the offers that no reference names."""
    named: list[Offer] = []
    for ref in refs:
        try:
            named.append(enabled.find(PREDICATE, ref.name))
        except UnknownPlugin:
            continue  # reported when the configuration is used
    return [offer for offer in offers if not any(offer is one for one in named)]


def _needs_options(offer: Offer) -> bool:
    return any(option.required for option in offer.options)


def _with(
    refs: Iterable[PluginRef], kind: PluginKind, enabled: Registry, has_rm: bool
) -> tuple[PluginRef, ...]:
    named = [ref for ref in refs if ref.name != RM or has_rm]
    names = {ref.name for ref in named}
    unnamed = [offer.name for offer in enabled.own_offers(kind) if not _needs_options(offer)]
    if has_rm and any(offer.name == RM for offer in enabled.offers(kind)):
        unnamed.append(RM)
    return (*named, *(PluginRef(name) for name in unnamed if name not in names))
