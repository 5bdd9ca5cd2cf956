"""Files, tox environments and hooks that the pages for contributors name exist, and forms are complete."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.documentation.pages import CHECKOUT, PAGES, shown

GUIDES = sorted((CHECKOUT / "docs" / "how-to-add").glob("*.md"))
_ROW = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
_FILE = re.compile(r"`((?:\.github|benchmarks|docs|examples|plugins|policies|tests|yunikorn)/[\w./-]+)`")


def environments() -> set[str]:
    """Return the names of the tox environments."""
    tox = configparser.ConfigParser()
    tox.read(CHECKOUT / "tox.ini", encoding="utf-8")
    listed = tox["tox"]["env_list"].replace(",", " ").split()
    return {*listed, *(name.partition(":")[2] for name in tox.sections() if name.startswith("testenv:"))}


@pytest.mark.parametrize("page", GUIDES, ids=shown)
def test_files_in_the_tables_of_a_guide_exist(page: Path) -> None:
    rows = _ROW.findall(page.read_text("utf-8"))
    assert len(rows) > 5
    for row in rows:
        for name in [] if "(new)" in row else _FILE.findall(row):
            assert (CHECKOUT / name).exists(), name


def test_folders_of_the_inner_loop_exist() -> None:
    table = (
        (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8").partition("| change in |")[2].partition("\n\n")[0]
    )
    places = re.findall(r"tests/[\w./]+", table)
    assert len(places) > 15
    assert all((CHECKOUT / place).exists() for place in places)


def test_tox_environments_of_pages_exist() -> None:
    for page in PAGES:
        named = re.findall(r"tox -e ([\w,]+)", page.read_text("utf-8"))
        assert {name for names in named for name in names.split(",")} <= environments(), shown(page)


def test_hooks_run_programs_of_the_development_environment() -> None:
    config = yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert [hook["id"] for hook in hooks] == ["ruff-format", "ruff", "mypy", "prose"]
    for hook in hooks:
        assert hook["entry"].split()[0] in {f".venv/bin/{name}" for name in ("ruff", "mypy", "python")}


def test_forms_for_issues_are_complete() -> None:
    for name in ("bug", "feature"):
        form = yaml.safe_load((CHECKOUT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text("utf-8"))
        assert form["name"]
        assert form["description"]
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields)
        ids = [field["id"] for field in fields]
        assert len(set(ids)) == len(ids)


def test_coverage_has_a_floor() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
    assert settings["report"]["fail_under"] > 50
