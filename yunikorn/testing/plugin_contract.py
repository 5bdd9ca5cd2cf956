"""What every plugin keeps, of whichever kind; the contracts of the kinds build on it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from itertools import zip_longest
from typing import Any, ClassVar

import attrs

from yunikorn.api import Context, Plugin
from yunikorn.clock import ManualClock
from yunikorn.kinds import Kind
from yunikorn.objects.timeouts import Timeouts
from yunikorn.offers import check_class
from yunikorn.registry import Registry
from yunikorn.testing.cluster import Cluster, Placement
from yunikorn.testing.offering import registry_with
from yunikorn.testing.option_texts import options_as_text, options_of
from yunikorn.testing.samples import application, ask, node

Yaml = dict[str, Any]


class PluginContract:
    """The base of all contracts: derive from that of your kind.

    Every test works on fresh objects, made with the options of the one that you give.
    """

    kind: ClassVar[Kind]
    subject: ClassVar[str] = "policy"
    """Under which name the derived class has its plugin object."""
    in_properties: ClassVar[bool] = False
    """Whether a configuration gives the options as properties of a queue."""

    # -- the plugin under test ------------------------------------------------------------------------

    @property
    def given(self) -> Plugin:
        """The object that the derived class names."""
        found = getattr(self, self.subject, None)
        if not isinstance(found, self.kind.base):
            name, base = type(self).__name__, self.kind.base.__name__
            wrong = f"{self.subject} is {found!r}" if found is not None else f"there is no {self.subject}"
            raise AssertionError(
                f"{name}: {wrong}; write `{self.subject} = YourPlugin(...)` in it, an object of a {base}"
            )
        return found

    def fresh(self, clock: ManualClock | None = None) -> Any:
        """An object like the given one that nobody has used yet, opened on a clock that stands still."""
        plugin = self.registry().make(
            self.kind, type(self.given).name, self.option_texts(), comma_lists=self.in_properties
        )
        plugin.opened(self.context(clock))
        return plugin

    def context(self, clock: ManualClock | None = None) -> Context:
        """What a plugin is told of where it works; without a resource manager."""
        return Context("default", (clock or ManualClock()).now)

    def registry(self) -> Registry:
        """The plugin under test, and no other."""
        return registry_with(type(self.given), defaults=False)

    def option_texts(self) -> dict[str, Any]:
        """Its options as a configuration gives them."""
        return options_as_text(self.given, in_properties=self.in_properties)

    # -- in a cluster ---------------------------------------------------------------------------------

    def cluster(self, timeouts: Timeouts | None = None) -> Cluster:
        """A cluster whose configuration names the plugin."""
        registry = registry_with() if self.is_default() else registry_with(type(self.given))
        return Cluster(self.configuration(), registry, timeouts=timeouts)

    def is_default(self) -> bool:
        """Whether the plugin under test is one of those that come with the scheduler."""
        return any(offer.cls is type(self.given) for offer in registry_with().offers(self.kind))

    def configuration(self, also: str = "") -> str:
        """A configuration that names the plugin, as text (JSON is YAML); `also` is one queue more."""
        root: Yaml = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}, {"name": "other"}]}
        if also:
            root["queues"].append({"name": also})
        document: Yaml = {"partitions": [{"name": "default", "queues": [root]}]}
        self.name_in(document)
        return json.dumps(document)

    def name_in(self, document: Yaml) -> None:
        """Write the plugin and its options into a configuration, where its kind is named."""
        raise NotImplementedError

    def named(self, key: str) -> Yaml:
        """The mapping that names the plugin under `key`, its options beside it."""
        return {key: type(self.given).name, **self.option_texts()}

    def play(self, *, reload: bool, reservations: bool = True) -> Cluster:
        """A day in the life of a cluster under the plugin, with a reload in it or without."""
        cluster = self.cluster(None if reservations else Timeouts(reservation=None))
        try:
            _first_half(cluster)
            if reload:
                cluster.reload(self.configuration(also="new"))
            _second_half(cluster)
        finally:
            cluster.close()
        return cluster

    # -- what every plugin keeps ----------------------------------------------------------------------

    def test_its_class_is_fit_for_its_kind(self) -> None:
        """Base, name, method and options are as the registry wants them."""
        assert check_class(self.kind, type(self.given))

    def test_it_says_what_it_is(self) -> None:
        """The first line of its documentation is what `yunikorn plugins` shows."""
        (offer,) = self.registry().offers(self.kind)
        assert offer.summary, f"write a docstring for {offer.cls.__qualname__}: `yunikorn plugins` shows it"

    def test_its_options_survive_the_configuration(self) -> None:
        """Written as text and read again they are the same."""
        made = self.registry().make(
            self.kind, type(self.given).name, self.option_texts(), comma_lists=self.in_properties
        )
        assert type(made) is type(self.given), f"the configuration makes a {type(made)!r}"
        _refuse_hidden_options(type(self.given))
        before, after = options_of(self.given), options_of(made)
        for name, value in before.items():
            assert after[name] == value, (
                f"option '{name}' is {value!r}, but {after[name]!r} when the configuration gives it as "
                f"{self.option_texts().get(name)!r}"
            )

    def test_its_life_has_a_beginning_and_an_end(self) -> None:
        """It can be opened, told of a reload, and closed, where there is no resource manager."""
        plugin = self.fresh()
        plugin.reloaded(self.context())
        plugin.closed()

    def test_a_cluster_runs_under_it_without_a_fault(self) -> None:
        """Whatever comes up in a cluster, it answers as its kind should."""
        cluster = self.play(reload=True)
        failures = [
            f"{failure.message} ({failure.count} times)" for failure in cluster.failures if not failure.last
        ]
        assert not failures, "\n".join(["in a cluster it did what it must not:", *failures])

    def test_equal_input_gives_equal_decisions(self) -> None:
        """Two clusters to which the same happens decide the same."""
        first, second = self.play(reload=False), self.play(reload=False)
        _assert_equal(first, second, "two clusters to which the same happened decided differently")

    def test_a_reload_that_leaves_it_alone_changes_no_decision(self) -> None:
        """A configuration that changes something else leaves it as it was, with all it knows."""
        # A reload forgets which nodes are kept for whom: so let none be.
        before, after = (self.play(reload=reload, reservations=False) for reload in (False, True))
        _assert_equal(before, after, "with a reload that leaves it alone (the second) it decided differently")


def _assert_equal(first: Cluster, second: Cluster, what: str) -> None:
    """Raises `AssertionError` with the first decision in which two clusters differ."""
    __tracebackhide__ = True
    decided = zip_longest(map(_say, first.placements), map(_say, second.placements), fillvalue="nothing")
    for number, (one, other) in enumerate(decided, start=1):
        if one != other:
            raise AssertionError(f"{what}: decision {number} is {one} in one, {other} in the other")
    for name in first.rejected.keys() | second.rejected.keys():
        one, other = first.rejected.get(name, "not"), second.rejected.get(name, "not")
        if one != other:
            raise AssertionError(f"{what}: {name} was rejected in one: {one}, in the other: {other}")


def _say(placement: Placement) -> str:
    return f"{placement.ask} of {placement.application} on {placement.node}"


def _refuse_hidden_options(cls: type[Any]) -> None:
    """Raises `AssertionError` for what a class takes when it is made, and no configuration can give."""
    if attrs.has(cls) or dataclasses.is_dataclass(cls) or cls.__init__ is object.__init__:
        return
    taken = [name for name in inspect.signature(cls).parameters]
    if taken:
        raise AssertionError(
            f"{cls.__qualname__} takes {', '.join(taken)} when it is made, which no configuration can give: "
            "make typed attributes of them, and write @attrs.frozen above the class"
        )


def _first_half(cluster: Cluster) -> None:
    """More work than there is room for, of all kinds, by several users in two queues."""
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
    """Some of it ends, new work and a node come, another shrinks."""
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
