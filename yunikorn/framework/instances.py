"""Instances of plugin classes, kept over reloads of a configuration (`docs/decisions/archive/0044`).

An instance whose class and options are unchanged in a new configuration stays in use with its state, such as
file contents or learned data, and is notified by `reloaded`. An instance that failed to open is replaced, so
that a reload can repair it. Failures of life-cycle calls are reported.

A plan that opens what it makes refuses a configuration whose plugins cannot be opened, before anything has
changed (`docs/decisions/0052`). Event sinks are opened later, when the plan is used: no decision depends on
a sink, and the new sink may need the file of the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.containment import contained
from yunikorn.errors import PluginError, UnknownPlugin, printable
from yunikorn.framework.plugin_failures import read_flag

if TYPE_CHECKING:
    from yunikorn.api import Context, Task
    from yunikorn.framework.kinds import PluginKind
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.framework.registry import Registry

_log = logging.getLogger("yunikorn.plugins")

Wrap = Callable[[Any, str], Any]
"""Wrapper of a plugin object with the given origin, such as a buffer."""


Opener = Callable[["PluginInstance"], bool]
"""Function that opens an instance, or raises `PluginError`; False if the instance has to be opened later."""
Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Kind, name and options of an instance that several places share."""


@attrs.define(eq=False)
class PluginInstance:
    """An object of a plugin class, for one place of a configuration or several that share it."""

    kind: PluginKind
    name: str
    options: Mapping[str, Any]
    cls: type[Any]
    classes: tuple[type[Any], ...]
    """The class, and those of policies in the options."""
    plugin: Any
    """The object, or its wrapper."""
    origin: str
    is_open: bool = False
    """True after a successful call of `opened`, until `closed`."""
    is_closed: bool = False
    """True after a call of `closed` that no call of `opened` has followed."""
    is_distrusted: bool = False
    """True if the books of the object are unknown, so that the next configuration makes another one."""
    closer: Callable[[], object] | None = None
    """Closes an instance that its plan has opened."""

    def close(self) -> None:
        """Close an instance of a plan that is not used."""
        self.is_open = False
        if self.closer is not None:
            self.closer()


class InstancePlan:
    """Instances that a configuration needs; a plan that is not used has no effect.

    Instances in use are planned again if kind, name and options are unchanged.
    """

    def __init__(
        self,
        registry: Registry,
        in_use: Collection[PluginInstance] = (),
        shared: Mapping[Key, PluginInstance] | None = None,
        opener: Opener | None = None,
    ) -> None:
        """Plan nothing yet; `shared` has the instances in use that several places may refer to.

        With an `opener` every new instance is opened at once, and one that fails cannot be made.
        """
        self.registry = registry
        self.opened: list[PluginInstance] = []
        """New instances that the plan has opened."""
        self.replaced: list[PluginInstance] = []
        """Shared instances in use whose name and options mean another class now."""
        self._opener = opener
        self.instances: list[PluginInstance] = []
        """Planned instances, in the order of `make`."""
        self._in_use = list(in_use)
        self._shared: dict[Key, PluginInstance] = {}
        self._shared_in_use: Mapping[Key, PluginInstance] = shared or {}

    def make(
        self, kind: PluginKind, name: str, options: Mapping[str, Any], *, wrap: Wrap | None = None
    ) -> PluginInstance:
        """Plan an instance for one place.

        Raises `UnknownPlugin`, `OptionError` or `PluginError` if there is no such instance and none can be
        made.
        """
        cls, wanted = self.registry.find(kind, name).cls, dict(options)
        for one in self._in_use:
            if one.is_open and one.kind is kind and one.cls is cls and one.options == wanted:
                self._in_use.remove(one)
                self.instances.append(one)
                return one
        made = make_instance(self.registry, kind, name, wanted, wrap=wrap)
        self._open(made)
        self.instances.append(made)
        return made

    def make_if_usable(
        self,
        kind: PluginKind,
        name: str,
        options: Mapping[str, Any],
        *,
        required: bool,
        wrap: Wrap | None = None,
    ) -> PluginInstance | None:
        """Plan an instance as `make`; None for one that is not `required` and cannot be used."""
        with self.optional(kind, name, required=required):
            return self.make(kind, name, options, wrap=wrap)
        return None

    @contextmanager
    def optional(self, kind: PluginKind, name: str, *, required: bool) -> Iterator[None]:
        """Log an `UnknownPlugin` or `PluginError` of the context, unless the plugin is `required`."""
        try:
            yield
        except (UnknownPlugin, PluginError) as error:
            if required:
                raise
            text = "%s '%s' is not used, because of required: false: %s"
            _log.warning(text, kind.title, printable(name), printable(str(error)))

    def _open(self, one: PluginInstance) -> None:
        if self._opener is not None and self._opener(one):
            self.opened.append(one)

    def forget_others(self) -> None:
        """Forget the instances of the former configuration, which are closed: the plan is in use."""
        self._in_use, self._shared_in_use, self.replaced = [], {}, []

    def discard(self) -> None:
        """Close what the plan has opened: the plan is not used."""
        opened, self.opened = self.opened, []
        for one in opened:
            one.close()

    @property
    def shared(self) -> Mapping[Key, PluginInstance]:
        """Planned instances that several places refer to."""
        return self._shared

    def share(self, kind: PluginKind, name: str, options: Mapping[str, str]) -> PluginInstance:
        """Plan an instance for all places with this name and these options, which are texts.

        Objects in use refer to a shared instance, so an instance that failed to open is opened again instead
        of replaced. Raises as `make`.
        """
        key = _key(kind, name, options)
        found = self._shared.get(key)
        if found is None:
            found = self._shared_in_use.get(key)
            if found is not None and (
                found.is_distrusted or found.classes != self.registry.classes_of(kind, name, options)
            ):
                # Its books are unknown, or the name means another class now: a file changed, or an override.
                self.replaced.append(found)
                found = None
            if found is None:
                found = make_instance(self.registry, kind, name, options, comma_lists=True)
                self._open(found)
            self._shared[key] = found
            self.instances.append(found)
        return found


