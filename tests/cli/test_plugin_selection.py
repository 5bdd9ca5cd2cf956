"""Selection of installed plugins by an operator; slow imports and prints of plugins in a command."""

from __future__ import annotations

import functools
import json
import logging
import sys
from pathlib import Path

import pytest

from tests.core.kit import document, partition, queue
from tests.lab.commands.test_plugins import Run, install
from yunikorn.cli.main import main
from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.registry import Registry
from yunikorn_commands.plugin_files import trusting

LOUD = """
import sys
from yunikorn.api import Predicate, hookimpl
print("imported NAME")
sys.stdout.write("and more\\n")
sys.__stdout__.write("bypassed NAME\\n")

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
    assert "bypassed loud-one" in written.err
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


def test_slow_imports_of_files_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "yunikorn.plugins")
    file = tmp_path / "slow.py"
    file.write_text(LOUD.replace("NAME", "slow"))
    moments = iter([0.0, 2.5])
    registry = trusting(Registry.load(third_party=False, stopwatch=lambda: next(moments)), tmp_path)
    text = document(partition(queue("a"), predicates=["slow"]), plugins={"load": ["./slow.py"]})
    assert check_config(text, registry).problems == ()
    (warning,) = [one.getMessage() for one in caplog.records]
    assert warning == "importing plugin ./slow.py took 2.5 s"


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


NO_INTERRUPTS = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
runpy.run_module("yunikorn", run_name="__main__")
"""


def test_an_interrupt_by_a_plugin_is_contained_where_interrupts_are_ignored(
    tmp_path: Path, run_python: Run
) -> None:
    """A process that a shell starts in the background, or after `nohup`, ignores Ctrl-C from its start."""
    install(tmp_path, "exits", "1.0", EXITS.replace("ABUSE", "raise KeyboardInterrupt"))
    config = tmp_path / "queues.yaml"
    config.write_text(document(partition(queue("a"), predicates=["exits"])), "utf-8")
    done = run_python("-c", NO_INTERRUPTS, "validate", str(config), installed=tmp_path)
    assert done.returncode == 1
    assert "plugin exits of exits (exits 1.0): creating it: KeyboardInterrupt" in done.stdout


@pytest.mark.parametrize("traceback", [[], ["--traceback"]], ids=["plain", "traceback"])
def test_an_exit_from_code_that_a_plugin_has_replaced_is_an_error(
    tmp_path: Path, run_python: Run, traceback: list[str]
) -> None:
    source = "import json, sys\njson.JSONEncoder.encode = lambda *_: sys.exit(0)\n" + EXITS.replace(
        "ABUSE", "pass"
    )
    install(tmp_path, "exits", "1.0", source)
    done = run_python("-m", "yunikorn", *traceback, "plugins", "--json", installed=tmp_path)
    assert done.returncode not in (0, 1, 2)
    assert "Error: sys.exit() was called by a plugin or a library: 0" in done.stderr
    assert ("Traceback (most recent call last)" in done.stderr) == bool(traceback)


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


def disabling(site: Path, *names: str) -> str:
    """Write a configuration that disables plugins; returns its path."""
    config = site / "queues.yaml"
    config.write_text(document(partition(queue("a")), plugins={"disable": list(names)}), "utf-8")
    return str(config)


@pytest.mark.parametrize("wanted", ["off", "loud-two"])
@pytest.mark.parametrize(
    "name", ["loud-one", "loud-one@loud-one", "check@loud-one", "predicate:check@loud-one", "loud-two"]
)
def test_a_plugin_that_is_left_out_can_be_disabled(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wanted: str, name: str
) -> None:
    monkeypatch.setenv("YUNIKORN_PLUGINS", wanted)
    config = disabling(site, name)
    assert main(["validate", config]) == 0
    assert main(["plugins", "--config", config]) == 0
    assert f"Disabled:\n  {name}: not imported\n" in capsys.readouterr().out
    assert "loud_one" not in sys.modules


def test_an_override_by_a_plugin_that_is_left_out_means_nothing(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = site / "queues.yaml"
    for name, status in (("predicate:check@loud-one", 0), ("check@loud-one", 0), ("check@loud-three", 1)):
        config.write_text(document(partition(queue("a")), plugins={"override": [name]}), "utf-8")
        assert main(["--no-plugins", "validate", str(config)]) == status, capsys.readouterr()
    assert "no plugin of 'loud-three' is called 'check'" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["loud-three", "check@loud-three", "nothing:check@loud-one"])
def test_a_disabled_plugin_that_is_neither_installed_nor_left_out_is_an_error(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["--no-plugins", "validate", disabling(site, name)]) == 1
    assert f"no plugin is called '{name}'" in capsys.readouterr().out


def test_a_name_that_only_a_plugin_that_is_left_out_may_offer_is_refused_with_a_hint(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--no-plugins", "validate", disabling(site, "check")]) == 1
    assert "left out by YUNIKORN_PLUGINS: loud-one, loud-two; NAME@DISTRIBUTION" in capsys.readouterr().out


def test_plugins_that_a_configuration_disables_by_name_are_listed_and_not_imported(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "quitter", "1.0", "import sys; sys.exit(0)")
    config = disabling(site, "quitter", "loud-one", "loud-two@loud-two", "app-sort:fair")
    assert main(["plugins", "--config", config]) == 0
    text = capsys.readouterr().out
    for name in ("quitter", "loud-one", "loud-two@loud-two"):
        assert f"\n  {name}: not imported\n" in text
    assert "\n  app-sort:fair: application sort" in text
    assert "not installed" not in text
    assert not {"loud_one", "loud_two", "quitter"} & set(sys.modules)
    assert main(["plugins", "--json", "--config", config]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["broken"], data["disabled"]["quitter"]) == ([], [])


def test_an_offer_of_another_plugin_by_the_disabled_name_is_listed(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "third", "1.0", LOUD.replace("NAME", "loud-one"))
    assert main(["plugins", "--config", disabling(site, "loud-one")]) == 0
    text = capsys.readouterr().out
    assert "  loud-one: not imported; predicate loud-one of third (third 1.0)\n" in text
