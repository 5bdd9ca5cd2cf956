"""Contract tests of all kinds of plugins; the bases of the contracts of each kind."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar

import attrs

from yunikorn.api import Context, Plugin, Task
from yunikorn.clock import ManualClock
from yunikorn.errors import PluginError
from yunikorn.framework.kinds import PluginKind
from yunikorn.framework.offers import check_class
from yunikorn.framework.registry import Registry
from yunikorn.framework.wake_requests import WakeRequests
from yunikorn.model.context import Timeouts
from yunikorn_testing.cluster import Cluster, Placement
from yunikorn_testing.forbidden_calls import OpenedTooEarly, nothing_is_opened
from yunikorn_testing.offering import options_as_text, options_of, registry_with
from yunikorn_testing.samples import application, ask, node

Yaml = dict[str, Any]


class OfferContract:
    """Rules for the class of every plugin: its name, docstring, options and constructor.

    Every test uses new objects, constructed with the options of the given plugin object.
    """

    kind: ClassVar[PluginKind]
    subject: ClassVar[str] = "policy"
    """Name of the attribute in which a derived class sets its plugin object."""
    opening: ClassVar[str] = (
        "opened(), because the check of a configuration creates every plugin on trial and never closes it"
    )
    """Place to open things in, in messages."""
    in_properties: ClassVar[bool] = False
    """True if the options are queue properties in a configuration."""

    # -- the plugin under test ------------------------------------------------------------------------

    @property
    def given(self) -> Plugin:
        """Plugin object that the derived class sets."""
        found = getattr(self, self.subject, None)
        if not isinstance(found, self.kind.base):
            name, base = type(self).__name__, self.kind.base.__name__
            wrong = f"{self.subject} is {found!r}" if found is not None else f"there is no {self.subject}"
            raise AssertionError(
                f"{name}: {wrong}; set `{self.subject} = YourPlugin(...)` in the class, a {base}"
            )
        return found

    def _made(self) -> Any:
        """Return a new object with the options of the given one."""
        return self.registry().make(
            self.kind, type(self.given).name, self.option_texts(), comma_lists=self.in_properties
        )

    def registry(self) -> Registry:
        """Return a registry with only the plugin under test."""
        cls: Any = type(self.given)
        return _registry_of(cls, defaults=False)

    def option_texts(self) -> dict[str, Any]:
        """Return the options as in a configuration."""
        return options_as_text(self.given, in_properties=self.in_properties)

    # -- tests of all kinds ---------------------------------------------------------------------------

    def test_class_can_be_registered_for_its_kind(self) -> None:
        """Check the class with the rules of the registry: base, name, method and options."""
        assert check_class(self.kind, type(self.given))

    def test_class_has_a_docstring(self) -> None:
        """Check that the class has a docstring; `yunikorn plugins` prints its first line."""
        (offer,) = self.registry().offers(self.kind)
        assert offer.summary, (
            f"{offer.cls.__qualname__} has no docstring; write one, because `yunikorn plugins` prints it"
        )

    def test_options_survive_the_configuration(self) -> None:
        """Check that options are unchanged after conversion to text and back."""
        made = self._made()
        assert type(made) is type(self.given), (
            f"the configuration creates a {type(made)!r}, not a {type(self.given)!r}"
        )
        _refuse_hidden_options(type(self.given))
        before, after = options_of(self.given), options_of(made)
        for name, value in before.items():
            assert after[name] == value, (
                f"option '{name}' is {value!r}, but {after[name]!r} when read from the configuration value "
                f"{self.option_texts().get(name)!r}; do not change options in the constructor"
            )

    def test_creation_opens_nothing(self) -> None:
        """Check that only `opened` opens files, connections and threads, and not the constructor."""
        with nothing_is_opened():
            try:
                self._made()
            except PluginError as error:
                if not isinstance(error.cause, OpenedTooEarly):
                    raise
                raise AssertionError(
                    f"creating {type(self.given).__qualname__} {error.cause}; do this in {self.opening}"
                ) from error


class PluginContract(OfferContract):
    """Base class of the contracts of policies; derive tests from the contract of the plugin's kind."""

    # -- the plugin under test ------------------------------------------------------------------------

    def fresh(self, clock: ManualClock | None = None) -> Any:
        """Return an unused object with the options of the given one, opened on a manual clock."""
        plugin = self._made()
        plugin.opened(self.context(clock))
        return plugin

    def context(
        self,
        clock: ManualClock | None = None,
        woken: Callable[[str], object] = lambda kind: None,
        shared: Callable[[Task], dict[Any, Any]] = lambda task: {},
    ) -> Context:
        """Return the context for `opened` and `reloaded`, without a resource manager.

        `woken` is called with the kinds of policies that the plugin wakes, and `shared` returns the state for
        a task.
        """
        requests = WakeRequests()

        def wake(kind: str) -> None:
            requests.add("", "default", kind)  # refuses kinds that cannot be woken
            woken(kind)

        return Context("default", (clock or ManualClock()).now, wake=wake, shared=shared)

    # -- in a cluster ---------------------------------------------------------------------------------

    def cluster(self, timeouts: Timeouts | None = None) -> Cluster:
        """Return a cluster whose configuration uses the plugin."""
        cls: Any = type(self.given)
        registry = _default_registry() if self.is_default() else _registry_of(cls, defaults=True)
        return Cluster(self.configuration(), registry, timeouts=timeouts)

    def is_default(self) -> bool:
        """Return True if the plugin under test is a default plugin."""
        return any(offer.cls is type(self.given) for offer in _default_registry().offers(self.kind))

    def configuration(self, also: str = "") -> str:
        """Return a configuration that uses the plugin, as JSON text; `also` is the name of an extra queue."""
        root: Yaml = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}, {"name": "other"}]}
        if also:
            root["queues"].append({"name": also})
        document: Yaml = {"partitions": [{"name": "default", "queues": [root]}]}
        self.name_in(document)
        return json.dumps(document)

    def name_in(self, document: Yaml) -> None:
        """Insert the plugin and its options into a configuration, at the place of its kind."""
        raise NotImplementedError

    def named(self, key: str) -> Yaml:
        """Return a mapping with the name of the plugin under `key`, and its options."""
        return {key: type(self.given).name, **self.option_texts()}

    def play(self, *, reload: int, reservations: bool = True) -> Cluster:
        """Run a fixed workload in a cluster with the plugin, with this number of reloads at once.

        Returns the cluster.
        """
        cluster = self.cluster(None if reservations else Timeouts(reservation=None))
        try:
            _first_half(cluster)
            for number in range(reload):
                cluster.reload(self.configuration(also=f"new-{number}"))
            _second_half(cluster)
        finally:
            cluster.close()
        return cluster

    # -- tests of all kinds of policies ---------------------------------------------------------------

    def test_plugin_opens_and_closes(self) -> None:
        """Check that the plugin can be opened, reloaded and closed without a resource manager.

        Another object has to take over what `saved` returns, as plain values.
        """
        plugin = self.fresh()
        plugin.reloaded(self.context())
        if type(plugin).saved is not Plugin.saved:
            state, other = json.loads(json.dumps(plugin.saved())), self.fresh()
            other.restored(state)
            found = other.saved()
            assert found == state, f"saved returned {state!r}, and {found!r} after restored with the former"
        plugin.closed()

    def test_cluster_runs_without_plugin_failures(self) -> None:
        """Check that the plugin causes no failure in a cluster with a varied workload."""
        cluster = self.play(reload=1)
        failures = [
            f"{failure.message} ({failure.count} times)" for failure in cluster.failures if not failure.last
        ]
        assert not failures, "\n".join(["the plugin failed in a cluster; correct these failures:", *failures])

    def test_equal_input_gives_equal_decisions(self) -> None:
        """Check that two clusters with equal input make equal decisions."""
        first, second = self.play(reload=0), self.play(reload=0)
        assert_same_decisions(first, second, "two clusters with equal input made different decisions")

    def test_reload_without_changes_changes_no_decision(self) -> None:
        """Check that a reload of another part of the configuration keeps the plugin's state and decisions."""
        # A reload drops reservations, so reservations are disabled.
        before, after = (self.play(reload=reload, reservations=False) for reload in (0, 1))
        assert_same_decisions(
            before, after, "a reload (second run) of other parts of the configuration changed decisions"
        )


