"""Type checker of CEL: finds unknown names and functions, and arguments of wrong types."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn_kubernetes.devices.cel import cel_types as t
from yunikorn_kubernetes.devices.cel.cel_functions import FUNCTIONS, TYPE_VALUES, Overload, compiled_pattern
from yunikorn_kubernetes.devices.cel.cel_syntax import (
    Bind,
    Expression,
    FunctionCall,
    Identifier,
    InvalidExpression,
    ListLiteral,
    LiteralValue,
    Loop,
    MapLiteral,
    Select,
    Uint,
)
from yunikorn_kubernetes.devices.cel.cel_types import CelType, Substitutions, list_of, map_of, optional_of
from yunikorn_kubernetes.devices.cel.cel_values import EvaluationError

DEVICE_FIELDS: Mapping[str, CelType] = {
    "driver": t.STRING,
    "allowMultipleAllocations": t.BOOL,
    "attributes": map_of(t.STRING, map_of(t.STRING, t.ANY)),
    "capacity": map_of(t.STRING, map_of(t.STRING, t.QUANTITY)),
}
_LITERALS: Mapping[type, CelType] = {
    type(None): t.NULL,
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
}


def _operator(*overloads: tuple[CelType, ...]) -> tuple[Overload, ...]:
    return tuple(Overload(False, one[:-1], one[-1]) for one in overloads)


_LIST, _MAP = list_of(t.A), map_of(t.A, t.B)
_NUMBERS = (t.INT, t.UINT, t.DOUBLE)
_ORDERED = _operator(
    (t.BOOL, t.BOOL, t.BOOL),
    *((one, other, t.BOOL) for one in _NUMBERS for other in _NUMBERS),
    (t.STRING, t.STRING, t.BOOL),
    (t.BYTES, t.BYTES, t.BOOL),
    (t.DURATION, t.DURATION, t.BOOL),
)
_EQUAL = _operator((t.A, t.A, t.BOOL))
_OF_NUMBERS = tuple((one, one, one) for one in (t.DOUBLE, t.INT, t.UINT))
OPERATORS: Mapping[str, tuple[Overload, ...]] = {
    "?:": _operator((t.BOOL, t.A, t.A, t.A)),
    "!": _operator((t.BOOL, t.BOOL)),
    "negate": _operator((t.DOUBLE, t.DOUBLE), (t.INT, t.INT)),
    "==": _EQUAL,
    "!=": _EQUAL,
    "+": _operator(
        (t.BYTES, t.BYTES, t.BYTES),
        (t.DOUBLE, t.DOUBLE, t.DOUBLE),
        (t.DURATION, t.DURATION, t.DURATION),
        (t.INT, t.INT, t.INT),
        (_LIST, _LIST, _LIST),
        (t.STRING, t.STRING, t.STRING),
        (t.UINT, t.UINT, t.UINT),
    ),
    "-": _operator(*_OF_NUMBERS, (t.DURATION, t.DURATION, t.DURATION)),
    "*": _operator(*_OF_NUMBERS),
    "/": _operator(*_OF_NUMBERS),
    "%": _operator((t.INT, t.INT, t.INT), (t.UINT, t.UINT, t.UINT)),
    **dict.fromkeys(("<", "<=", ">", ">="), _ORDERED),
    "in": _operator((t.A, _LIST, t.BOOL), (t.A, _MAP, t.BOOL)),
    "[]": _operator(
        (_LIST, t.INT, t.A),
        (_MAP, t.A, t.B),
        (optional_of(_LIST), t.INT, optional_of(t.A)),
        (optional_of(_MAP), t.A, optional_of(t.B)),
    ),
    "[?]": _operator(
        (_LIST, t.INT, optional_of(t.A)),
        (optional_of(_LIST), t.INT, optional_of(t.A)),
        (_MAP, t.A, optional_of(t.B)),
        (optional_of(_MAP), t.A, optional_of(t.B)),
    ),
}


def qualified_name(call: FunctionCall) -> str:
    """Return the name of a function of a namespace, such as `sets.contains`; empty for other calls."""
    if isinstance(call.target, Identifier):
        name = f"{call.target.name}.{call.function}"
        return name if name in FUNCTIONS else ""
    return ""


def result_type(whole: Expression) -> CelType:
    """Return the type of the result of an expression. Raises `InvalidExpression`."""
    checker = _Checker()
    found = checker.check(whole, {"device": t.DEVICE, **TYPE_VALUES})
    checker.check_literals()
    return checker.types.resolve(found, to_dynamic=True)


Scope = Mapping[str, CelType]


class _Checker:
    """Finds the types of the parts of one expression."""

    def __init__(self) -> None:
        self.types = Substitutions()
        self._literals: list[list[tuple[Expression, CelType]]] = []

    def check_literals(self) -> None:
        """Raise `InvalidExpression` for lists and maps whose parts have different types.

        In the end all types are known; before, an attribute is assignable to any type.
        """
        for parts in self._literals:
            wanted = self._shown(parts[0][1])
            for part, found in parts:
                if self._shown(found) != wanted:
                    raise InvalidExpression(f"expected {wanted}, not {self._shown(found)}", part.at)

    def check(self, part: Expression, scope: Scope) -> CelType:
        """Return the type of a part."""
        match part:
            case LiteralValue():
                return _LITERALS[type(part.value)]
            case Identifier():
                if part.name not in scope:
                    raise InvalidExpression(f"the name {part.name!r} is not known", part.at)
                return scope[part.name]
            case Select():
                return self._select(part, scope)
            case FunctionCall():
                return self._call(part, scope)
            case ListLiteral():
                return list_of(self._joined(part.elements, scope))
            case MapLiteral():
                keys = self._joined(tuple(key for key, _ in part.entries), scope)
                return map_of(keys, self._joined(tuple(value for _, value in part.entries), scope))
            case Loop():
                return self._loop(part, scope)
            case Bind():
                value = self.check(part.value, scope)
                return self.check(part.result, {**scope, part.variable: value})
        raise AssertionError(part)

    def _joined(self, parts: tuple[Expression, ...], scope: Scope) -> CelType:
        """Return the common type of parts."""
        found: CelType | None = None
        kinds = [(part, self.check(part, scope)) for part in parts]
        if kinds:
            self._literals.append(kinds)
        for part, current in kinds:
            joined = current if found is None else self.types.join(found, current)
            if joined is None:
                raise InvalidExpression(f"expected {found}, not {self._shown(current)}", part.at)
            found = joined
        return self.types.fresh() if found is None else found

    def _select(self, part: Select, scope: Scope) -> CelType:
        operand = self.types.resolve(self.check(part.operand, scope))
        is_optional = operand.name == t.OPTIONAL
        target = operand.parameters[0] if is_optional else operand
        if target.name == t.MAP:
            found = target.parameters[1]
        elif target == t.DEVICE and part.field in DEVICE_FIELDS:
            found = DEVICE_FIELDS[part.field]
        elif t.is_variable(target):
            self.types.assign((t.DYN,), (target,))
            found = t.DYN
        elif t.is_dynamic(target):
            found = t.DYN
        else:
            known = f"; known: {', '.join(DEVICE_FIELDS)}" if target == t.DEVICE else ""
            raise InvalidExpression(f"{target} has no field {part.field!r}{known}", part.at)
        if part.is_test:
            return t.BOOL
        return optional_of(found) if is_optional or part.is_optional else self.types.resolve(found)

    def _loop(self, part: Loop, scope: Scope) -> CelType:
        ranged = self.types.resolve(self.check(part.range, scope))
        if ranged.name in (t.LIST, t.MAP):
            element = ranged.parameters[0]
        elif t.is_variable(ranged) or ranged == t.DYN:
            self.types.assign((t.DYN,), (ranged,))
            element = t.DYN
        else:
            raise InvalidExpression(f"{part.macro} needs a list or a map, not {ranged}", part.range.at)
        inner = {**scope, part.variable: element}
        if part.condition is not None:
            self._must_be_bool(part.condition, inner)
        if part.macro == "filter":
            return self.types.resolve(list_of(element))
        if part.result is None:
            return t.BOOL
        return list_of(self.types.resolve(self.check(part.result, inner)))

    def _must_be_bool(self, part: Expression, scope: Scope) -> None:
        found = self.check(part, scope)
        if not self.types.assign((found,), (t.BOOL,)):
            raise InvalidExpression(f"expected bool, not {self._shown(found)}", part.at)

    def _call(self, part: FunctionCall, scope: Scope) -> CelType:
        if part.function in ("&&", "||"):
            for term in part.arguments:
                self._must_be_bool(term, scope)
            return t.BOOL
        arguments = tuple(self.check(one, scope) for one in part.arguments)
        operator = OPERATORS.get(part.function) if part.target is None else None
        if operator is not None:
            return self._resolved(part, operator, arguments, is_member=False)
        name = qualified_name(part)
        target = None if part.target is None or name else self.check(part.target, scope)
        function = FUNCTIONS.get(name or part.function)
        if function is None:
            raise InvalidExpression(f"the function {part.function!r} is not known", part.at)
        if part.function in ("matches", "find", "findAll"):
            _check_pattern(part)
        elif part.function in CONVERSIONS and target is None:
            _constant(part)
        if target is None:
            return self._resolved(part, function.overloads, arguments, is_member=False)
        return self._resolved(part, function.overloads, (target, *arguments), is_member=True)

    def _resolved(
        self,
        part: FunctionCall,
        overloads: tuple[Overload, ...],
        given: tuple[CelType, ...],
        *,
        is_member: bool,
    ) -> CelType:
        """Return the type of a call: that of the first overload that suits, or `dyn` if others differ."""
        found: CelType | None = None
        for overload in overloads:
            if overload.is_member is not is_member:
                continue
            first, second = self.types.fresh(), self.types.fresh()
            wanted = tuple(_instance(one, first, second) for one in overload.arguments)
            if self.types.assign(given, wanted):
                result = self.types.resolve(_instance(overload.result, first, second))
                if found is None:
                    found = result
                elif found.name != "dyn" and found != result:
                    found = t.DYN
        if found is None:
            shown = ", ".join(map(self._shown, given))
            raise InvalidExpression(f"{part.function!r} is not defined for ({shown})", part.at)
        return found

    def _shown(self, one: CelType) -> str:
        return str(self.types.resolve(one, to_dynamic=True))


def _instance(one: CelType, first: CelType, second: CelType) -> CelType:
    """Return a type of a declaration with new variables."""
    if one == t.A:
        return first
    if one == t.B:
        return second
    if not one.parameters:
        return one
    return CelType(one.name, tuple(_instance(inner, first, second) for inner in one.parameters))


CONVERSIONS = frozenset(("bool", "bytes", "double", "dyn", "int", "string", "type", "uint"))
"""Functions that are called when an expression is compiled, if the argument is constant."""
_VARIES = object()


def _constant(part: Expression) -> object:
    """Return the value of a constant, or `_VARIES`. Raises `InvalidExpression` if it has none."""
    if isinstance(part, LiteralValue):
        return part.value
    if not isinstance(part, FunctionCall) or part.function not in CONVERSIONS or len(part.arguments) != 1:
        return _VARIES
    value = _constant(part.arguments[0])
    if value is _VARIES or part.target is not None:
        return _VARIES
    try:
        found: object = FUNCTIONS[part.function].call(value)
    except EvaluationError as error:
        raise InvalidExpression(str(error), part.at) from None
    return found


def _check_pattern(part: FunctionCall) -> None:
    patterns = part.arguments[-1:] if part.function == "matches" else part.arguments[:1]
    for pattern in patterns:
        if isinstance(pattern, LiteralValue) and type(pattern.value) is str:
            try:
                compiled_pattern(pattern.value)
            except EvaluationError as error:
                raise InvalidExpression(str(error), pattern.at) from None
