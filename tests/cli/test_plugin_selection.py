"""Selection of installed plugins by an operator; slow imports and prints of plugins in a command."""

from __future__ import annotations

import functools
import json
import logging
import sys
from pathlib import Path

import pytest

from tests.cli.test_plugins import Run, install
from tests.core.kit import document, partition, queue
from yunikorn.cli.main import main
from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.registry import Registry

LOUD = """
import sys
from yunikorn.api import Predicate, hookimpl
print("imported NAME")
sys.stdout.write("and more\\n")

class Check(Predicate):
    name = "NAME"
    def __init__(self):
        print('{"made": true}')
    def check(self, ask, node):
        print("checking")

@hookimpl
def yunikorn_predicates():
    return [Check]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two installed distributions, each with a plugin and a predicate of its name."""
    for name in ("loud-one", "loud-two"):
        install(tmp_path, name, "1.0", LOUD.replace("NAME", name))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("YUNIKORN_PLUGINS", raising=False)
    for module in ("loud_one", "loud_two"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    assert main([*arguments, "plugins", "--json"]) == 0
    return {one["distribution"] for one in json.loads(capsys.readouterr().out)["plugins"]} - {"yunikorn"}


def test_plugins_that_print_do_not_spoil_the_output(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--json"]) == 0
    written = capsys.readouterr()
    assert {one["name"] for one in json.loads(written.out)["plugins"]} > {"loud-one", "loud-two"}
    assert "imported loud-one\nand more\n" in written.err
    config = site / "queues.yaml"
    config.write_text(document(partition(queue("a"), predicates=["loud-one"])), "utf-8")
    assert main(["validate", "--json", str(config)]) == 0
    written = capsys.readouterr()
    assert json.loads(written.out)["valid"]
    assert '{"made": true}' in written.err


def test_no_plugins_and_the_variable_select_installed_plugins(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listed(capsys) == {"loud-one", "loud-two"}
    assert listed(capsys, "--no-plugins") == set()
    assert listed(capsys) == {"loud-one", "loud-two"}, "for one command only"
    wanted: dict[str, set[str]] = {
        "off": set(),
        "loud-two": {"loud-two"},
        "loud-one, loud-two": {"loud-one", "loud-two"},
    }
    for value, found in wanted.items():
        monkeypatch.setenv("YUNIKORN_PLUGINS", value)
        assert listed(capsys) == found
    monkeypatch.setenv("YUNIKORN_PLUGINS", "loud-tow")
    assert main(["plugins"]) == 2
    assert "no plugin or distribution is called 'loud-tow'" in capsys.readouterr().err


def test_plugins_that_are_not_selected_or_disabled_are_not_imported(site: Path) -> None:
    registry = Registry.load(only=["loud-two"])
    assert registry.find(PREDICATE, "loud-two")
    assert "loud_one" not in sys.modules
    sys.modules.pop("loud_two")
    registry = Registry.load()
    disabled = {"disable": ["loud-one", "app-sort:fair"]}
    text = document(partition(queue("a"), predicates=["loud-two"]), plugins=disabled)
    assert check_config(text, registry).problems == ()
    assert "loud_two" in sys.modules
    assert "loud_one" not in sys.modules
    assert registry.find(PREDICATE, "loud-one"), "other configurations may use it"
    with pytest.raises(UsageError, match="installed: loud-one, loud-two"):
        Registry.load(only=["nothing"])


def test_slow_imports_are_named(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "yunikorn.plugins")
    moments = iter([0.0, 1.9, 10.0, 12.5])
    Registry.load(stopwatch=lambda: next(moments)).offers()
    (warning,) = [one.getMessage() for one in caplog.records if "importing" in one.getMessage()]
    assert warning.startswith("importing plugin loud-two (loud-two 1.0) took 2.5 s")


EXITS = """
import sys, threading
from yunikorn.api import Predicate, hookimpl

class Check(Predicate):
    name = "exits"
    def __init__(self):
        ABUSE
    def check(self, ask, node):
        return None

@hookimpl
def yunikorn_predicates():
    return [Check]
"""


@pytest.mark.parametrize("abuse", ["sys.exit(0)", "raise KeyboardInterrupt", "raise SystemExit"])
def test_a_plugin_that_exits_is_contained_in_a_command(tmp_path: Path, run_python: Run, abuse: str) -> None:
    install(tmp_path, "exits", "1.0", EXITS.replace("ABUSE", abuse))
    config = tmp_path / "queues.yaml"
    config.write_text(document(partition(queue("a"), predicates=["exits"])), "utf-8")
    run = functools.partial(run_python, "-m", "yunikorn")
    done = run("validate", str(config), installed=tmp_path)
    assert done.returncode == 1
    assert "plugin exits of exits (exits 1.0): creating it: " in done.stdout


def test_plugins_that_are_not_required_and_missing_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "queues.yaml"
    missing = {"name": "missing", "required": False}
    config.write_text(document(partition(queue("a"), predicates=["taints", missing])), "utf-8")
    assert main(["plugins", "--config", str(config)]) == 0
    text = capsys.readouterr().out
    assert (
        "Not used, because of required: false:\n  partitions[0].predicates[1]: no predicate is called" in text
    )
    assert main(["plugins", "--json", "--config", str(config)]) == 0
    assert list(json.loads(capsys.readouterr().out)["left_out"]) == ["partitions[0].predicates[1]"]
