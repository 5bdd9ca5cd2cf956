"""Parser of the documentation pages: their code blocks, and the remarks that say how to test each block.

A remark is a comment on a line of its own, right above the block (or above the line with its file's name),
where readers do not see it:

    <!-- not run: REASON -->        the block is neither run nor checked; a reason is required
    <!-- file: NAME -->             the block is written to the file NAME for the commands of the page
    <!-- with: NAME=PATH ... -->    copies files of the checkout to these names before
    <!-- part of: FRAME -->         a piece of YAML, checked within this frame of `frames.py`
    <!-- wrong -->                  a configuration that must be refused
    <!-- exits: STATUS -->          the commands may end with this status besides 0
    <!-- runs until: TEXT -->       each line (of `console`, the last) is interrupted once it printed TEXT
    <!-- output of: COMMAND -->     a text that this command prints, which no block shows

A line above the block that consists of a name in backticks names its file, too: `queues.yaml`.
"""

from __future__ import annotations

import re
from pathlib import Path

import attrs

CHECKOUT = Path(__file__).parent.parent.parent
PAGES = [
    CHECKOUT / "README.md",
    CHECKOUT / "CHANGELOG.md",
    CHECKOUT / "CONTRIBUTING.md",
    CHECKOUT / "SECURITY.md",
    *sorted((CHECKOUT / "docs").rglob("*.md")),
    *sorted(CHECKOUT.glob("examples/*/README.md")),
    *sorted(CHECKOUT.glob("plugins/*/README.md")),
    *sorted(CHECKOUT.glob("policies/*/README.md")),
    CHECKOUT / "benchmarks" / "README.md",
]
REMARKS = ("not run", "file", "with", "part of", "wrong", "exits", "runs until", "output of")

_FENCE = re.compile(r"^( *)```([\w-]*)[^\n`]*$")
_REMARK = re.compile(r"^ *<!-- ([a-z ]+?)(?:: (.*?))? -->$")
_FILE = re.compile(r"^ *`([\w./-]+)`$")


@attrs.frozen
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """Line of the first fence, from 1."""
    language: str
    text: str
    remarks: dict[str, str]

    @property
    def file(self) -> str:
        """Name of the file it is written to; empty for none."""
        return self.remarks.get("file", "")

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(CHECKOUT).as_posix()}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return all blocks of a page, in order; raises `ValueError` for an invalid remark."""
    lines = page.read_text("utf-8").splitlines()
    found: list[Block] = []
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        end = next(at for at in range(number + 1, len(lines)) if lines[at].strip() == "```")
        indent = len(fence[1])
        text = "".join(line[indent:] + "\n" for line in lines[number + 1 : end])
        found.append(Block(page, number + 1, fence[2], text, _remarks(page, lines, number)))
        number = end + 1
    return found


def _remarks(page: Path, lines: list[str], fence: int) -> dict[str, str]:
    found: dict[str, str] = {}
    at = fence - 1
    while at >= 0:
        if (named := _FILE.match(lines[at])) and "file" not in found:
            found["file"] = named[1]
        elif remark := _REMARK.match(lines[at]):
            if remark[1] not in REMARKS:
                raise ValueError(
                    f"{page}:{at + 1}: no such remark '{remark[1]}'; known: {', '.join(REMARKS)}"
                )
            found[remark[1]] = remark[2] or ""
        elif lines[at].strip():
            break
        at -= 1
    return found


def shown(page: Path) -> str:
    """Return a path as a test shows it."""
    return page.relative_to(CHECKOUT).as_posix()
