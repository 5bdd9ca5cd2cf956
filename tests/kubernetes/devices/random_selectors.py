"""Drawn selectors and devices: mostly well typed, with unknown names, wrong types and errors among them."""

from __future__ import annotations

import random
from typing import Any

DRIVERS = ("gpu.example.com", "gpu.example.com", "net.example.com")
STRINGS = ("", "a100", "H100", "a", "Größe", "1.2.3", "80Gi", "true", "7", "gpu-01")
NUMBERS = ("0", "1", "2", "-3", "7", "80", "9223372036854775807", "-9223372036854775808")
QUANTITIES = ("0", "1", "40Gi", "80Gi", "81559Mi", "1.5Ki", "500m", "1e3", "100k", "3Ti", "0.5")
VERSIONS = ("1.0.0", "1.2.3", "1.2.3-alpha.1", "1.2.3-alpha.beta", "1.10.0", "2.0.0+build.5")
PATTERNS = ("^a", "[0-9]+$", "(a|b)*", "H.*0", "", ".", "\\\\d")
NAMES = ("model", "index", "memory", "ecc", "driverVersion", "model", "index", "ecc", "missing")
DOMAINS = ("gpu.example.com", "gpu.example.com", "gpu.example.com", "net.example.com", "nowhere.example.com")
TYPES = ("bool", "int", "uint", "double", "string", "quantity", "semver", "list", "map", "dyn")


def drawn_device(rng: random.Random) -> dict[str, Any]:
    """Return a device with attributes whose types differ from device to device."""
    attributes: dict[str, Any] = {}
    for name in NAMES[:5]:
        prefix = rng.choice(("", "", "gpu.example.com/", "gpu.example.com/", "net.example.com/"))
        usual = {"model": 0, "index": 1, "memory": 1, "ecc": 2, "driverVersion": 3}[name]
        kind = usual if rng.random() < 0.9 else rng.randrange(4)
        if rng.random() < 0.1:
            continue
        attributes[prefix + name] = (
            {"string": rng.choice(STRINGS)},
            {"int": int(rng.choice(NUMBERS))},
            {"bool": rng.random() < 0.5},
            {"version": rng.choice(VERSIONS)},
        )[kind]
    capacity = {
        rng.choice(("", "gpu.example.com/", "net.example.com/")) + name: {"value": rng.choice(QUANTITIES[:4])}
        for name in ("memory", "cores")
        if rng.random() < 0.9
    }
    found: dict[str, Any] = {"driver": rng.choice(DRIVERS), "name": "device"}
    if rng.random() < 0.3:
        found["allowMultipleAllocations"] = rng.random() < 0.5
    return found | {"attributes": attributes, "capacity": capacity}


