"""Types of CEL, and which are assignable to which.

Unification is that of the reference: a type variable stands for the most general type it has met so far.
"""

from __future__ import annotations

from typing import NamedTuple


class CelType(NamedTuple):
    """A type, with the types of elements, of keys and values, or of an optional value."""

    name: str
    parameters: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return "dyn" if self.name.startswith(_VARIABLE) else self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


_VARIABLE = "?"
"""Beginning of the names of type variables."""
DYN, ERROR = CelType("dyn"), CelType("error")
ANY = CelType("any")
"""Type of an attribute: like `dyn`, but it cannot be the range of a loop."""
BOOL, INT, UINT, DOUBLE = CelType("bool"), CelType("int"), CelType("uint"), CelType("double")
STRING, BYTES, NULL = CelType("string"), CelType("bytes"), CelType("null_type")
QUANTITY, SEMVER = CelType("kubernetes.Quantity"), CelType("kubernetes.Semver")
DEVICE = CelType("kubernetes.DRADevice")
DURATION = CelType("google.protobuf.Duration")
"""Type of no value here, for which the checker of Kubernetes lets `null` pass where durations may be."""
LIST, MAP, OPTIONAL, TYPE = "list", "map", "optional_type", "type"
A, B = CelType("?A"), CelType("?B")
"""Variables in declarations."""
_NULLABLE = frozenset(("any", OPTIONAL, DURATION.name, QUANTITY.name, SEMVER.name, DEVICE.name))


def list_of(element: CelType) -> CelType:
    """Return the type of a list."""
    return CelType(LIST, (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of a map."""
    return CelType(MAP, (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of an optional value."""
    return CelType(OPTIONAL, (value,))


def is_variable(one: CelType) -> bool:
    """Return True for a type variable."""
    return one.name.startswith(_VARIABLE)


def is_dynamic(one: CelType) -> bool:
    """Return True for a type that is known only when the expression is evaluated."""
    return one.name in ("dyn", "any", "error")


class Substitutions:
    """Types that type variables stand for."""

    def __init__(self) -> None:
        """Create it without any."""
        self._found: dict[CelType, CelType] = {}
        self._count = 0

    def fresh(self) -> CelType:
        """Return a new variable."""
        self._count += 1
        return CelType(f"{_VARIABLE}{self._count}")

    def resolve(self, one: CelType, *, to_dynamic: bool = False) -> CelType:
        """Return a type without the variables that stand for another; the rest become `dyn` if wanted."""
        while is_variable(one):
            found = self._found.get(one)
            if found is None:
                return DYN if to_dynamic else one
            one = found
        if not one.parameters:
            return one
        return CelType(
            one.name, tuple(self.resolve(inner, to_dynamic=to_dynamic) for inner in one.parameters)
        )

    def assign(self, given: tuple[CelType, ...], wanted: tuple[CelType, ...]) -> bool:
        """Return True if the types are assignable in pairs; only then are variables bound."""
        before = dict(self._found)
        if len(given) == len(wanted) and all(map(self._is_assignable, given, wanted)):
            return True
        self._found = before
        return False

    def join(self, one: CelType, other: CelType) -> CelType | None:
        """Return the more general of two types; None if neither is assignable to the other."""
        if not self.assign((one,), (other,)):
            return None
        return one if _is_less_specific(one, other) else other

    def _is_assignable(self, given: CelType, wanted: CelType) -> bool:
        if is_variable(wanted):
            is_valid, has_other = self._is_substitution(given, wanted)
            if is_valid:
                return True
            if has_other:
                return False
        if is_variable(given):
            return self._is_substitution(wanted, given)[0]
        if is_dynamic(given) or is_dynamic(wanted):
            return True
        if given == NULL or wanted == NULL:
            other = wanted if given == NULL else given
            return other == NULL or other.name in _NULLABLE
        if given.name != wanted.name or len(given.parameters) != len(wanted.parameters):
            return False
        if given.name == TYPE:
            return True
        return all(map(self._is_assignable, given.parameters, wanted.parameters))

    def _is_substitution(self, one: CelType, variable: CelType) -> tuple[bool, bool]:
        """Return True if a type can stand for a variable, and True if the variable stands for another."""
        if one == variable:
            return True, True
        known = self._found.get(variable)
        if known is not None:
            if known == one:
                return True, True
            if not self._is_assignable(one, known):
                return False, True
            general = one if _is_less_specific(one, known) else known
            if not self._occurs(variable, general):
                self._found[variable] = general
            return True, True
        if self._occurs(variable, one):
            return False, False
        self._found[variable] = one
        return True, False

    def _occurs(self, variable: CelType, one: CelType) -> bool:
        if one == variable:
            return True
        if is_variable(one):
            found = self._found.get(one)
            return found is not None and self._occurs(variable, found)
        return any(self._occurs(variable, inner) for inner in one.parameters)


def _is_less_specific(one: CelType, other: CelType) -> bool:
    """Return True if a type is equal to another, or more general."""
    if is_dynamic(one) or is_variable(one):
        return True
    if is_dynamic(other) or is_variable(other):
        return False
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return one.name == TYPE or all(map(_is_less_specific, one.parameters, other.parameters))
