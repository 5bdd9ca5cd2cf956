"""Loading of plugins: the defaults first, then those that installed packages announce."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import attrs
import pytest

from yunikorn.api import Ask, Node, Predicate, hookimpl
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.defaults import DEFAULT_PLUGINS, import_default
from yunikorn.framework.kinds import KINDS, PREDICATE, RESOLVER, PluginKind
from yunikorn.framework.registry import Registry

Run = Callable[..., subprocess.CompletedProcess[str]]


@attrs.frozen
class Plain(Predicate):
    """Says yes."""

    name = "plain"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Always."""
        return None


class Other(Plain):
    """Says yes under another name."""

    name = "b"


KUBERNETES = (
    *("node-unschedulable", "taint-toleration", "node-name", "dynamic-resources"),
    *("node-affinity", "node-ports"),
    *("volume-restrictions", "node-volume-limits", "volume-binding", "volume-zone"),
    *("pod-topology-spread", "inter-pod-affinity"),
)
"""Default predicates for pods."""


def announce(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str]) -> None:
    """Make installed packages announce these plugins: (name, module or module:attribute)."""
    points = [metadata.EntryPoint(name, value, "yunikorn") for name, value in entries]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "yunikorn" else [])


def test_third_parties_follow_the_defaults_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, cls in (("mod_b", Other), ("mod_a", Plain)):
        module = types.ModuleType(name)
        module.yunikorn_predicates = hookimpl(lambda cls=cls: [cls])  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    announce(monkeypatch, ("zz", "mod_a"), ("aa", "mod_b"))
    loaded = Registry.load()
    assert [offer.plugin for offer in loaded.offers()][-2:] == ["aa", "zz"]
    assert loaded.broken == []
    assert [offer.name for offer in Registry.load(third_party=False).offers(PREDICATE)] == [
        "node-selector",
        "taints",
        "spread",
        "anti-affinity",
        "licences",
        "rm",
        *KUBERNETES,
    ]


def test_every_entry_point_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "leaves_at_import.py").write_text("raise SystemExit('no licence')\n", "utf-8")
    (tmp_path / "has_a_typo.py").write_text("def broken(:\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sound = types.ModuleType("sound")
    sound.yunikorn_predicates = hookimpl(lambda: [Plain])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sound", sound)
    announce(
        monkeypatch,
        ("a", "no_such_module"),
        ("b", "leaves_at_import"),
        ("c", "has_a_typo"),
        ("d", "sound:missing"),
        ("e", "not a module!"),
        ("f", "sound"),
    )
    loaded = Registry.load()
    assert loaded.find(PREDICATE, "plain").plugin == "f"
    assert [broken.plugin for broken in loaded.broken] == ["a", "b", "c", "d", "e"]
    assert [broken.reason.partition(" (")[0] for broken in loaded.broken[:4]] == [
        "importing: ModuleNotFoundError: No module named 'no_such_module'",
        "importing: SystemExit: no licence",
        "importing: SyntaxError: invalid syntax",
        "importing: AttributeError: module 'sound' has no attribute 'missing'",
    ]


@pytest.mark.parametrize("module", DEFAULT_PLUGINS)
def test_default_plugins_pass_the_checks_of_all_plugins(module: str) -> None:
    """Check here what a start does not check."""
    registry = Registry()
    assert registry.register(import_default(module), module), registry.broken
    assert registry.offers() == [
        attrs.evolve(offer, distribution="", version="")
        for offer in Registry.load(third_party=False).offers()
        if offer.plugin == module
    ]


def test_the_kinds_of_every_default_module_are_declared() -> None:
    registry = Registry.load(third_party=False)
    found: dict[str, list[str]] = {}
    for offer in registry.offers():
        kinds = found.setdefault(offer.plugin, [])
        kinds += [offer.kind.id] if offer.kind.id not in kinds else []
    assert {module: tuple(kinds) for module, kinds in found.items()} == DEFAULT_PLUGINS


NAMES_ONE = """
import sys
from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.registry import Registry
registry = Registry.load(third_party=False)
registry.find(PREDICATE, "taints")
loaded = {name for name in sys.modules if name.startswith("yunikorn_")}
assert "yunikorn_plugins.spread" in loaded
assert "yunikorn_plugins.ldap_groups" not in loaded, loaded
registry.import_defaults()
assert "yunikorn_plugins.ldap_groups" in sys.modules
"""


REGISTERS = """
import sys
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler

class Callback:
    def recv_update_response(self, response):
        pass

config = "partitions: [{name: default, queues: [{name: a}]}]"
scheduler = Scheduler(Registry.load(third_party=False), ManualClock())
scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), Callback())
loaded = {name for name in sys.modules if name.startswith("yunikorn_")}
assert "yunikorn_policies.node_sort" in loaded
# Node orders of Kubernetes share code with some of its predicates, but no predicate was looked up.
of_others = {"yunikorn_plugins.predicates", "yunikorn_plugins.events"}
of_others |= {"yunikorn_kubernetes.predicates.volume_binding"}
assert not loaded & of_others, loaded
"""


@pytest.mark.parametrize("program", [NAMES_ONE, REGISTERS], ids=["looked up", "resource manager"])
def test_defaults_are_imported_when_their_kind_is_looked_up(program: str, run_python: Run) -> None:
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", KINDS, ids=lambda kind: kind.id)
def test_order_does_not_depend_on_what_was_looked_up_first(first: PluginKind) -> None:
    registry = Registry.load(third_party=False)
    registry.offers(first)
    assert [offer.plugin for offer in registry.offers()] == [
        offer.plugin for offer in Registry.load(third_party=False).offers()
    ]


def test_default_that_cannot_be_imported_does_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yunikorn_plugins.os_groups", None)
    loaded = Registry.load(third_party=False)
    assert [broken.plugin for broken in loaded.broken] == ["yunikorn_plugins.os_groups"]
    found = {offer.plugin for offer in loaded.offers()}
    assert found == set(DEFAULT_PLUGINS) - {"yunikorn_plugins.os_groups"}
    with pytest.raises(
        UnknownPlugin, match=r"known: ldap; not loaded: plugin yunikorn_plugins\.os_groups \(yunikorn "
    ):
        loaded.find(RESOLVER, "os")