class CallsInProgress(Protocol):
    """Calls of plugin objects by other threads."""

    def when_idle(self, plugin: object, action: Callable[[], object]) -> None:
        """Call `action` when no call of this object is in progress."""
        ...

    def release(self, plugin: object) -> None:
        """Give up the calls of this object."""
        ...


class PluginInstances:
    """The instances in use by one owner, such as a partition."""

    def __init__(
        self,
        context: Context,
        failures: PluginFailures,
        *,
        on_failure: str = "",
        calls: CallsInProgress | None = None,
        shared: Callable[[str, Task], dict[Any, Any]] | None = None,
    ) -> None:
        """Create without instances; `on_failure` is a remark for reports if a failure closes an instance.

        An instance is reloaded and closed when none of the `calls` of other threads is in progress. `shared`
        returns the state of a package for a task.
        """
        self._shared_state = shared
        self._context = context
        self._failures = failures
        self._on_failure = on_failure
        self._calls = calls
        self._instances: list[PluginInstance] = []
        self._leaving: list[PluginInstance] = []
        """Instances in use that the latest plan does not contain."""
        self._shared: dict[Key, PluginInstance] = {}
        """Instances in use that several places refer to."""

    def __iter__(self) -> Iterator[PluginInstance]:
        return iter(self._instances)

    def plan(self, registry: Registry, *, opening: bool = False) -> InstancePlan:
        """Return an empty plan for another configuration, which opens new instances at once if `opening`."""
        return InstancePlan(registry, self._instances, self._shared, self._open if opening else None)

    def _open(self, one: PluginInstance) -> bool:
        """Open an instance; report a failure, and raise it as `PluginError`.

        Returns False without opening it if another object of its class has to be closed first.
        """
        if self._closes_first(one) and any(other.cls is one.cls for other in self._instances):
            return False
        context = self._context_of(one)
        try:
            one.plugin.opened(context)
        except contained() as error:
            raise self._failures.report(one.origin, "opening", error) from None
        one.is_open = True
        one.closer = partial(self.guard, one, "closing", "closed")
        return True

    def _context_of(self, one: PluginInstance) -> Context:
        context = self._failures.context_of(one.origin, self._context)
        if self._shared_state is None:
            return context
        package = one.cls.__module__.partition(".")[0]
        return attrs.evolve(context, shared=partial(self._shared_state, package))

    def _closes_first(self, one: PluginInstance) -> bool:
        return read_flag(one.cls, "close_before_open", one.origin, self._failures)

    def use(self, plan: InstancePlan, *, close_first: bool = False) -> None:
        """Open the new instances of a plan, and notify the others of the reload.

        Instances that the plan does not contain are closed before that (all with `close_first`, else those
        that ask for it by `close_before_open`), or later by `close_unused`.
        """
        planned = set(plan.instances)
        self._leaving = [one for one in self._instances if one not in planned]
        if close_first:
            self.close_unused()
        for one in self._leaving:
            if self._closes_first(one):
                if self._calls is not None:
                    self._calls.release(one.plugin)
                self.close_one(one)
        self._instances = [*plan.instances, *self._leaving]
        self._shared.update(plan.shared)
        opened, plan.opened = plan.opened, []
        for one in plan.instances:
            if one not in opened:
                self._renew(one)

    def close_unused(self, used: Collection[PluginInstance] = ()) -> None:
        """Close the instances that the latest plan does not contain, except those still `used`."""
        leaving, self._leaving = self._leaving, []
        kept = set(used)
        closed = {one for one in leaving if one not in kept}
        self._instances = [one for one in self._instances if one not in closed]
        self._shared = {key: one for key, one in self._shared.items() if one not in closed}
        for one in leaving:
            if one in kept:
                self._renew(one)
            else:
                self.close_one(one)

    def close_one(self, one: PluginInstance) -> None:
        """Close an instance, unless that was done before."""
        if not one.is_closed:
            one.is_closed, one.is_open = True, False
            self._when_idle(one, partial(self._closed, one))

    def _closed(self, one: PluginInstance) -> None:
        self.guard(one, "closing", "closed")
        if self._calls is not None:
            self._calls.release(one.plugin)

    def _when_idle(self, one: PluginInstance, action: Callable[[], object]) -> None:
        """Call `action` when no other thread is in a call of an instance."""
        if self._calls is None:
            action()
        else:
            self._calls.when_idle(one.plugin, action)

    def find_shared(self, kind: PluginKind, name: str, options: Mapping[str, str]) -> PluginInstance | None:
        """Return the shared instance in use, or None."""
        return self._shared.get(_key(kind, name, options))

    def add_shared(self, one: PluginInstance) -> None:
        """Open an instance between two plans, and put it into use."""
        self._instances.append(one)
        self._shared[_key(one.kind, one.name, one.options)] = one
        self._renew(one)

    def close(self) -> None:
        """Close all instances."""
        instances, self._instances, self._leaving = self._instances, [], []
        self._shared.clear()
        for one in instances:
            self.close_one(one)

    def _renew(self, one: PluginInstance) -> None:
        context = self._context_of(one)
        if one.is_open:
            self._when_idle(one, partial(self.guard, one, "reloading", "reloaded", context))
        else:
            one.is_closed = False
            one.is_open = self.guard(one, "opening", "opened", context)

    def distrust(self, plugin: object) -> None:
        """Replace an object that is not usable any more at the next reload."""
        for one in self._instances:
            if one.plugin is plugin:
                one.is_open, one.is_distrusted = False, True

    def guard(self, one: PluginInstance, operation: str, method: str, *arguments: object) -> bool:
        """Call a method of an instance; report an exception. Returns True on success.

        After a failure the instance is no longer open if this owner was created with `on_failure`.
        """
        if self._on_failure:
            operation = f"{operation} ({self._on_failure})"
        if self._failures.call_guarded(one.origin, operation, one.plugin, method, *arguments):
            return True
        if self._on_failure:
            one.is_open = False
        return False


def make_instance(
    registry: Registry,
    kind: PluginKind,
    name: str,
    options: Mapping[str, Any],
    *,
    comma_lists: bool = False,
    wrap: Wrap | None = None,
) -> PluginInstance:
    """Return a new instance that is not open; see `Registry.make`."""
    offer = registry.find(kind, name)
    plugin = registry.make_counted(kind, name, options, comma_lists=comma_lists)
    classes = registry.classes_of(kind, name, options)
    if wrap is not None:
        plugin = wrap(plugin, offer.origin)
    return PluginInstance(kind, name, dict(options), offer.cls, classes, plugin, offer.origin)


def _key(kind: PluginKind, name: str, options: Mapping[str, str]) -> Key:
    return kind.id, name, tuple(sorted(options.items()))