class SelectorDrawer:
    """Draws expressions of wanted types."""

    def __init__(self, rng: random.Random) -> None:
        """Draw with a generator of random numbers."""
        self._rng = rng
        self._variables: list[tuple[str, str]] = []

    def draw(self) -> str:
        """Return an expression that is mostly of type bool."""
        self._variables = []
        return self._of("bool" if self._rng.random() < 0.97 else self._rng.choice(TYPES), 4)

    def _of(self, kind: str, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.02:
            kind = rng.choice(TYPES)
        known = [name for name, its in self._variables if its in (kind, "dyn")]
        if known and rng.random() < 0.4:
            return rng.choice(known)
        if rng.random() < 0.04:
            return self._attribute()
        if depth <= 0:
            return str(getattr(self, f"_plain_{kind}")())
        if rng.random() < 0.06:
            return (
                f"({self._of('bool', depth - 1)} ? {self._of(kind, depth - 1)} : {self._of(kind, depth - 1)})"
            )
        if rng.random() < 0.04:
            return self._bind(kind, depth)
        return str(getattr(self, f"_{kind}")(depth - 1))

    def _one(self, *choices: str) -> str:
        return self._rng.choice(choices)

    # -- leaves ---------------------------------------------------------------------------------------

    def _attribute(self, name: str = "") -> str:
        rng, domain, name = self._rng, self._one(*DOMAINS), name or self._one(*NAMES)
        if rng.random() < 0.1:
            return f'device.attributes["{domain}"].?{name}.orValue({self._of(rng.choice(TYPES[:5]), 0)})'
        if rng.random() < 0.3:
            return f'device.attributes["{domain}"]["{name}"]'
        return f'device.attributes["{domain}"].{name}'

    def _plain_bool(self) -> str:
        return self._one(
            "true",
            "false",
            "device.allowMultipleAllocations",
            f"has({self._one_path()})",
            self._attribute("ecc"),
        )

    def _one_path(self) -> str:
        kind = self._one("attributes", "capacity")
        return f'device.{kind}["{self._one(*DOMAINS)}"].{self._one(*NAMES)}'

    def _plain_int(self) -> str:
        return self._one(*NUMBERS, self._attribute("index"))

    def _plain_uint(self) -> str:
        return self._one("0u", "1u", "7u", "18446744073709551615u", "0x1Fu")

    def _plain_double(self) -> str:
        return self._one("0.0", "1.5", "-2.25", "1e3", ".5", "80.0")

    def _plain_string(self) -> str:
        text = self._one(*STRINGS)
        return self._one(f'"{text}"', f"'{text}'", f'r"{text}"', "device.driver", self._attribute("model"))

    def _plain_quantity(self) -> str:
        return self._one(f'quantity("{self._one(*QUANTITIES)}")', self._capacity())

    def _capacity(self) -> str:
        return f'device.capacity["{self._one(*DOMAINS)}"].{self._one("memory", "cores", "missing")}'

    def _plain_semver(self) -> str:
        return self._one(
            f'semver("{self._one(*VERSIONS)}")', f'semver("v{self._one("1", "01.2", "1.2.3")}", true)'
        )

    def _plain_list(self) -> str:
        return self._one("[]", "[1, 2, 3]", '["a", "H100"]', f"[{self._of('int', 0)}, {self._of('int', 0)}]")

    def _plain_map(self) -> str:
        return self._one(
            "{}",
            '{"a": 1, "b": 2}',
            "{1: true}",
            "device.attributes",
            f'device.attributes["{self._one(*DOMAINS)}"]',
        )

    def _plain_dyn(self) -> str:
        return self._one(self._attribute(), "dyn(1)", 'dyn("a")', "null", "b'x'")

    # -- operations -----------------------------------------------------------------------------------

    def _bool(self, depth: int) -> str:
        rng, kind = self._rng, self._one(*TYPES)
        b = self._one("==", "!=", "<", "<=", ">", ">=")

        def a(kind: str) -> str:
            return self._of(kind, depth)

        choice = rng.randrange(16)
        if choice < 3:
            return f"({a('bool')} {self._one('&&', '||')} {a('bool')} {self._one('&&', '||')} {a('bool')})"
        if choice == 3:
            return f"!{self._of('bool', 0)}"
        if choice < 7:
            other = kind if rng.random() < 0.85 else rng.choice(TYPES)
            return f"({a(kind)} {b if kind in TYPES[:5] else self._one('==', '!=')} {a(other)})"
        if choice == 7:
            container = a("list") if rng.random() < 0.5 else a("map")
            return f"({a(self._one('string', 'int'))} in {container})"
        if choice < 10:
            name = self._one("startsWith", "endsWith", "contains", "matches")
            argument = f'"{self._one(*PATTERNS)}"' if name == "matches" else a("string")
            return f"{a('string')}.{name}({argument})"
        if choice == 10:
            return f"{a('quantity')}.{self._one('isGreaterThan', 'isLessThan')}({a('quantity')})"
        if choice == 11:
            return f"{a('semver')}.{self._one('isGreaterThan', 'isLessThan')}({a('semver')})"
        if choice == 12:
            return f"{self._one('isQuantity', 'isSemver')}({a('string')})"
        if choice < 15:
            return self._loop(self._one("all", "exists", "exists_one"), depth)
        return self._one(
            f"{a('quantity')}.isInteger()",
            f"sets.{self._one('contains', 'intersects', 'equivalent')}({a('list')}, {a('list')})",
            f"{a('list')}[{a('int')}] == {a('int')}",
            f"{a('map')}[{a('string')}] == {a('int')}",
            f"unknown({a('int')})",
            f"device.missing == {a('int')}",
            f"nobody.{self._one('x', 'y')}",
            f"type({a(kind)}) == {self._one('int', 'string', 'bool', 'list')}",
        )

    def _int(self, depth: int) -> str:

        def a(kind: str) -> str:
            return self._of(kind, depth)

        return self._one(
            f"({a('int')} {self._one('+', '-', '*', '/', '%')} {a('int')})",
            f"-({a('int')})",
            f"size({a('string')})",
            f"{a('list')}.size()",
            f"int({a(self._one('string', 'double', 'uint'))})",
            f"{a('string')}.indexOf({a('string')})",
            f"{a('string')}.lastIndexOf({a('string')})",
            f"{a('quantity')}.compareTo({a('quantity')})",
            f"{a('quantity')}.asInteger()",
            f"sign({a('quantity')})",
            f"{a('semver')}.{self._one('major', 'minor', 'patch')}()",
            f"{a('semver')}.compareTo({a('semver')})",
        )

    def _uint(self, depth: int) -> str:

        def a(kind: str) -> str:
            return self._of(kind, depth)

        return self._one(
            f"({a('uint')} {self._one('+', '-', '*', '/', '%')} {a('uint')})",
            f"uint({a(self._one('int', 'string', 'double'))})",
        )

    def _double(self, depth: int) -> str:

        def a(kind: str) -> str:
            return self._of(kind, depth)

        return self._one(
            f"({a('double')} {self._one('+', '-', '*', '/')} {a('double')})",
            f"double({a(self._one('int', 'string', 'uint'))})",
            f"{a('quantity')}.asApproximateFloat()",
        )

    def _string(self, depth: int) -> str:

        def a(kind: str) -> str:
            return self._of(kind, depth)

        return self._one(
            f"({a('string')} + {a('string')})",
            f"string({a(self._one('int', 'bool', 'double', 'uint'))})",
            f"{a('string')}.{self._one('lowerAscii', 'upperAscii', 'trim')}()",
            f"{a('string')}.substring({self._one('0', '1', '2', '9')})",
            f"{a('string')}.substring({self._one('0', '1')}, {self._one('0', '1', '2', '9')})",
            f"{a('string')}.charAt({self._one('0', '1', '4', '-1')})",
            f"{a('string')}.replace({a('string')}, {a('string')})",
            f"{a('string')}.replace({a('string')}, {a('string')}, {self._one('0', '1', '-1')})",
            f"{a('string')}.split({a('string')}).join({a('string')})",
            f"{a('string')}.split({a('string')}, {self._one('0', '1', '2', '-1')}).join(',')",
            f'{a("string")}.find("{self._one(*PATTERNS)}")',
        )

    def _quantity(self, depth: int) -> str:

        def a(kind: str) -> str:
            return self._of(kind, depth)

        return self._one(
            f"quantity({a('string')})",
            f"{a('quantity')}.{self._one('add', 'sub')}({a(self._one('quantity', 'int'))})",
            self._capacity(),
        )

    def _semver(self, depth: int) -> str:
        return self._one(
            f"semver({self._of('string', depth)})", self._plain_semver(), self._attribute("driverVersion")
        )

    def _list(self, depth: int) -> str:
        kind = self._one("int", "string", "bool")
        return self._one(
            f"[{self._of(kind, depth)}, {self._of(kind, depth)}]",
            f"({self._of('list', depth)} + {self._of('list', depth)})",
            self._loop("filter", depth),
            self._loop("map", depth),
            f"{self._of('string', depth)}.findAll('[a-z0-9]')",
        )

    def _map(self, depth: int) -> str:
        return self._one(
            self._plain_map(), f"{{{self._of('string', depth)}: {self._of('int', depth)}, 'z': 1}}"
        )

    def _dyn(self, depth: int) -> str:
        return f"dyn({self._of(self._one(*TYPES[:5]), depth)})"

    def _loop(self, macro: str, depth: int) -> str:
        name = f"v{len(self._variables)}"
        visited = self._of(self._one("list", "list", "map"), depth)
        self._variables.append((name, self._one("int", "string", "dyn")))
        if macro == "map":
            inner = self._of(self._one("int", "string"), depth)
            if self._rng.random() < 0.3:
                inner = f"{self._of('bool', depth)}, {inner}"
        else:
            inner = self._of("bool", depth)
        self._variables.pop()
        return f"{visited}.{macro}({name}, {inner})"

    def _bind(self, kind: str, depth: int) -> str:
        its = self._one("int", "string", "bool", "map")
        name, value = f"v{len(self._variables)}", self._of(its, depth - 1)
        self._variables.append((name, its))
        result = self._of(kind, depth - 1)
        self._variables.pop()
        return f"cel.bind({name}, {value}, {result})"
