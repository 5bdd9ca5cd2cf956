"""Plugins that an RM brings along: they apply to its partitions, are named, and are removed with the RM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from tests.shim_plugins.shim import Asked
from yunikorn import api
from yunikorn.api import hookimpl
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.kinds import PREDICATE


class Quarantine:
    """A shim's plugin: keeps asks off nodes in `ill`, a set that the shim shares with the classes."""

    def __init__(self, *ill: str) -> None:
        self.ill = set(ill)
        self.reported: list[str] = []

    @hookimpl
    def yunikorn_predicates(self) -> list[type[api.Predicate]]:
        plugin = self

        class Healthy(api.Predicate):
            """Only nodes that are not ill."""

            name = "healthy"

            def opened(self, context: api.Context) -> None:
                plugin.reported.append(f"opened in {context.partition}")

            def closed(self) -> None:
                plugin.reported.append("closed")

            def check(self, ask: api.Ask, node: api.Node) -> str | None:
                return "ill" if node.id in plugin.ill else None

        return [Healthy]


class Diary:
    """A shim's plugin: a sink with an option, and one without."""

    def __init__(self) -> None:
        self.received: list[str] = []

    @hookimpl
    def yunikorn_event_sinks(self) -> list[type[api.EventSink]]:
        received = self.received

        class Plain(api.EventSink):
            """Writes to the diary."""

            name = "plain"

            def send(self, batch: Sequence[api.Event]) -> None:
                received.extend(event.object_id for event in batch)

        return [Plain]


class Owner(RM):
    """An RM whose callback brings plugins along."""

    def __init__(self, config: str, *plugins: object, **keys: Any) -> None:
        self.plugins = plugins
        super().__init__(config, **keys)


def ready(rm: RM) -> None:
    rm.node("n1", vcore=2)
    rm.node("n2", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=1)


def test_plugins_of_the_callback_are_used_from_the_start() -> None:
    diary = Diary()
    rm = Owner(configuration(), Quarantine("n1"), diary)
    ready(rm)
    assert rm.schedule() == [("app", "k", "n2")]
    assert "n1" in diary.received


def test_registered_configuration_may_name_and_order_own_plugins() -> None:
    text = configuration(predicates=["healthy", "rm"])
    with pytest.raises(ConfigError, match="no predicate is called 'healthy'"):
        RM(text)
    rm = Owner(text, Quarantine("n1"))
    ready(rm)
    assert rm.schedule() == [("app", "k", "n2")]
    names = [ref.name for ref in rm.at_work().config.predicates]
    assert names == ["healthy"], "named once is used once; what the callback does not have is left out"


def test_own_plugins_can_be_disabled() -> None:
    for name in ("Quarantine", "healthy", "predicate:healthy"):
        rm = Owner(document(partition(queue("a")), plugins={"disable": [name]}), Quarantine("n1"))
        ready(rm)
        assert rm.schedule() == [("app", "k", "n1")]


def test_plugin_registered_later_is_used_immediately() -> None:
    rm = RM(configuration())
    ready(rm)
    plugin = Quarantine("n1", "n2")
    assert rm.scheduler.register_plugin("rm", plugin, "quarantine")
    assert plugin.reported == ["opened in default"]
    assert rm.schedule() == []
    rm.reload(configuration(predicates=["healthy"]))
    assert rm.schedule() == []
    plugin.ill.clear()
    rm.change_node("n2", vcore=3)
    assert len(rm.schedule()) == 1


def test_plugins_are_private_and_their_names_reusable_by_other_rms() -> None:
    first = Owner(configuration(), Quarantine("n1"))
    other = Owner(configuration(), Quarantine("n2"), rm_id="other", scheduler=first.scheduler)
    third = RM(configuration(), rm_id="third", scheduler=first.scheduler)
    for rm in (first, other, third):
        ready(rm)
    first.scheduler.schedule()
    placed = [rm.entries("new_allocations")[0].node_id for rm in (first, other, third)]
    assert placed == ["n2", "n1", "n1"]
    known = [offer.name for offer in first.scheduler.plugins("third").offers(PREDICATE)]
    assert "healthy" not in known
    with pytest.raises(ConfigError, match="no predicate is called 'healthy'"):
        third.reload(configuration(predicates=["healthy"]))


def test_plugins_are_removed_with_their_rm() -> None:
    plugin = Quarantine("n1")
    rm = Owner(configuration(), plugin)
    rm.scheduler.stop("rm")
    assert plugin.reported == ["opened in default", "closed"]
    again = RM(configuration(), scheduler=rm.scheduler)
    ready(again)
    assert again.schedule() == [("app", "k", "n1")]


def test_a_session_lists_its_plugins_with_their_owner() -> None:
    rm = Owner(configuration(), Quarantine())
    offer = rm.scheduler.plugins("rm").find(PREDICATE, "healthy")
    assert offer.origin == "healthy of Quarantine (resource manager rm)"
    assert offer.summary == "Only nodes that are not ill."


