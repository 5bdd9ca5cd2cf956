"""Processor time of every test function; `pytest --costs tests/slow.txt` writes the slow ones to a file.

Processor time hardly depends on other load of the machine. It includes child processes that have ended. A
fixture that several tests share is added to each of them, because the first to run sets it up.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import attrs
import pytest

LIMIT = 0.3
"""Seconds of processor time from which a test function, with all its parameters together, is slow."""
PROPERTY = "cost"


def spent() -> float:
    """Return the processor time of this process and its children so far, in seconds."""
    return sum(os.times()[:4])


def function_of(nodeid: str) -> str:
    """Return the id of a test without its parameters."""
    return nodeid.partition("[")[0]


@attrs.define(eq=False)
class Meter:
    """Measures the tests of one process."""

    shared: dict[str, float] = attrs.field(factory=dict)
    """Costs of the fixtures that several tests share."""
    _began: float = 0.0
    _set_up: float = 0.0
    """Cost of the shared fixtures that were set up for the present test."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Measure a fixture that several tests share."""
        before = spent()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared[name_of(fixturedef)] = spent() - before
                self._set_up += spent() - before

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Start measuring a test."""
        self._began, self._set_up = spent(), 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Put the cost of a test into its last report, which reaches the process that writes the file."""
        try:
            return (yield)
        finally:
            own = spent() - self._began - self._set_up
            known = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
            used = {name_of(definitions[-1]) for definitions in known}
            shared = sum(self.shared.get(name, 0.0) for name in used)
            item.user_properties.append((PROPERTY, f"{own} {shared}"))


@attrs.define(eq=False)
class Bill:
    """Adds up the costs of all tests, and writes the names of the slow functions."""

    file: Path
    _own: dict[str, float] = attrs.field(factory=lambda: defaultdict(float))
    _shared: dict[str, float] = attrs.field(factory=lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the cost in the last report of a test."""
        if report.when == "teardown":
            function = function_of(report.nodeid)
            for name, cost in report.user_properties:
                if name == PROPERTY:
                    own, shared = str(cost).split()
                    self._own[function] += float(own)
                    self._shared[function] = max(self._shared[function], float(shared))

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        costs = {function: own + self._shared[function] for function, own in self._own.items()}
        self.file.write_text("".join(f"{name}\n" for name in sorted(costs) if costs[name] >= LIMIT), "utf-8")


def name_of(fixture: pytest.FixtureDef[Any]) -> str:
    """Return a name of a fixture that is equal in all tests that use it."""
    return f"{fixture.baseid}::{fixture.argname}"
