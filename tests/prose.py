"""Lint of the prose: docstrings, comments and pages, by the rules of docs/glossary.md.

Run it by hand with `python -m tests.prose [PATH ...]`; `tests/test_prose.py` keeps the project clean.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parent.parent
PYTHON = ("yunikorn", "plugins", "policies", "tests", "benchmarks", "examples")
"""Folders whose Python files are read."""
GENERATED = "wire/generated"

OPENINGS = re.compile(r"(What|Whether|Who|Whoever|Whose|Have)\b")
"""First words that make the subject of a docstring a riddle."""
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
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _phrases(path, token.start[0], token.string)


def slips_of_page(path: str, text: str) -> Iterator[Slip]:
    """Slips in a page of the documentation, code left out."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield from _phrases(path, number, re.sub(r"`[^`]+`", "`code`", line))


def _phrases(path: str, first: int, text: str) -> Iterator[Slip]:
    for number, line in enumerate(text.splitlines(), first):
        for found in PHRASES.finditer(line):
            yield Slip(path, number, f'"{found.group().strip()}" in "{line.strip()}"')


def find_slips(paths: list[Path]) -> list[Slip]:
    """All slips in these files and folders, by path and line."""
    found: list[Slip] = []
    for path in paths:
        files = sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]
        for file in files:
            name = file.resolve().relative_to(ROOT.resolve()).as_posix()
            if GENERATED in name or "/." in f"/{name}":
                continue
            text = file.read_text("utf-8")
            found.extend(slips_of_python(name, text) if file.suffix == ".py" else slips_of_page(name, text))
    return sorted(found)


def main() -> int:
    """Print the slips in the files and folders that the command line names."""
    slips = find_slips([Path(name) for name in sys.argv[1:]] or [ROOT / name for name in PYTHON])
    print(*slips, sep="\n")
    print(f"{len(slips)} slips", file=sys.stderr)
    return int(bool(slips))


if __name__ == "__main__":
    raise SystemExit(main())