@lru_cache(maxsize=8)
def _registry_of(cls: type[Any], *, defaults: bool) -> Registry:
    """Return the registry for all tests of a class; making it costs more than most tests."""
    return registry_with(cls, defaults=defaults)


@lru_cache(maxsize=1)
def _default_registry() -> Registry:
    return registry_with()


def assert_same_decisions(first: Cluster, second: Cluster, what: str) -> None:
    """Raise `AssertionError` with the first decision in which two clusters differ."""
    __tracebackhide__ = True
    decided = zip_longest(map(_say, first.placements), map(_say, second.placements), fillvalue="none")
    for number, (one, other) in enumerate(decided, start=1):
        if one != other:
            raise AssertionError(
                f"{what}: decision {number} is {one} in the first run, {other} in the second"
            )
    for name in first.rejected.keys() | second.rejected.keys():
        one, other = first.rejected.get(name, "accepted"), second.rejected.get(name, "accepted")
        if one != other:
            raise AssertionError(f"{what}: {name} in the first run: {one}; in the second: {other}")


def _say(placement: Placement) -> str:
    return f"{placement.ask} of {placement.application} on {placement.node}"


def _refuse_hidden_options(cls: type[Any]) -> None:
    """Raise `AssertionError` for parameters of the constructor that no configuration can set."""
    if attrs.has(cls) or dataclasses.is_dataclass(cls) or cls.__init__ is object.__init__:
        return
    taken = [name for name in inspect.signature(cls).parameters]
    if taken:
        raise AssertionError(
            f"the constructor of {cls.__qualname__} takes {', '.join(taken)}, which a configuration cannot "
            "set: declare typed attributes instead, and decorate the class with @attrs.frozen"
        )


