"""Modules that can be compiled on request remain compilable, and behave equally (docs/performance.md).

The rules are checked on the sources, so that a checkout without compiled modules finds violations too.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parent.parent


def build_script() -> ModuleType:
    """The checkout's setup.py as a module; it builds nothing when it is not the main program."""
    spec = importlib.util.spec_from_file_location("build_script", CHECKOUT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = build_script()
MODULES: list[str] = BUILD.modules()
IMPORTED = re.compile(r"^ *from ([\w.]+) import ", re.MULTILINE)


def classes(name: str) -> list[ast.ClassDef]:
    """Return the classes of a file."""
    tree = ast.parse((CHECKOUT / name).read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("name", MODULES)
def test_classes_of_compiled_modules_are_plain(name: str) -> None:
    """A decorator or NamedTuple reads annotations when it is imported, which crashes in a compiled module."""
    for found in classes(name):
        assert not found.decorator_list, f"{found.name}: give it a file of its own that is not compiled"
        assert "NamedTuple" not in {ast.unparse(base) for base in found.bases}, found.name


@pytest.mark.parametrize("name", MODULES)
def test_attributes_that_are_deleted_are_declared(name: str) -> None:
    """A compiled class cannot lose an attribute that its `__deletable__` does not name."""
    tree = ast.parse((CHECKOUT / name).read_text("utf-8"))
    declared = {
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__deletable__"
        for each in ast.literal_eval(node.value)
    }
    deleted = {
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    assert deleted <= declared


def test_compiled_classes_are_extended_by_compiled_ones_only() -> None:
    """A class that is not compiled cannot inherit from one that is."""
    compiled_modules = {
        name.removeprefix("plugins/").removeprefix("policies/").removesuffix(".py").replace("/", ".")
        for name in MODULES
    }
    paths = [
        path for folder in ("yunikorn", "plugins", "policies") for path in (CHECKOUT / folder).rglob("*.py")
    ]
    for path in sorted(paths):
        name = path.relative_to(CHECKOUT).as_posix()
        text = path.read_text("utf-8")
        if name not in MODULES and compiled_modules.intersection(IMPORTED.findall(text)):
            compiled = {
                alias.asname or alias.name
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.ImportFrom) and node.module in compiled_modules
                for alias in node.names
            }
            for found in classes(name):
                bases = {ast.unparse(base).partition("[")[0] for base in found.bases}
                assert not bases & compiled, f"{name}: {found.name} has to be compiled too"


def test_modules_imported_by_plugin_authors_are_not_compiled() -> None:
    """The classes of plugin authors inherit from the contract's (docs/decisions/0048)."""
    read = {"yunikorn/api.py", "yunikorn/framework/hook_manager.py", "yunikorn/config/queues_yaml.py"}
    assert not read & set(MODULES)


def test_modules_that_check_untrusted_values_are_not_compiled() -> None:
    """Compiled code raises on a value of an unexpected type before any check can run."""
    assert not {name for name in MODULES if "update_handler" in name or "checks" in name or "wire" in name}


def test_compiled_generators_contain_no_membership_tests() -> None:
    """`x in generator()` has no counterpart in mypyc's generators."""
    for path in sorted((CHECKOUT / "yunikorn").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                right = ast.unparse(node.comparators[0])
                assert not right.endswith(".walk()"), f"{path.name}:{node.lineno} {right}"


@pytest.mark.parametrize(
    ("value", "compiled"), [(None, False), ("", False), ("0", False), ("1", True), ("true", True)]
)
def test_nothing_is_compiled_by_default(
    value: str | None, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("YUNIKORN_COMPILE", raising=False)
    if value is not None:
        monkeypatch.setenv("YUNIKORN_COMPILE", value)

    assert BUILD.asked() is compiled


def test_invalid_switch_value_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YUNIKORN_COMPILE", "maybe")

    with pytest.raises(
        SystemExit, match="YUNIKORN_COMPILE=maybe is not a boolean: set YUNIKORN_COMPILE to 1 or 0"
    ):
        BUILD.asked()


def test_missing_compiler_is_reported_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mypyc.py").write_text("raise ImportError\n")
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"],
        cwd=CHECKOUT,
        env={**os.environ, "YUNIKORN_COMPILE": "1", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert (
        "YUNIKORN_COMPILE=1 needs mypy where the package is built: pip install 'mypy >= 1.18'" in done.stderr
    )
    assert "Traceback" not in done.stderr
