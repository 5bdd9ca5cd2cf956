"""Plugins are discovered, validated, rejected with a reason, and created."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import pytest

from yunikorn import api
from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    Node,
    NodeSortPolicy,
    PlacementRule,
    Predicate,
    hookimpl,
)
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.framework.defaults import DEFAULT_PLUGINS
from yunikorn.framework.hook_manager import HOOKS
from yunikorn.framework.kinds import (
    ALL_KINDS,
    APP_SORT,
    NODE_SORT,
    PLACEMENT,
    PREDICATE,
    WORKLOAD_READER,
)
from yunikorn.framework.registry import Registry

if TYPE_CHECKING:
    from decimal import Decimal


# -- sample classes ------------------------------------------------------------------------------------


@attrs.frozen
class ShortestFirst(AppSortPolicy):
    """The least pending first.

    More text that no list needs.
    """

    name = "shortest-first"
    resource: str = "memory"
    slack: float = 0.5
    keys: tuple[str, ...] = ()

    def key(self, app: Application) -> int:
        return app.pending.get(self.resource, 0)


@attrs.frozen
class ByTeam(PlacementRule):
    """A queue per team."""

    name = "By_Team"
    teams: dict[str, str]
    limit: int = attrs.field(default=10, validator=attrs.validators.ge(1))

    def place(self, app: Application) -> str | None:
        return self.teams.get(app.user)


class Plain(Predicate):
    """Anything goes."""

    name = "plain"

    def check(self, ask: Ask, node: Node) -> str | None:
        return None


def offering(*classes: Any, hook: str = "yunikorn_app_sort_policies") -> types.SimpleNamespace:
    """Return a plugin that offers `classes` through `hook`."""

    def implementation() -> list[Any]:
        return list(classes)

    implementation.__name__ = hook
    return types.SimpleNamespace(**{hook: hookimpl(implementation)})


def registered(plugin: object, name: str = "mine") -> Registry:
    """Return a registry with this one plugin."""
    registry = Registry()
    assert registry.register(plugin, name, "my-dist", "1.2"), registry.broken
    return registry


def blame(plugin: object) -> str:
    """Return the reason why the plugin is rejected; assert that it is rejected as a whole."""
    registry = Registry()
    assert not registry.register(plugin, "mine", "my-dist", "1.2")
    assert registry.offers() == []
    assert len(registry.broken) == 1
    text = str(registry.broken[0])
    start = "plugin mine (my-dist 1.2): registering: "
    assert text.startswith(start)
    return text.removeprefix(start)


@pytest.fixture
def rules() -> Registry:
    return registered(offering(ByTeam, hook="yunikorn_placement_rules"))


@pytest.fixture
def sorts() -> Registry:
    return registered(offering(ShortestFirst))


# -- the kinds and the defaults -----------------------------------------------------------------------


def test_hooks_and_kinds_correspond() -> None:
    hooks = [name for name in vars(HOOKS) if name.startswith("yunikorn_")]
    assert hooks == [kind.hook for kind in ALL_KINDS]


def test_every_kind_has_a_base_with_its_method() -> None:
    for kind in ALL_KINDS:
        assert issubclass(kind.base, api.Plugin)
        assert kind.base.__name__ in api.__all__ or kind is WORKLOAD_READER
        assert kind.method in {*vars(kind.base), *kind.base.__annotations__}


def test_defaults_have_a_fixed_order(registry: Registry) -> None:
    assert registry.broken == []
    plugins = list(dict.fromkeys(offer.plugin for offer in registry.offers()))
    assert plugins == list(DEFAULT_PLUGINS)
    names = {kind.id: [offer.name for offer in registry.offers(kind)] for kind in ALL_KINDS}
    assert names == {
        "app-sort": ["fifo", "fair", "stateaware", "multifactor"],
        "queue-sort": ["fair"],
        "node-sort": ["fair", "binpacking", "pod-preferences"],
        "placement": ["provided", "user", "fixed", "tag"],
        "predicate": [
            *("node-selector", "taints", "spread", "anti-affinity", "licences", "rm"),
            *("node-unschedulable", "taint-toleration", "node-name", "dynamic-resources"),
            *("node-affinity", "node-ports"),
            *("volume-restrictions", "node-volume-limits", "volume-binding", "volume-zone"),
            *("pod-topology-spread", "inter-pod-affinity"),
        ],
        "event-sink": ["log", "jsonl", "rm"],
        "user-groups": ["os", "ldap"],
        "preemption": ["standard"],
        "submit": ["default-tags"],
        "admission": ["admission-window"],
        "quota": ["time-of-day", "borrowing"],
        "reservation": ["standard", "easy", "conservative"],
        "permit": ["together"],
        "topology": ["attributes"],
        "gang-placement": ["best-fit", "least-free", "balanced"],
        "run-time": ["request", "learned", "file", "history"],
        "command": [],
        "door": ["grpc", "rest", "record", "history"],
        "workload-reader": [
            *("Job", "JobSet", "LeaderWorkerSet", "RayCluster"),
            *("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"),
        ],
    }


def test_defaults_have_descriptions(registry: Registry) -> None:
    for offer in registry.offers():
        assert offer.summary.endswith("."), offer.name
        assert offer.distribution == "yunikorn"


# -- offered classes -----------------------------------------------------------------------------------


def test_registration_has_options_and_origin(sorts: Registry) -> None:
    (offer,) = sorts.offers(APP_SORT)
    assert [(option.name, option.type, option.default) for option in offer.options] == [
        ("resource", "str", "memory"),
        ("slack", "float", 0.5),
        ("keys", "tuple[str, ...]", ()),
    ]
    assert offer.summary == "The least pending first."
    assert offer.origin == "shortest-first of mine (my-dist 1.2)"


def test_option_types_read_like_python() -> None:
    @attrs.frozen
    class Many(Predicate):
        name = "many"
        a: int | None
        b: dict[str, list[float]]
        c: Literal["x", "y"]
        d: Any
        e: Path
        f: Sequence[str]

        def check(self, ask: Ask, node: Node) -> str | None:
            return None

    (offer,) = registered(offering(Many, hook="yunikorn_predicates")).offers()
    types_ = {option.name: option.type for option in offer.options}
    assert types_ == {
        "a": "int | None",
        "b": "dict[str, list[float]]",
        "c": "'x' | 'y'",
        "d": "any",
        "e": "Path",
        "f": "Sequence[str]",
    }
    assert all(option.required for option in offer.options)


def test_dataclass_has_options() -> None:
    @dataclasses.dataclass(frozen=True)
    class Coldest(NodeSortPolicy):
        name = "coldest"
        attribute: str = "inlet"
        weights: dict[str, float] = dataclasses.field(default_factory=dict)

        def score(self, node: Node) -> float:
            return float(node.attributes[self.attribute])

    registry = registered(offering(Coldest, hook="yunikorn_node_sort_policies"))
    made = registry.make(NODE_SORT, "coldest", {"weights": {"a": "1.5"}})
    assert (made.attribute, made.weights) == ("inlet", {"a": 1.5})
    assert [option.default for option in registry.offers()[0].options] == ["inlet", {}]
    with pytest.raises(OptionError, match="unknown option 'atribute', did you mean 'attribute'"):
        registry.make(NODE_SORT, "coldest", {"atribute": "x"})


def test_node_sort_policy_may_depend_on_the_ask() -> None:
    class Snug(NodeSortPolicy):
        name = "snug"

        def score(self, node: Node, ask_class: object) -> float:
            return 0.0

    assert [offer.name for offer in registered(offering(Snug, hook="yunikorn_node_sort_policies")).offers()]


def test_unregister_removes_all_classes_of_a_plugin(sorts: Registry) -> None:
    sorts.unregister("mine")
    assert sorts.offers() == []
    assert sorts.register(offering(ShortestFirst), "mine")


# -- rejection at registration -------------------------------------------------------------------------


def test_misspelt_hook_is_reported() -> None:
    text = blame(offering(ShortestFirst, hook="yunikorn_app_sort_policy"))
    assert text == "unknown hook 'yunikorn_app_sort_policy', did you mean 'yunikorn_app_sort_policies'?"


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        ("yunikorn_predicates", "function 'yunikorn_predicates' is not marked with @hookimpl"),
        (
            "yunikorn_predicate",
            "function 'yunikorn_predicate' is not marked with @hookimpl, did you mean 'yunikorn_predicates'?",
        ),
    ],
)
def test_missing_marker_is_reported(hook: str, text: str) -> None:
    plugin = offering(ShortestFirst)
    setattr(plugin, hook, lambda: [Plain])
    assert blame(plugin) == text


def test_plugin_without_hooks_is_reported() -> None:
    assert blame(types.ModuleType("empty")) == (
        "it implements no hook; write a function such as yunikorn_placement_rules"
    )


def test_hook_with_arguments_is_reported() -> None:
    plugin = types.SimpleNamespace(yunikorn_predicates=hookimpl(lambda config: [Plain]))
    assert "config" in blame(plugin)


def test_hook_that_raises_is_reported() -> None:
    def yunikorn_predicates() -> list[type[Predicate]]:
        raise RuntimeError("no licence")

    assert blame(types.SimpleNamespace(yunikorn_predicates=hookimpl(yunikorn_predicates))) == (
        "RuntimeError: no licence"
    )


def test_hook_that_exits_is_reported() -> None:
    def yunikorn_predicates() -> list[type[Predicate]]:
        sys.exit(3)

    assert "SystemExit: 3" in blame(types.SimpleNamespace(yunikorn_predicates=hookimpl(yunikorn_predicates)))


@pytest.mark.parametrize("answer", [None, Plain])
def test_hook_that_returns_no_list_is_reported(answer: object) -> None:
    plugin = types.SimpleNamespace(yunikorn_predicates=hookimpl(lambda: answer))
    text = blame(plugin)
    assert text.startswith("yunikorn_predicates returned ")
    assert text.endswith("; it must return a list of classes")


def test_object_instead_of_a_class_is_reported() -> None:
    assert "is not a class; return the class itself" in blame(offering(Plain(), hook="yunikorn_predicates"))


def test_wrong_base_class_is_reported() -> None:
    assert blame(offering(Plain)) == (
        "Plain is not a subclass of AppSortPolicy, as yunikorn_app_sort_policies requires"
    )


def make_class(base: type[Any] = Predicate, **attributes: Any) -> type[Any]:
    """Return a class called Odd with these attributes; by default a predicate."""
    return type("Odd", (base,), attributes)


def say_yes(self: Any, ask: Ask, node: Node) -> None:
    return None


@attrs.frozen
class NameAsOption(Predicate):
    name: str = "odd"  # type: ignore[misc]

    def check(self, ask: Ask, node: Node) -> str | None:
        return None


@attrs.frozen
class Unreadable(Predicate):
    name = "unreadable"
    price: Decimal

    def check(self, ask: Ask, node: Node) -> str | None:
        return None


@attrs.frozen
class Impossible(Predicate):
    name = "impossible"
    call: Callable[[int], int]

    def check(self, ask: Ask, node: Node) -> str | None:
        return None


@attrs.frozen
class Reserved(Predicate):
    name = "reserved"
    other: int = attrs.field(default=1, alias="name")

    def check(self, ask: Ask, node: Node) -> str | None:
        return None


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (make_class(check=say_yes), "Odd has no name: set the class attribute 'name' to a text"),
        (make_class(name=7, check=say_yes), "Odd has no name: set the class attribute 'name' to a text"),
        (
            make_class(name="two words", check=say_yes),
            "the name of Odd is 'two words': use letters, digits, '-', '_' and '.'",
        ),
        (NameAsOption, "'name' of NameAsOption is an option: write it without a type, name = \"...\""),
        (make_class(name="odd"), "Odd lacks the method check(ask, node)"),
        (make_class(name="odd", check=7), "check of Odd is not a method; expected check(ask, node)"),
        (
            make_class(name="odd", check=lambda self, ask: None),
            "Odd.check(self, ask) does not match: expected check(ask, node)",
        ),
        (
            Unreadable,
            "the types of Unreadable's options cannot be read: name 'Decimal' is not defined; "
            "import the named "
            "types at the top of the module, not under TYPE_CHECKING",
        ),
        (
            Impossible,
            "the option 'call' of Impossible has the type Callable[[int], int], "
            "which no configuration can give",
        ),
        (
            Reserved,
            "the option 'name' of Reserved cannot be set: "
            "every predicate has a key of this name; rename the option",
        ),
    ],
)
def test_class_of_the_wrong_kind_is_reported(cls: type[Predicate], text: str) -> None:
    assert blame(offering(cls, hook="yunikorn_predicates")) == text


@pytest.mark.parametrize(
    ("name", "hint"),
    [("by-team", ", for example 'by_team'"), ("by.team", ""), ("_team", ""), ("2nd", ""), ("né", "")],
)
def test_placement_rule_names_follow_the_naming_convention(name: str, hint: str) -> None:
    place = make_class(PlacementRule, name=name, place=lambda self, app: None)
    assert blame(offering(place, hook="yunikorn_placement_rules")) == (
        f"the name of Odd is '{name}': use a letter, then letters, digits and '_'{hint}"
    )


@pytest.mark.parametrize("name", ["t", "By_Team_2"])
def test_conventional_names_are_found_in_any_case(name: str) -> None:
    place = make_class(PlacementRule, name=name, place=lambda self, app: None)
    registry = registered(offering(place, hook="yunikorn_placement_rules"))
    assert registry.find(PLACEMENT, name.upper()).name == name.lower()


def test_static_and_class_methods_are_accepted() -> None:
    static = make_class(name="static", check=staticmethod(lambda ask, node: None))
    of_class = make_class(name="of-class", check=classmethod(lambda cls, ask, node: None))
    registry = registered(offering(static, of_class, hook="yunikorn_predicates"))
    assert [offer.name for offer in registry.offers()] == ["static", "of-class"]


def test_several_distributions_may_offer_a_name(sorts: Registry) -> None:
    assert sorts.register(offering(ShortestFirst), "other", "other-dist", "3")
    assert sorts.register(offering(ShortestFirst), "other", "third-dist", "3"), "a plugin of the same name"
    assert [offer.distribution for offer in sorts.offers()] == ["my-dist", "other-dist", "third-dist"]
    assert sorts.find(APP_SORT, "shortest-first@third-dist").distribution == "third-dist"


def test_duplicate_name_within_a_plugin_is_reported() -> None:
    assert blame(offering(ShortestFirst, ShortestFirst)).endswith("is already offered by mine (my-dist 1.2)")


def test_one_name_may_be_used_for_several_kinds() -> None:
    plugin = offering(ShortestFirst)
    same = make_class(name="shortest-first", check=say_yes)
    plugin.yunikorn_predicates = hookimpl(lambda: [same])
    assert len(registered(plugin).offers()) == 2


def test_duplicate_plugin_name_or_object_is_reported(sorts: Registry) -> None:
    plugin = offering(Plain, hook="yunikorn_predicates")
    assert not sorts.register(plugin, "mine")
    assert sorts.broken[-1].reason == "registering: a plugin of this name is already registered"
    assert sorts.register(plugin, "second")
    assert not sorts.register(plugin, "third")
    assert sorts.broken[-1].reason == "registering: the plugin is already registered as 'second'"
    assert [offer.plugin for offer in sorts.offers()] == ["mine", "second"]


def test_a_broken_plugin_is_rejected_as_a_whole_and_affects_no_other() -> None:
    half = offering(ShortestFirst)
    half.yunikorn_predicates = hookimpl(lambda: [make_class(name="odd")])
    registry = Registry()
    assert not registry.register(half, "half")
    assert registry.register(offering(ShortestFirst), "whole")
    assert registry.register(offering(Plain, hook="yunikorn_predicates"), "plain")
    assert [offer.name for offer in registry.offers()] == ["shortest-first", "plain"]
    assert len(registry.broken) == 1


# -- naming -------------------------------------------------------------------------------------------


def test_unknown_name_is_reported_with_suggestion_known_names_and_failures(sorts: Registry) -> None:
    sorts.register(types.ModuleType("empty"), "hollow", "hollow-dist", "0.1")
    with pytest.raises(UnknownPlugin) as caught:
        sorts.find(APP_SORT, "shortest_first")
    assert str(caught.value) == (
        "no application sort policy is called 'shortest_first', did you mean 'shortest-first'?; "
        "known: shortest-first; not loaded: plugin hollow (hollow-dist 0.1): registering: it implements no "
        "hook; write a function such as yunikorn_placement_rules"
    )


def test_an_unknown_name_of_another_kind_is_recognised(sorts: Registry) -> None:
    with pytest.raises(UnknownPlugin, match="'shortest-first' is the name of another kind: application sort"):
        sorts.find(PREDICATE, "shortest-first")


def test_rule_names_ignore_case_and_others_do_not(sorts: Registry, rules: Registry) -> None:
    assert rules.find(PLACEMENT, "BY_team").cls is ByTeam
    with pytest.raises(UnknownPlugin, match="did you mean 'shortest-first'"):
        sorts.find(APP_SORT, "Shortest-First")


@pytest.mark.parametrize("name", ["mine", "shortest-first", "app-sort:shortest-first"])
def test_plugin_can_be_disabled_by_any_of_its_names(sorts: Registry, name: str) -> None:
    assert name in sorts.names_to_disable()
    rest = sorts.without([name])
    assert rest.offers() == []
    with pytest.raises(UnknownPlugin, match=r"'shortest-first' is disabled by plugins\.disable"):
        rest.find(APP_SORT, "shortest-first")
    assert sorts.find(APP_SORT, "shortest-first").cls is ShortestFirst


def test_disabling_one_kind_keeps_the_others(registry: Registry) -> None:
    rest = registry.without(["app-sort:fair"])
    assert [offer.kind.id for offer in rest.offers() if offer.name == "fair"] == ["queue-sort", "node-sort"]


def test_a_broken_plugin_may_be_disabled() -> None:
    registry = Registry()
    registry.register(types.ModuleType("empty"), "hollow")
    assert registry.names_to_disable() == ["hollow"]
    assert registry.without(["hollow"]).broken == []


# -- making -------------------------------------------------------------------------------------------


def test_options_are_read_from_text_by_their_types(sorts: Registry) -> None:
    made = sorts.make(APP_SORT, "shortest-first", {"slack": "0.25", "keys": ["a", "b"]})
    assert made == ShortestFirst(slack=0.25, keys=("a", "b"))


def test_properties_contain_lists_as_comma_separated_text(sorts: Registry) -> None:
    assert sorts.make(APP_SORT, "shortest-first", {"keys": "a, b"}, comma_lists=True).keys == ("a", "b")
    with pytest.raises(OptionError, match="expected a list"):
        sorts.make(APP_SORT, "shortest-first", {"keys": "a, b"})


def test_all_option_errors_are_reported_with_paths(rules: Registry) -> None:
    with pytest.raises(OptionError) as caught:
        rules.make(PLACEMENT, "by_team", {"team": {}, "limit": "many"})
    assert sorted(caught.value.faults) == [
        (".limit", "placement rule by_team of mine (my-dist 1.2): expected a whole number, got 'many'"),
        (
            ".team",
            "placement rule by_team of mine (my-dist 1.2): unknown option 'team', did you mean 'teams'?; "
            "known: teams, limit",
        ),
        (".teams", "placement rule by_team of mine (my-dist 1.2): required, but missing"),
    ]


def test_errors_within_an_option_have_their_full_path(rules: Registry) -> None:
    with pytest.raises(OptionError) as caught:
        rules.make(PLACEMENT, "by_team", {"teams": {"ann": ["x"], "bob": "y", "eve": None}})
    assert [path for path, _ in caught.value.faults] == [".teams.ann", ".teams.eve"]


def test_validator_of_the_class_is_called(rules: Registry) -> None:
    with pytest.raises(OptionError, match="'limit' must be >= 1: 0"):
        rules.make(PLACEMENT, "by_team", {"teams": {}, "limit": "0"})


def test_class_without_options_accepts_none() -> None:
    registry = registered(offering(Plain, hook="yunikorn_predicates"))
    assert isinstance(registry.make(PREDICATE, "plain", {}), Plain)
    with pytest.raises(OptionError) as caught:
        registry.make(PREDICATE, "plain", {"a": "1", "b": "2"})
    text = "predicate plain of mine (my-dist 1.2) takes no options"
    assert caught.value.faults == ((".a", text), (".b", text))


def test_missing_decorator_is_suggested() -> None:
    odd = make_class(name="odd", check=say_yes, __annotations__={"size": int})
    registry = registered(offering(odd, hook="yunikorn_predicates"))
    with pytest.raises(OptionError, match=r"write @attrs\.frozen above Odd"):
        registry.make(PREDICATE, "odd", {"size": "1"})


@pytest.mark.parametrize("with_options", [True, False])
def test_class_that_fails_otherwise_is_reported(with_options: bool) -> None:
    def fail(self: Any) -> None:
        raise KeyError("boom")

    if with_options:
        odd = attrs.frozen(make_class(name="odd", check=say_yes, __attrs_post_init__=fail))
    else:
        odd = make_class(name="odd", check=say_yes, __init__=fail)
    registry = registered(offering(odd, hook="yunikorn_predicates"))
    with pytest.raises(
        PluginError, match=r"^plugin odd of mine \(my-dist 1\.2\): creating it: KeyError: 'boom'$"
    ):
        registry.make(PREDICATE, "odd", {})
