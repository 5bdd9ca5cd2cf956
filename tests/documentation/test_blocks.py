"""Every code block of the documentation is tested: commands print what is shown, code runs, YAML is valid.

The test of a block depends on its language; `pages.py` lists the remarks that change it.

| language | test |
|---|---|
| `console` | each line after `$ ` is run, and prints the lines below; `...` matches anything |
| `sh` | run as a whole |
| `text` | printed by the last command before, perhaps among other lines |
| `python` | run after the blocks before it on its page; tests are run by the page's commands |
| `yaml` | a valid configuration or workload, or a piece of one |
| `json`, `toml` | parsed |
| `mermaid` | printed by `yunikorn states` |

Blocks of one page share a folder. A block sees the files that the page has shown above it, as a reader does
who goes from top to bottom. A block without a language, or in another language, is refused, because it would
be unchecked.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.documentation.frames import faults_of_configuration, faults_of_workload, is_configuration, whole
from tests.documentation.pages import CHECKOUT, PAGES, Block, blocks_of, shown
from tests.documentation.sandbox import Output, Sandbox, agrees, includes
from yunikorn.framework.registry import Registry
from yunikorn_commands.plugin_files import trusting
from yunikorn_lab.commands.states import diagram, lifecycles

SHOWN_PLUGINS = "yunikorn_"


@attrs.define(eq=False)
class Reader:
    """Applies the code blocks of a page in order, like a reader who follows the page."""

    sandbox: Sandbox
    registry: Registry
    names: dict[str, Any] = attrs.field(factory=dict)
    """Names that the Python blocks so far have defined."""
    last: Output = attrs.field(factory=lambda: Output("", 0))

    def take(self, block: Block) -> None:
        """Handle a block according to its language."""
        if "not run" in block.remarks:
            assert len(block.remarks["not run"].split()) > 2, "say why it cannot be run"
            return
        tries: dict[str, Callable[[Block], None]] = {
            "console": self.console,
            "sh": self.script,
            "text": self.text,
            "python": self.python,
            "yaml": self.yaml,
            "json": self.json,
            "toml": self.toml,
            "mermaid": self.mermaid,
        }
        if block.language not in tries:
            known = ", ".join(tries)
            raise AssertionError(
                f"no check for {block.language or 'no language'}: make it one of {known}, or say "
                "why it is not run, <!-- not run: REASON -->"
            )
        tries[block.language](block)

    def console(self, block: Block) -> None:
        """Run each command and compare its output."""
        called = list(commands(block.text))
        for number, (command, output) in enumerate(called, 1):
            self._run(command, block, last=number == len(called))
            if output:
                assert agrees(output, self.last.text), (
                    f"$ {command}\nis shown as printing\n{output}but prints\n{self.last.text}"
                )

    def script(self, block: Block) -> None:
        """Run the block as a whole."""
        self._run(block.text, block)

    def _run(self, script: str, block: Block, *, last: bool = True) -> None:
        self.last = self.sandbox.run(script, block.remarks.get("runs until", "") if last else "")
        allowed = {0, *(int(status) for status in block.remarks.get("exits", "").split())}
        assert self.last.status in allowed, f"$ {script}\nends with {self.last.status}:\n{self.last.text}"

    def text(self, block: Block) -> None:
        """Check that a command printed the text."""
        if block.file:
            return
        if "output of" in block.remarks:
            self._run(block.remarks["output of"], block)
        assert includes(block.text, self.last.text), f"this was not said, but\n{self.last.text}"

    def python(self, block: Block) -> None:
        """Run the block, unless it is a test."""
        if Path(block.file).name.startswith("test_"):
            return
        before = set(self.names)
        exec(compile(block.text, block.place, "exec", dont_inherit=True), self.names)
        hooks = [name for name in self.names if name.startswith(SHOWN_PLUGINS)]
        if any(name not in before or f"def {name}(" in block.text for name in hooks):
            self._offer(block)

    def _offer(self, block: Block) -> None:
        module = type(sys)(f"shown_at_line_{block.line}")
        exec(compile(block.text, block.place, "exec", dont_inherit=True), module.__dict__)
        assert self.registry.register(module, block.place), self.registry.broken

    def yaml(self, block: Block) -> None:
        """Check a configuration or workload; it has to be invalid if its remark says so."""
        part_of = block.remarks.get("part of", "")
        text = whole(block.text, part_of)
        if not is_configuration(block.text, part_of):
            failures = faults_of_workload(text, self.sandbox.folder)
        elif self.sandbox.has_installed:
            self.sandbox.write("shown.yaml", text)
            output = self.sandbox.run("yunikorn validate shown.yaml")
            failures = [output.text] if output.status or "warning" in output.text else []
        else:
            # What a configuration loads from a file is offered by that file only, not by the page as well.
            registry = Registry.load() if "load:" in text else self.registry
            failures = faults_of_configuration(text, trusting(registry, self.sandbox.folder))
        assert bool(failures) == ("wrong" in block.remarks), "\n".join(failures) or "nothing is wrong with it"

    def json(self, block: Block) -> None:
        """Parse one value, or one per line; lines with # are comments."""
        try:
            json.loads(block.text)
        except ValueError:
            for line in block.text.splitlines():
                if line.strip() and not line.startswith("#"):
                    json.loads(line)

    def toml(self, block: Block) -> None:
        """Parse TOML."""
        tomllib.loads(block.text)

    def mermaid(self, block: Block) -> None:
        """Check a state diagram."""
        assert any(block.text in diagram(lifecycle) for lifecycle in lifecycles()), "run `yunikorn states`"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a console block, each with the output that is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = 1
        while lines[end - 1].rstrip("\n").endswith("\\"):
            end += 1
        yield "".join(lines[:end]).rstrip("\n"), "".join(lines[end:])


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader with an empty folder."""
    sandbox = Sandbox(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Reader(sandbox, Registry.load(third_party=False))


WITH_BLOCKS = [page for page in PAGES if blocks_of(page)]


def follow(blocks: Iterable[Block], reader: Reader) -> None:
    """Take blocks from top to bottom; raises `AssertionError` with the place of the first wrong one."""
    for block in blocks:
        for lent in block.remarks.get("with", "").split():
            reader.sandbox.lend(*lent.split("="))
        if block.file:
            reader.sandbox.write(block.file, block.text)
        try:
            reader.take(block)
        except Exception as error:
            raise AssertionError(f"{block.place}: {error}") from error


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=shown)
def test_blocks_of_a_page_work(page: Path, reader: Reader) -> None:
    follow(blocks_of(page), reader)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=shown)
def test_test_files_of_a_page_are_run(page: Path) -> None:
    run = "\n".join(block.text for block in blocks_of(page) if block.language in ("console", "sh"))
    for block in blocks_of(page):
        if Path(block.file).name.startswith("test_"):
            assert Path(block.file).name in run or "pytest" in run, f"{block.place} is never run"


def test_first_command_of_the_readme_shows_a_cluster(reader: Reader) -> None:
    first = next(block for block in blocks_of(CHECKOUT / "README.md") if block.language == "sh")
    reader.script(attrs.evolve(first, text=first.text.rpartition(" && ")[2]))
    assert "root.research" in reader.last.text


# -- the runner itself -----------------------------------------------------------------------------------


def test_shown_output_must_equal_actual_output() -> None:
    assert agrees("a\nb\n", "a  \nb")
    assert agrees("a ... c\n...\n", "a b c\nd\ne\n")
    assert not agrees("a\n", "a\nb\n")
    assert includes("b\nc", "a\nb\nc\nd")
    assert not includes("b\nd", "a\nb\nc\nd")
    assert not includes("b", "abc")


def page_with(text: str, folder: Path) -> Block:
    """Return the only block of a page."""
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    (block,) = blocks_of(page)
    return attrs.evolve(block, page=PAGES[0])


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ false\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "```sh\nyunikorn validate missing.yaml\n```\n",
        "```python\nassert False\n```\n",
        "```python\nfrom yunikorn.api import hookimpl as h\n@h\ndef yunikorn_predicates(): return 1\n```\n",
        "```yaml\npartitions: [{}]\n```\n",
        "```yaml\na: 1\n```\n",
        "<!-- part of: rule -->\n```yaml\ncreat: true\n```\n",
        "<!-- wrong -->\n```yaml\npartitions: []\n```\n",
        "```json\n{a}\n```\n",
        "```toml\na\n```\n",
        "```mermaid\na\n```\n",
        "```text\nnobody said this\n```\n",
        "```\na drawing\n```\n",
        "<!-- not run: no -->\n```sh\ntrue\n```\n",
        "<!-- runs until: never -->\n```sh\necho always\n```\n",
    ],
)
def test_wrong_block_is_detected(text: str, reader: Reader) -> None:
    block = page_with(text, reader.sandbox.folder)
    with pytest.raises((AssertionError, ValueError)):
        reader.take(block)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- exits: 1 -->\n```console\n$ false\n$ echo a\na\n```\n",
        "<!-- runs until: ready -->\n<!-- exits: 130 -->\n```sh\necho ready; exec sleep 1000\n```\n",
        "<!-- part of: queue -->\n```yaml\nmaxapplications: 3\n```\n",
        "<!-- output of: echo a; echo b -->\n```text\nb\n```\n",
        "<!-- not run: it is a drawing -->\n```\n/\\\n```\n",
    ],
)
def test_right_block_is_accepted(text: str, reader: Reader) -> None:
    reader.take(page_with(text, reader.sandbox.folder))


def test_a_block_sees_only_files_shown_above_it(reader: Reader) -> None:
    command = "```sh\ncat notes/a.txt\n```\n"
    shown_file = "<!-- file: notes/a.txt -->\n```text\nhello\n```\n"
    page = reader.sandbox.folder / "page.md"
    page.write_text(shown_file + command, "utf-8")
    above = [attrs.evolve(block, page=PAGES[0]) for block in blocks_of(page)]
    with pytest.raises(AssertionError, match="No such file"):
        follow(reversed(above), reader)
    follow(above, reader)


def test_unknown_remark_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such remark 'norun'"):
        page_with("<!-- norun: a reason -->\n```sh\ntrue\n```\n", tmp_path)
