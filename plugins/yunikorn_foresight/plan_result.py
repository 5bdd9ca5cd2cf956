"""Result of `yunikorn plan`: what another configuration changes, as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from yunikorn.errors import printable
from yunikorn.text import number_of
from yunikorn_foresight.plan_placements import PlacementChange
from yunikorn_foresight.plan_state import Excess, LeavingQueue

FORMAT = 1
"""Version of the JSON document."""
UNCHANGED, REFUSED, CHANGED = 0, 1, 2
"""Exit statuses."""
MOST_LINES = 20
"""Number of lines of a section of a text; JSON has all."""


@attrs.frozen
class Plan:
    """Effects of a configuration on a scheduler."""

    file: str
    scheduler: str
    """Server or snapshot."""
    differences: Sequence[str] = ()
    """Differences from the present configuration, in the language of queues."""
    problems: Sequence[str] = ()
    """Problems for which the scheduler refuses the configuration."""
    leaving: Sequence[LeavingQueue] = ()
    excesses: Sequence[Excess] = ()
    placements: Sequence[PlacementChange] = ()
    submissions: int = 0
    """Number of submissions that both rule sets were asked about."""
    has_changes: bool = True
    """False if the differences are left out."""
    ahead_title: str = ""
    ahead: Sequence[str] = ()
    """Differences in the time ahead, in sentences."""
    past_title: str = ""
    past: Sequence[str] = ()
    """Differences there would have been in a recorded time, in sentences."""

    @property
    def status(self) -> int:
        """Exit status: 0 if nothing changes, 1 if the configuration is refused, 2 if something changes."""
        return REFUSED if self.problems else CHANGED if self.differences else UNCHANGED

    @property
    def verdict(self) -> str:
        """Sentence that sums it up."""
        if self.problems:
            return f"{self.file} is refused: {number_of(len(self.problems), 'problem')}"
        if not self.differences:
            return f"{self.file} changes nothing in {self.scheduler}"
        return f"{self.file} makes {number_of(len(self.differences), 'change')} in {self.scheduler}"

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Yield titles and sentences."""
        if self.problems:
            yield "Problems", list(self.problems)
            return
        if not self.differences:
            return
        if self.has_changes:
            yield "Changes", list(self.differences)
        now = [*(one.text for one in self.leaving), *(one.text for one in self.excesses)]
        yield "At once", now or ["no queue, user or group uses more than it may, and none is removed"]
        title = f"Placement of {number_of(self.submissions, 'recent submission')}"
        yield title, [one.text for one in self.placements] or ["all go to the same queues"]
        if self.ahead_title:
            yield self.ahead_title, list(self.ahead)
        if self.past_title:
            yield self.past_title, list(self.past)

    def to_text(self) -> str:
        """Return the plan for a terminal."""
        parts = [printable(self.verdict)] if self.has_changes else []
        for title, lines in self.sections():
            parts += ["", f"{title}:", *(f"  {printable(line)}" for line in _some(lines))]
        return "\n".join(parts) + "\n"

    def to_markdown(self) -> str:
        """Return the plan as Markdown for a pull request; what the input says is shown as it is written."""
        parts = [f"### {_escaped(self.verdict)}"]
        for title, lines in self.sections():
            parts += ["", f"**{_escaped(title)}**", "", *(f"- {_escaped(line)}" for line in _some(lines))]
        return "\n".join(parts) + "\n"

    def to_json(self) -> str:
        """Return the plan as JSON."""
        entry: dict[str, Any] = {"format": FORMAT, "verdict": self.verdict, "status": self.status}
        for field in attrs.fields(Plan):
            value = getattr(self, field.name)
            if isinstance(value, (tuple, list)):
                value = [attrs.asdict(one) if attrs.has(type(one)) else one for one in value]
            entry[field.name] = value
        return json.dumps(entry, indent=2, ensure_ascii=False) + "\n"


def _some(lines: Sequence[str]) -> list[str]:
    shown = list(lines[:MOST_LINES])
    left = len(lines) - len(shown)
    return [*shown, f"and {left} more"] if left else shown


def _escaped(text: str) -> str:
    """Return text without markup and mentions of users in Markdown."""
    shown = printable(text)
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|~@" else char for char in shown)
