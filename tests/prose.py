"""Lint of the prose: docstrings, comments, pages and settings, by the rules of docs/glossary.md.

Run it by hand with `python -m tests.prose [PATH ...]`; `tests/test_prose.py` keeps the project clean.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent
PLACES = (
    *("yunikorn", "plugins", "policies", "tests", "benchmarks", "examples", "docs"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "mkdocs.yml"),
)
"""Folders and files that are read."""
GENERATED = re.compile(r"wire/generated|(^|/)(build|[^/]*\.egg-info|\.[^/]*)/")
"""Paths that are left out: generated code, and what builds leave behind."""
KINDS = {
    "py": "python",
    "md": "page",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "text",
    "cfg": "text",
    "ini": "text",
}
"""Reader of each file suffix; templates of `yunikorn plugins new` have an additional suffix `.txt`."""
READ = tuple(f".{end}" for end in KINDS)
BLOCKS = {
    "python": "python",
    "py": "python",
    "yaml": "yaml",
    "toml": "text",
    "sh": "yaml",
    "console": "yaml",
    "json": "yaml",
}
"""Reader of each language of a fenced block in a page."""

OPENINGS = re.compile(r"(What|Whether|Who|Whoever|Whose|Have|How|When|Where|Which|Why|It|They)\b")
"""First words of a docstring that hide its subject."""
PHRASES = re.compile(
    r"""(?ix)
    \b (for\ ever | nobody | somebody | whoever | anew | misdeeds? | deeds? | in\ vain | as\ good\ as
      | comes\ to\ pass | has\ its\ say | of\ age | suffers?) \b
    | \b facts \s* § | \( facts \b | ; \s facts \b
    | \b decisions? ,? \s (\d | ")
    | \b ([a-z-]+ \s seed \b (?=[;)]) | seed: | \( seed) """
)
"""Phrases that tell a newcomer nothing, and references that no reader can follow."""


@attrs.frozen(order=True)
class Slip:
    """A place where the prose breaks a rule."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def slips_of_python(path: str, source: str) -> Iterator[Slip]:
    """Slips in the docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                opening = OPENINGS.match(text.lstrip())
                if opening:
                    yield Slip(path, node.lineno, f'a docstring that begins with "{opening.group()}"')
                yield from _phrases(path, node.lineno, text)
    # A line without a slip after a # has none in a comment. The tokenizer takes longer than all the rest.
    if not any("#" in line and PHRASES.search(line.partition("#")[2]) for line in source.splitlines()):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _phrases(path, token.start[0], token.string)


def slips_of_page(path: str, text: str) -> Iterator[Slip]:
    """Slips in a page of the documentation, including docstrings and comments of its blocks of code."""
    language: str | None = None
    block: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            if language is None:
                language, block = line.strip().strip("`").partition(" ")[0], []
            else:
                for slip in _slips_of(BLOCKS.get(language, ""), path, textwrap.dedent("\n".join(block))):
                    yield attrs.evolve(slip, line=slip.line + number - len(block) - 1)
                language = None
        elif language is not None:
            block.append(line)
        else:
            yield from _phrases(path, number, _without_code(line))


def slips_of_yaml(path: str, text: str) -> Iterator[Slip]:
    """Slips in the comments of a file in which `#` begins a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(^|\s)#.*", line)
        if comment:
            yield from _phrases(path, number, _without_code(comment.group().strip()))


def slips_of_text(path: str, text: str) -> Iterator[Slip]:
    """Slips in a whole file, such as the descriptions and comments of packaging."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from _phrases(path, number, _without_code(line))


def slips_of_file(path: str, text: str) -> Iterator[Slip]:
    """Slips in a file, read by its suffix; empty for unknown suffixes."""
    name = path
    if path.endswith(".txt"):
        name, text = path.removesuffix(".txt"), re.sub(r"\{\{(\w+)\}\}", r"a_\1", text)
    yield from _slips_of(KINDS.get(name.rpartition(".")[2], ""), path, text)


def _slips_of(kind: str, path: str, text: str) -> Iterator[Slip]:
    match kind:
        case "python":
            yield from slips_of_python(path, text)
        case "page":
            yield from slips_of_page(path, text)
        case "yaml":
            yield from slips_of_yaml(path, text)
        case "text":
            yield from slips_of_text(path, text)


def _without_code(line: str) -> str:
    return re.sub(r"`[^`]+`", "`code`", line)


def _phrases(path: str, first: int, text: str) -> Iterator[Slip]:
    for number, line in enumerate(text.splitlines(), first):
        for found in PHRASES.finditer(line):
            yield Slip(path, number, f'"{found.group().strip()}" in "{line.strip()}"')


def find_slips(paths: list[Path]) -> list[Slip]:
    """All slips in these files and folders, by path and line."""
    found: list[Slip] = []
    for path in paths:
        files = sorted(path.rglob("*.*")) if path.is_dir() else [path]
        for file in files:
            name = file.resolve().relative_to(ROOT.resolve()).as_posix()
            if name.removesuffix(".txt").endswith(READ) and not GENERATED.search(name):
                found.extend(slips_of_file(name, file.read_text("utf-8")))
    return sorted(found)


def main() -> int:
    """Print the slips in the files and folders that the command line names."""
    slips = find_slips([Path(name) for name in sys.argv[1:]] or [ROOT / name for name in PLACES])
    print(*slips, sep="\n")
    print(f"{len(slips)} slips", file=sys.stderr)
    return int(bool(slips))


if __name__ == "__main__":
    raise SystemExit(main())
