"""Kubernetes quantities as amounts: a table of texts, and a comparison with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.errors import QuantityError
from yunikorn.resources import INT64_MAX
from yunikorn_kubernetes.translation.kubernetes_quantities import amounts_of, parse

WORTH = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)},
    **{"k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9)},
    **{"T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18)},
    **{"Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)},
    **{"Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60)},
}


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("500m", 1, 500),
        ("1.5", 2, 1500),
        ("0.1", 1, 100),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("1e-10", 1, 1),
        ("5.", 5, 5000),
        (".5", 1, 500),
        ("+5", 5, 5000),
        ("-1.5", -2, -1500),
        ("-0.1m", -1, -1),
        ("2e3", 2000, 2_000_000),
        ("2E3", 2000, 2_000_000),
        ("1e+3", 1000, 1_000_000),
        ("12k", 12_000, 12_000_000),
        ("1Ki", 1024, 1_024_000),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("0.5Ki", 512, 512_000),
        ("007", 7, 7000),
    ],
)
def test_quantities(text: str, whole: int, milli: int) -> None:
    assert (parse(text), parse(text, milli=True)) == (whole, milli)


def test_the_largest_amounts() -> None:
    assert parse(str(INT64_MAX)) == INT64_MAX
    assert parse("1E") == 10**18
    assert parse("7Ei") == 7 * 2**60
    assert parse("9223372036854775.807", milli=True) == INT64_MAX


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "8Ei", "10E", "1e19", "1e100", "-1e100", "1e99999999"]
)
def test_amounts_beyond_64_bits_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="too large: at most 9223372036854775807 fits"):
        parse(text)


def test_thousandths_reach_64_bits_earlier() -> None:
    assert parse("9223372036854776") == 9223372036854776
    with pytest.raises(QuantityError, match="at most 9223372036854775807m fits"):
        parse("9223372036854776", milli=True)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", " 1", ".", "-", "+.", "1e", "1KI", "1ki", "1i", "1Kii", "0x1", "1_0", "1eK", "1e3k"),
        *("5.5.5", "\u0661", "inf", "nan", "--1", "1,5", "1 Ki", "K", "1" * 101),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity: expected a number with an optional suffix"):
        parse(text)


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.integers(0, 10**14).map(str),
    fraction=st.text("0123456789", max_size=12),
    suffix=st.one_of(st.sampled_from(list(WORTH)), st.integers(-20, 20)),
    milli=st.booleans(),
)
def test_quantities_agree_with_exact_fractions(
    sign: str, whole: str, fraction: str, suffix: str | int, milli: bool
) -> None:
    factor = WORTH[suffix] if isinstance(suffix, str) else Fraction(10) ** suffix
    end = suffix if isinstance(suffix, str) else f"e{suffix}"
    exact = Fraction(f"{whole}.{fraction or '0'}") * factor * (1000 if milli else 1)
    expected = math.ceil(exact)
    text = f"{sign}{whole}{'.' + fraction if fraction else ''}{end}"
    if expected > INT64_MAX:
        with pytest.raises(QuantityError):
            parse(text, milli=milli)
    else:
        assert parse(text, milli=milli) == (-expected if sign == "-" else expected)


def test_cpu_becomes_vcores_in_thousandths() -> None:
    found = amounts_of({"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}, "a")
    assert found == {"vcore": 1500, "memory": 2**30, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 * 2**20}


def test_all_bad_quantities_are_named_with_their_place() -> None:
    with pytest.raises(QuantityError) as caught:
        amounts_of({"cpu": "x", "memory": "1", "gpu": "1e30"}, "status.allocatable")
    assert str(caught.value) == (
        "status.allocatable.cpu: 'x' is not a quantity: expected a number with an optional suffix (n, u, m, "
        "k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei) or exponent, such as 500m, 1.5Gi or 2e3; "
        "status.allocatable.gpu: '1e30' is too large: at most 9223372036854775807 fits"
    )


def test_two_names_of_one_resource_are_refused() -> None:
    assert amounts_of({"vcore": "2"}, "quota") == {"vcore": 2}
    with pytest.raises(QuantityError, match=r"^quota\.vcore: means the same as cpu: remove one$"):
        amounts_of({"cpu": "1", "vcore": "2"}, "quota")