def _first_half(cluster: Cluster) -> None:
    """Submit more work than fits, from several users in two queues."""
    cluster.add(
        node("node-1", {"zone": "a"}, vcore=4, memory="8Gi"),
        node("node-2", {"zone": "b"}, vcore=8, memory="8Gi", occupied={"vcore": 2}),
        node("node-3", vcore=4, memory="16Gi", capacity={"gpu": 2}),
        node("node-4"),
    )
    for number, user in enumerate(["ann", "bob", "ann", "cid.dee", "ann", "bob"]):
        app = application(
            f"app-{number}",
            ("root.default", "root.other")[number % 2],
            user=user,
            tags={"namespace": user, "number": str(number)},
        )
        wanted = {"gpu": 1} if number == 4 else {}
        cluster.submit(
            app,
            ask("large", 2, vcore=2, memory="1Gi", resource=wanted, priority=number % 3),
            ask("small", 3, vcore="500m", memory="256Mi"),
        )
        cluster.run(2)
        cluster.advance(90)
    cluster.run()


def _second_half(cluster: Cluster) -> None:
    """End some work, shrink and remove nodes, and add new work and nodes."""
    for app_id in ("app-1", "app-2"):
        cluster.finish(app_id, "large")
        cluster.advance(600)
        cluster.run(1)
    cluster.change(node("node-2", {"zone": "c"}, vcore=2, memory="4Gi"))
    cluster.add(
        node("node-5", {"zone": "a"}, vcore=2, memory="2Gi"),
        node("node-6", {"zone": "b"}, vcore=6, memory="4Gi"),
        node("node-7", vcore=4, memory="32Gi", capacity={"gpu": 4}),
    )
    cluster.submit(application("late", user="eve"), ask("any", 4, vcore=1), ask("none", memory=1))
    cluster.submit(application("odd", tags={"namespace": ""}), ask("odd", 2, vcore="1m"))
    cluster.run()
    cluster.remove("node-1")
    cluster.advance(3600)
    cluster.finish("app-0")
    cluster.run()
