"""Checks of the documentation: its links resolve, and its commands exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.pages import CHECKOUT, PAGES, shown
from yunikorn_commands.command_group import group
from yunikorn_commands.default_commands import DEFAULT_COMMANDS

README = (CHECKOUT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return [body for found, body in _BLOCK.findall(text) if found == language]


def one_line(command: str) -> str:
    """Return a command that is broken over lines as one line."""
    return re.sub(r" \\\n +", " ", command).strip()


# -- the two commands ---------------------------------------------------------------------------------


def test_readme_starts_with_two_commands_without_long_lines() -> None:
    commands = blocks(README, "sh")
    assert len(commands) == 2
    assert all("\n" not in one_line(command) for command in commands)
    assert all(len(line) <= 100 for command in commands for line in command.splitlines())
    assert "\n## " not in README.partition(commands[1])[0]
    assert " yunikorn simulate " in commands[0].replace(".venv/bin/", " ")
    assert " pytest " in commands[1].replace(".venv/bin/", " ")


def test_ci_runs_exactly_the_readmes_test_command() -> None:
    script = (CHECKOUT / ".ci" / "run").read_text("utf-8")
    assert script.splitlines()[-1] == one_line(blocks(README, "sh")[1])


def test_the_files_that_readme_names_exist() -> None:
    words = shlex.split(one_line(blocks(README, "sh")[0]))
    files = [word for word in words if word.endswith(".yaml")]
    assert len(files) == 2
    assert all((CHECKOUT / file).is_file() for file in files)


def test_every_command_is_on_the_page_of_commands() -> None:
    page = (CHECKOUT / "docs" / "commands.md").read_text("utf-8")
    for name in DEFAULT_COMMANDS:
        assert f"`yunikorn {name}`" in page


def test_readme_shows_the_first_five_commands() -> None:
    assert len(re.findall(r"^\| `yunikorn ", README, re.MULTILINE)) == 5


# -- links and commands everywhere --------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_have_targets(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
            }


def calls(text: str) -> Iterator[list[str]]:
    """Return every call of `yunikorn` in the console blocks of a page, as words after the program."""
    for block in [*blocks(text, "console"), *blocks(text, "sh")]:
        for line in block.replace("\\\n", " ").splitlines():
            for call in line.removeprefix("$ ").split("&&"):
                words = shlex.split(call, comments=True)
                if words and Path(words[0]).name == "yunikorn":
                    yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_documented_calls_have_real_options(page: Path) -> None:
    for words in calls(page.read_text("utf-8")):
        if words[0].startswith("-"):
            continue
        with group.make_context("yunikorn", ["--traceback"], resilient_parsing=True) as context:
            command = group.get_command(context, words[0])
            assert command is not None, words
            parameters = command.get_params(context)
            options = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
        given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert given <= options, f"{words}: no such option {given - options}"
