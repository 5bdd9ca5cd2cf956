"""Random operations in any order: accounting holds, and every decision equals that of the slow reference.

Longer searches: YUNIKORN_TEST_EXAMPLES=100 YUNIKORN_STEPS=60 pytest --hypothesis-profile=explore on this
file, and on test_storm.py.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

from tests.core.machine import Reserving, Retrying, SideBySide
from tests.example_counts import examples

EXAMPLES = examples(20)
STEPS = int(os.environ.get("YUNIKORN_STEPS", "40"))

BOUNDS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
)

TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = BOUNDS
TestRetrying = Retrying.TestCase
TestRetrying.settings = BOUNDS
TestReserving = Reserving.TestCase
TestReserving.settings = BOUNDS
