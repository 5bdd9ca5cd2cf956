"""The benchmark of a large history runs, and prints sizes and durations, here of a small one."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from benchmarks.history import main

pytestmark = pytest.mark.slow
SMALL = "--applications 400 --allocations 2000 --queues 4 --users 3 --nodes 5 --days 40 --hours 1"


def test_sizes_and_durations_are_printed() -> None:
    done = CliRunner().invoke(main, [*SMALL.split(), "--within", "1000"])
    assert done.exit_code == 0, done.output
    assert re.search(r"^ +[\d.]+ MiB  total$", done.output, re.MULTILINE)
    assert re.search(
        r"ms, at most +[\d.]+  the tasks of an application \([1-9]\d*\)$", done.output, re.MULTILINE
    )
    assert re.search(r" at most +[\d.]+  a queue by days of a year \([1-9]\d*\)$", done.output, re.MULTILINE)
    assert re.search(r"[\d,]+ new allocations per second", done.output)


def test_a_slow_query_is_a_failure() -> None:
    done = CliRunner().invoke(main, [*SMALL.split(), "--within", "0"])
    assert done.exit_code == 1
    assert "slower than 0.0 s: newest 50 applications; " in done.output


def test_postgresql(postgresql: str) -> None:
    done = CliRunner().invoke(main, [*SMALL.split(), "--within", "1000", "--database", postgresql])
    assert done.exit_code == 0, done.output
    assert re.search(r" at most +[\d.]+  a queue by days of a year \([1-9]\d*\)$", done.output, re.MULTILINE)
