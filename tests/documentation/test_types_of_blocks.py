"""Python code on the pages for plugin authors passes the type checks recommended to authors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.documentation.pages import PAGES, Block, blocks_of, shown

Run = Callable[..., subprocess.CompletedProcess[str]]

FOR_AUTHORS = ("README.md", "docs/start.md", "docs/plugins", "docs/howto", "examples/yunikorn-")


def blocks() -> Iterator[Block]:
    """Return all Python blocks for plugin authors."""
    for page in PAGES:
        if shown(page).startswith(FOR_AUTHORS):
            yield from (block for block in blocks_of(page) if block.language == "python")


def file_of(block: Block) -> str:
    """Return a file name for the block: its own, or one made from its place."""
    return Path(block.file).name or re.sub(r"\W", "_", block.place) + ".py"


def test_every_block_passes_mypy_strict(tmp_path: Path, run_python: Run) -> None:
    found = {file_of(block): block.text for block in blocks()}
    assert len(found) == len(list(blocks())), "two blocks have one name"
    for name, text in found.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert len(found) > 20
    settings = ["--strict", "--no-error-summary", "--follow-imports=silent", "--cache-dir=cache"]
    checkout = [path for path in sys.path if (Path(path) / "yunikorn").is_dir() and "site-" not in path]
    # Installed packages must not be named, and provide their types themselves.
    done = run_python(
        *("-m", "mypy", *settings, *sorted(found)),
        cwd=tmp_path,
        MYPYPATH=os.pathsep.join([str(tmp_path), *checkout]),
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
