"""Checks of docs/sessions.md: its code runs, and its bounds are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from yunikorn.clock import SECOND
from yunikorn.interface import constants
from yunikorn.interface.checks import LONGEST_NAME
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.session_state import KEPT
from yunikorn.model.context import Timeouts
from yunikorn.states import SESSION

PAGE = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text("utf-8")


def test_code_of_the_page_runs_in_order() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/sessions.md", "exec"), names)


def test_numbers_on_the_page_are_actual() -> None:
    assert Timeouts().session == 5 * 60 * SECOND
    assert "is over (5 minutes)" in PAGE
    assert f"up to\n{KEPT:,} entries" in PAGE
    assert f"more than {LONGEST_NAME:,} bytes" in PAGE


def test_calls_and_states_on_the_page_exist() -> None:
    table = PAGE.partition("| call |")[2].partition("\n\n")[0]
    calls = re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)
    assert len(calls) >= 6
    assert all(callable(getattr(Scheduler, call)) for call in calls)
    states = set(re.findall(r"\b(Running|Paused|Stopped|Init)\b", table))
    assert states <= set(SESSION.states)


def test_names_on_the_page_are_exported() -> None:
    for name in re.findall(r"`([A-Z][A-Z_0-9]+)`", PAGE.partition("## Names of attributes")[2]):
        assert hasattr(constants, name)
