"""Selectors of devices: results, refusals, bounds, and equality with kube-scheduler's own evaluation."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from tests.kubernetes.devices.random_selectors import SelectorDrawer, drawn_device
from tests.kubernetes.reference import Reference
from yunikorn_kubernetes.devices.cel.cel_syntax import SelectorError
from yunikorn_kubernetes.devices.cel.cel_values import CelMap
from yunikorn_kubernetes.devices.cel.device_selector import (
    CompiledSelector,
    compile_selector,
    device_value,
)
from yunikorn_kubernetes.devices.cel.exact_quantity import InvalidQuantity, quantity_text, read_quantity
from yunikorn_kubernetes.devices.cel.semantic_version import InvalidVersion, read_version
from yunikorn_kubernetes.devices.device_objects import VersionValue
from yunikorn_kubernetes.devices.slice_reading import attribute_value, needed_quantity

GPU: dict[str, Any] = {
    "driver": "gpu.example.com",
    "name": "gpu",
    "attributes": {
        "model": {"string": "H100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "driverVersion": {"version": "1.10.0"},
        "pci.example.com/root": {"string": "pci0000:00"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}


def value_of(device: dict[str, Any]) -> CelMap:
    """Return a device as expressions see it."""
    found = [(name, attribute_value(name, one)) for name, one in sorted(device["attributes"].items())]
    return device_value(
        device["driver"],
        [(name, one.version if isinstance(one, VersionValue) else one) for name, one in found],
        [(name, needed_quantity(one, "value", name)) for name, one in device["capacity"].items()],
        is_shared=bool(device.get("allowMultipleAllocations")),
    )


def matches(expression: str) -> bool:
    """Return the result of an expression for a GPU."""
    return CompiledSelector(expression).matches(value_of(GPU))


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "H100"',
        'device.attributes["gpu.example.com"].model.lowerAscii().startsWith("h1")',
        'device.attributes["gpu.example.com"].model.matches("^H[0-9]+$")',
        'device.attributes["gpu.example.com"].index in [1, 2, 3]',
        'device.attributes["gpu.example.com"].index + 1 < 5 && device.attributes["gpu.example.com"].ecc',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.3"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.attributes["pci.example.com"].root == "pci0000:00"',
        '!has(device.attributes["nowhere.example.com"].model)',
        '"gpu.example.com" in device.attributes && !("nowhere.example.com" in device.attributes)',
        'device.attributes["gpu.example.com"].?missing.orValue("none") == "none"',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.ecc && gpu.model == "H100")',
        '["A100", "H100"].exists(one, one == device.attributes["gpu.example.com"].model)',
        "[1, 2, 3].map(one, one * 2).filter(one, one > 2) == [4, 6] && [1, 2].exists_one(one, one == 2)",
        '1 == 2 ? 1 / 0 == 1 : "abc".size() == 3',
        # A term decides although another has no value.
        'true || device.attributes["gpu.example.com"].missing',
        'device.attributes["gpu.example.com"].missing || true',
        "[0, 1].exists(one, 1 / one == 1)",
        '!(device.attributes["gpu.example.com"].missing && false)',
        '"\\u00e9\\x41" == r"\u00e9A" && size("""two""") == 3 && b"\\x00" == bytes("\\x00")',
        "18446744073709551615u > 1 && 1.5 < 2u && -7 / 2 == -3 && -7 % 2 == -1",
    ],
)
def test_an_expression_holds(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("", "the end"),
        ("true &&", "the end"),
        ("(true", "')'"),
        ('"a', "no end"),
        ("nobody", "nobody"),
        ("unknown(1)", "unknown"),
        ('url("https://example.com") == url("https://example.com")', "url"),
        ('1 == "a"', "=="),
        ("1 + 1.0 == 2.0", "+"),
        ("[1, 'a'] == []", "expected int"),
        ('"a".matches("(")', "pattern"),
        ("device.name == 'gpu'", "driver, allowMultipleAllocations, attributes, capacity"),
        ("device.driver", "string instead of bool"),
        ("9223372036854775808 > 0", "64 bits"),
        ("uint(-1) == 1u", "overflow"),
        ("has(device)", "has()"),
        ('device.attributes["d"].list.exists(one, one == 1)', "list or a map"),
        ("Thing{}", "messages"),
        ("true // " + "x" * 20_000, "10240 bytes"),
        ("(" * 40 + "true" + ")" * 40, "inside each other"),
        ("1" + "+1" * 200 + " > 0", "in a row"),
    ],
)
def test_an_expression_is_refused_when_it_is_compiled(expression: str, word: str) -> None:
    with pytest.raises(SelectorError) as caught:
        CompiledSelector(expression)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ('device.attributes["gpu.example.com"].missing == 1', "missing"),
        ('device.capacity["nowhere.example.com"].memory.isInteger()', "memory"),
        ('device.attributes["gpu.example.com"].index.startsWith("a")', "startsWith"),
        ('device.attributes["gpu.example.com"].model', "bool"),
        ('device.attributes["gpu.example.com"].model && true', "&&"),
        ("dyn(9223372036854775807) + 1 > 0", "overflow"),
        ("dyn(0u) - 1u == 0u", "overflow"),
        ("1 / (device.attributes.size() - 2) == 0", "zero"),
        ("[1, 2][device.attributes.size()] == 0", "out of range"),
        ("[0, 2].all(one, 1 / one == 1 || one == 2)", "zero"),
    ],
)
def test_an_expression_without_a_result_is_an_error(expression: str, word: str) -> None:
    with pytest.raises(SelectorError) as caught:
        matches(expression)
    assert word in str(caught.value)


_TEN = [*range(10)]
BOMBS = {
    "steps": "".join(f"{_TEN}.all({name}, " for name in "abcdefg") + "a >= 0" + ")" * 7,
    "lists": "".join(f"cel.bind({a}, {b} + {b}, " for b, a in pairwise("abcdefghijklmnopqrstuvwx")),
    "texts": "".join(f'cel.bind({a}, {b}.replace("a", {b}), ' for b, a in pairwise("abcdefg")),
}
BOMBS["lists"] = f"cel.bind(a, [1, 2], {BOMBS['lists']}size(x) > 0{')' * 24}"
BOMBS["texts"] = f"cel.bind(a, '{'a' * 100}', {BOMBS['texts']}size(g) > 0{')' * 7}"


@pytest.mark.slow
@pytest.mark.parametrize("expression", BOMBS.values(), ids=BOMBS)
def test_costs_are_limited_whatever_operators_are_around(expression: str) -> None:
    with pytest.raises(SelectorError, match=r"more than \d+"):
        matches(f"true && ({expression} || true) && true")


def test_patterns_are_matched_in_linear_time() -> None:
    pattern, text = "(a+)+$", "a" * 5000
    assert not matches(f'cel.bind(text, "{text}b", text.matches("^{pattern}"))')


def test_an_expression_says_what_it_reads() -> None:
    read = CompiledSelector(
        'device.driver == "a" && device.attributes["d"].?model.hasValue() && has(device.capacity["d"].memory)'
    ).reads
    assert read == frozenset({("driver", "", ""), ("attributes", "d", "model"), ("capacity", "d", "memory")})
    assert CompiledSelector('device.attributes["d"].all(name, name == "a")').reads is None
    assert CompiledSelector('[device].exists(one, one.driver == "a")').reads is None
    assert CompiledSelector("[1].all(device, device == 1)").reads is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("80Gi", "80Gi"),
        ("81559Mi", "81559Mi"),
        ("2048Mi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("512", "512"),
        ("0.5", "500m"),
        ("1e3", "1e3"),
        ("1500e-3", "1500e-3"),
        ("100000k", "100M"),
        ("0.0000000001", "1n"),
        ("-2Ki", "-2Ki"),
        ("0", "0"),
    ],
)
def test_quantities_are_exact(text: str, canonical: str) -> None:
    found = read_quantity(text)
    assert str(found) == canonical
    assert read_quantity(quantity_text(found.nanos)).nanos == found.nanos


def test_other_texts_are_no_quantities_and_no_versions() -> None:
    for text in ("", "1 Gi", "1e", "1e99999999999", "٣", "1Zi", "1" * 200):
        with pytest.raises(InvalidQuantity):
            read_quantity(text)
    assert read_quantity("Gi").nanos == 0  # As in Kubernetes.
    for text in (
        "",
        "1",
        "1.2",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "v1.2.3",
        "1.2.3+",
        "99999999999999999999.0.0",
    ):
        with pytest.raises(InvalidVersion):
            read_version(text)
    assert read_version("v01.2", tolerant=True) == read_version("1.2.0")


def test_versions_have_the_order_of_semver() -> None:
    texts = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
    ]
    texts += ["1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0"]
    versions = [read_version(text) for text in texts]
    for number, one in enumerate(versions):
        assert [one.compare(other) for other in versions[:number]] == [1] * number
        assert one.compare(read_version(texts[number] + "+build")) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_drawn_expressions_have_the_results_of_the_reference(reference: Reference, seed: int) -> None:
    rng = random.Random(seed)
    devices = [drawn_device(rng) for _ in range(4)]
    values = [value_of(device) for device in devices]
    drawer = SelectorDrawer(rng)
    seen: Counter[str] = Counter()
    for _ in range(5):
        expressions = [drawer.draw() for _ in range(100)]
        for expression, answer in zip(expressions, reference.selectors(expressions, devices), strict=True):
            compiled = compile_selector(expression)
            if "invalid" in answer or isinstance(compiled, SelectorError):
                assert "invalid" in answer, f"{expression}: {compiled}"
                assert isinstance(compiled, SelectorError), f"{expression}: {answer['invalid']}"
                seen["invalid"] += 1
                continue
            for value, expected in zip(values, answer["results"], strict=True):
                result = outcome(compiled, value)
                if "unhashable" in expected.get("error", ""):
                    continue  # A fault of the reference.
                wanted = "error" if "error" in expected else expected["matches"]
                assert result == wanted, f"{expression}: {expected}, {devices[values.index(value)]}"
                seen[str(result)] += 1
    assert min(seen[kind] for kind in ("True", "False", "error", "invalid")) > 50


def outcome(compiled: CompiledSelector, value: CelMap) -> bool | str:
    """Return the result of a selector, or `error`."""
    try:
        return compiled.matches(value)
    except SelectorError:
        return "error"