def test_plugin_can_be_unregistered_unless_the_configuration_needs_it() -> None:
    rm = RM(configuration())
    ready(rm)
    rm.scheduler.register_plugin("rm", Quarantine("n1", "n2"), "quarantine")
    rm.reload(configuration(predicates=["healthy"]))
    with pytest.raises(
        UsageError, match="configuration in use needs plugin quarantine of resource manager rm"
    ):
        rm.scheduler.unregister_plugin("rm", "quarantine")
    assert rm.schedule() == []
    rm.reload(configuration())
    rm.scheduler.unregister_plugin("rm", "quarantine")
    assert rm.schedule() == [("app", "k", "n1")]
    with pytest.raises(UsageError, match="has not registered a plugin 'taints'"):
        rm.scheduler.unregister_plugin("rm", "taints")


# -- broken plugins ----------------------------------------------------------------------------------------


class Misspelt:
    @hookimpl
    def yunikorn_predicate(self) -> list[type[api.Predicate]]:
        return []


class Second:
    @hookimpl
    def yunikorn_predicates(self) -> list[type[api.Predicate]]:
        class Taints(api.Predicate):
            """A second predicate with the name of a default one."""

            name = "taints"

            def check(self, ask: api.Ask, node: api.Node) -> str | None:
                return None

        return [Taints]


class Crooked:
    @hookimpl
    def yunikorn_predicates(self) -> list[type[api.Predicate]]:
        raise ZeroDivisionError("one half of nothing")


BROKEN: dict[str, tuple[Callable[[], object], str]] = {
    "unknown hook": (
        Misspelt,
        "unknown hook 'yunikorn_predicate', did you mean 'yunikorn_predicates'",
    ),
    "a name that is taken": (Second, "predicate 'taints' is already offered by yunikorn_plugins.predicates"),
    "a hook that raises": (Crooked, "ZeroDivisionError: one half of nothing"),
    "no hooks": (object, "it implements no hook"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugin_is_skipped_and_the_rm_registered(case: str) -> None:
    make, reason = BROKEN[case]
    rm = Owner(configuration(), make())
    (failure,) = rm.failures()
    assert "(resource manager rm): registering it: " in failure
    assert reason in failure
    ready(rm)
    assert rm.schedule() == [("app", "k", "n1")]


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugin_registered_later_changes_nothing(case: str) -> None:
    make, reason = BROKEN[case]
    rm = RM(configuration())
    assert not rm.scheduler.register_plugin("rm", make(), "mine")
    assert reason in rm.failures()[0]
    assert reason in rm.scheduler.plugins("rm").broken[-1].reason


def test_naming_a_class_of_a_broken_plugin_gives_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"not loaded: plugin Crooked .*one half of nothing"):
        Owner(configuration(predicates=["healthy"]), Crooked())


def test_duplicate_names_are_rejected() -> None:
    rm = Owner(configuration(), Quarantine("n1"), Quarantine("n2"))
    assert "a plugin of this name is already registered" in rm.failures()[0]
    assert not rm.scheduler.register_plugin("rm", Diary(), "yunikorn_plugins.events")


def test_plugin_that_cannot_be_instantiated_is_rejected() -> None:
    class Shy:
        @hookimpl
        def yunikorn_predicates(self) -> list[type[api.Predicate]]:
            class Never(api.Predicate):
                """A predicate that cannot be created."""

                name = "never"

                def __init__(self) -> None:
                    raise RuntimeError("not today")

                def check(self, ask: api.Ask, node: api.Node) -> str | None:
                    return None

            return [Never]

    rm = RM(configuration())
    ready(rm)
    with pytest.raises(ConfigError, match="not today"):
        rm.scheduler.register_plugin("rm", Shy())
    assert not rm.scheduler.plugins("rm").has_plugin("Shy")
    assert rm.schedule() == [("app", "k", "n1")]


@pytest.mark.parametrize("plugins", ["healthy", 7, Quarantine()])
def test_plugins_must_be_a_list(plugins: object) -> None:
    class Lonely(RM):
        """An RM whose `plugins` is no list of plugins."""

    Lonely.plugins = plugins  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="resource manager rm: 'plugins' of its callback must be a list"):
        Lonely(configuration())


def test_plugins_of_an_unknown_rm_are_refused() -> None:
    rm = RM(configuration())
    with pytest.raises(UsageError, match="no resource manager 'who' is registered"):
        rm.scheduler.register_plugin("who", Quarantine())


# -- another callback -------------------------------------------------------------------------------------


def test_callback_may_add_plugins_without_a_new_registration() -> None:
    rm = RM(configuration())
    ready(rm)
    asked = Asked(configuration(), rm_id="elsewhere")
    asked.rule = lambda args: "no" if args.node_id == "n1" else None
    rm.scheduler.use_callback("rm", asked)
    rm.scheduler.schedule()
    assert [one.node_id for one in asked.entries("new_allocations")] == ["n2"]
    rm.ask(key="again", vcore=1)
    rm.scheduler.use_callback("rm", rm)
    assert rm.schedule() == [("app", "again", "n1")]
