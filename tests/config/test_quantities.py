"""Quantities of resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.errors import QuantityError
from yunikorn.quantities import SUFFIXES, parse_quantity
from yunikorn.resources import INT64_MAX

FITTING = [
    ("memory", "0", 0),
    ("memory", "007", 7),
    ("memory", "10", 10),
    ("memory", " 25  k ", 25_000),
    ("memory", "25k", 25_000),
    ("memory", "3M", 3_000_000),
    ("memory", "1G", 10**9),
    ("memory", "1T", 10**12),
    ("memory", "1P", 10**15),
    ("memory", "9E", 9 * 10**18),
    ("memory", "1Ki", 1024),
    ("memory", "1Mi", 2**20),
    ("memory", "1Gi", 2**30),
    ("memory", "1Ti", 2**40),
    ("memory", "1Pi", 2**50),
    ("memory", "7Ei", 7 * 2**60),
    ("memory", "9223372036854775807", INT64_MAX),
    ("vcore", "1", 1000),
    ("vcore", "500m", 500),
    ("vcore", " 500 m ", 500),
    ("vcore", "2k", 2_000_000),
    ("vcore", "2Ki", 2_048_000),
    ("vcore", "9223372036854775", 9_223_372_036_854_775_000),
    ("vcore", "9223372036854775807m", INT64_MAX),
    ("nvidia.com/gpu", "4", 4),
]
REFUSED = [
    ("memory", "", "missing"),
    ("memory", "   ", "missing"),
    ("memory", "9223372036854775808", "too large"),
    ("memory", "1000E", "too large"),
    ("memory", "8Ei", "too large"),
    ("memory", "9" * 6000, "too large"),
    ("memory", "500m", "'m' (thousandths) is for vcore only"),
    ("memory", "1K", "unknown suffix 'K'"),
    ("memory", "1ki", "unknown suffix 'ki'"),
    ("memory", "1mi", "unknown suffix 'mi'"),
    ("vcore", "1mi", "unknown suffix 'mi'"),
    ("memory", "1g", "unknown suffix 'g'"),
    ("memory", "1GB", "unknown suffix 'GB'"),
    ("memory", "-1", "no sign"),
    ("memory", "+1", "no sign"),
    ("memory", "1.5", "no fraction"),
    ("memory", ".5", "no fraction"),
    ("memory", "1e3x", "got '1e3x'"),
    ("memory", "G", "got 'G'"),
    ("memory", "1 2", "got '1 2'"),
    ("memory", "1_000", "got '1_000'"),
    ("memory", "٣", "got '٣'"),
    ("vcore", "7E", "too large"),
    ("vcore", "9223372036854776", "too large"),
    ("vcore", "9223372036854775808m", "too large"),
]


@pytest.mark.parametrize(("name", "text", "amount"), FITTING)
def test_a_quantity_is_read(name: str, text: str, amount: int) -> None:
    assert parse_quantity(name, text) == amount


@pytest.mark.parametrize(("name", "text", "reason"), REFUSED)
def test_invalid_quantity_is_rejected_with_the_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_quantity(name, text)
    assert reason in str(refused.value)


@given(st.integers(0, INT64_MAX), st.sampled_from(sorted(SUFFIXES)))
def test_a_quantity_is_its_number_times_its_suffix_or_too_large(number: int, suffix: str) -> None:
    amount = number * SUFFIXES[suffix]
    if amount > INT64_MAX:
        with pytest.raises(QuantityError):
            parse_quantity("memory", f"{number}{suffix}")
    else:
        assert parse_quantity("memory", f"{number}{suffix}") == amount


@given(st.text())
def test_any_text_is_a_quantity_or_rejected(text: str) -> None:
    try:
        amount = parse_quantity("memory", text)
    except QuantityError:
        return
    assert 0 <= amount <= INT64_MAX
