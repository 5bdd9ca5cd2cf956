"""Quotas of queues that an application brings in its tags."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue

QUOTA = "namespace.resourcequota"


@pytest.fixture
def rm() -> RM:
    return RM(configuration(queue("a"), placementrules=[{"name": "provided", "create": True}]))


@pytest.mark.parametrize(
    "text",
    [
        '{"resources": {"vcore": {"value": 1e400}}}',
        '{"resources": {"vcore": {"value": 1.5}}}',
        '{"resources": {"vcore": {"value": 9223372036854775808}}}',
        '{"resources": {"vcore": {"value": true}}}',
        '{"resources": {"vcore": 7}}',
        '{"resources": {"vcore": {"value": ' + "9" * 5000 + "}}}",
        "[" * 100_000,
        "null",
        "vcore: 7",
    ],
)
def test_unreadable_quota_is_ignored(rm: RM, text: str, caplog: pytest.LogCaptureFixture) -> None:
    rm.app_tagged("app", "root.new", {QUOTA: text})
    assert rm.state("app") == "New"
    assert rm.find_queue("root.new").max is None
    (record,) = caplog.records
    assert record.getMessage().startswith(f"tag {QUOTA} is ignored, ")
    assert len(record.getMessage()) < 600


def test_missing_value_is_zero_and_allows_none(rm: RM) -> None:
    rm.app_tagged("app", "root.new", {QUOTA: '{"resources": {"vcore": {"value": 5}, "gpu": {}}}'})
    assert rm.find_queue("root.new").max == {"vcore": 5, "gpu": 0}


@pytest.mark.parametrize(("text", "most"), [("3", 3), ("0", 0), ("-3", 0), ("x", 0), ("9" * 5000, 0)])
def test_valid_maxapplications_is_used(rm: RM, text: str, most: int) -> None:
    rm.app_tagged("app", "root.new", {"namespace.resourcemaxapps": text})
    assert rm.find_queue("root.new").max_applications == most


def test_creation_time_of_any_length_is_accepted(rm: RM) -> None:
    rm.node("n1", vcore=1000)
    rm.app("app", "root.a")
    rm.ask("app", "ask", tags={"creationTime": "9" * 5000}, vcore=1000)
    assert len(rm.schedule()) == 1
