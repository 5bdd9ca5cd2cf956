"""Evaluation of CEL: an expression becomes a tree of functions, which count their steps.

A function raises `EvaluationError` where the reference computes an error. `||`, `&&`, `all` and `exists` go
on with their other terms, and give a result if one of these determines it. Steps are counted by the cost
model of the reference; an evaluation that exceeds the limit ends, whatever operators are around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from yunikorn_kubernetes.devices.cel.cel_checker import qualified_name
from yunikorn_kubernetes.devices.cel.cel_functions import FUNCTIONS, TYPE_VALUES, Function, traversal
from yunikorn_kubernetes.devices.cel.cel_syntax import (
    Bind,
    Expression,
    FunctionCall,
    Identifier,
    ListLiteral,
    LiteralValue,
    Loop,
    MapLiteral,
    Select,
    children,
)
from yunikorn_kubernetes.devices.cel.cel_values import (
    ABSENT,
    ORDER,
    CelMap,
    CostExceeded,
    EvaluationError,
    Optional,
    TypeValue,
    Value,
    arithmetic,
    compare,
    contains,
    equal,
    item_of,
    negate,
    no_overload,
    size_of,
)
from yunikorn_kubernetes.devices.cel.exact_quantity import ExactQuantity
from yunikorn_kubernetes.devices.cel.semantic_version import SemanticVersion

COST_LIMIT = 1_000_000
"""Number of steps of one evaluation, as in Kubernetes."""
_LIST_COST, _MAP_COST = 10, 30
_TYPES = {name: TypeValue(name) for name in TYPE_VALUES}


class Evaluation:
    """Variables and steps of one evaluation."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, device: CelMap, limit: int = COST_LIMIT) -> None:
        """Prepare an evaluation for a device."""
        self.variables: dict[str, Value] = {**_TYPES, "device": device}
        self.cost = 0
        self.limit = limit

    def spend(self, steps: int) -> None:
        """Count steps. Raises `CostExceeded`."""
        self.cost += steps
        if self.cost > self.limit:
            raise CostExceeded(f"the evaluation takes more than {self.limit} steps")


Step = Callable[[Evaluation], Value]


def program_of(part: Expression) -> Step:
    """Return the function that evaluates a checked expression."""
    match part:
        case LiteralValue():
            value = part.value
            return lambda run: value
        case Identifier():
            return _variable(part.name)
        case Select():
            return _select(part)
        case FunctionCall():
            return _call(part)
        case ListLiteral():
            return _list(part)
        case MapLiteral():
            return _map(part)
        case Loop():
            return _loop(part)
        case Bind():
            return _bind(part)
    raise AssertionError(part)


def _is_constant(part: Expression) -> bool:
    return isinstance(part, LiteralValue) or (
        isinstance(part, (ListLiteral, MapLiteral)) and all(map(_is_constant, children(part)))
    )


# -- names and fields ------------------------------------------------------------------------------------


class _Failed:
    """Value of a variable that has none; who reads the variable gets the error."""

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def _variable(name: str) -> Step:
    def read(run: Evaluation) -> Value:
        run.spend(1)
        found = run.variables[name]
        if type(found) is _Lazy:
            found = run.variables[name] = found.value(run)
        if type(found) is _Failed:
            raise found.error
        return found

    return read


def _base(part: Expression) -> Step:
    """Return the function for the operand of a selection; one that is no selection costs one more step."""
    step = program_of(part)
    if isinstance(part, (Identifier, Select)) or (
        isinstance(part, FunctionCall) and part.function in ("[]", "[?]")
    ):
        return step

    def paid(run: Evaluation) -> Value:
        run.spend(1)
        return step(run)

    return paid


def _item(operand: Value, key: Value, *, is_optional: bool) -> Value:
    if type(operand) is Optional:
        if not operand.is_present:
            return ABSENT
        operand, is_optional = operand.value, True
    if is_optional and type(operand) not in (CelMap, list):
        return ABSENT
    found = item_of(operand, key)
    if is_optional:
        return found
    if not found.is_present:
        raise EvaluationError(
            f"no such key: {key}" if type(operand) is CelMap else f"index {key} out of range"
        )
    return found.value


def _select(part: Select) -> Step:
    operand, field, is_optional = _base(part.operand), part.field, part.is_optional

    def test(run: Evaluation) -> bool:
        found = operand(run)
        if type(found) is Optional:
            found = found.value if found.is_present else None
        return type(found) is CelMap and found.find(field).is_present

    def read(run: Evaluation) -> Value:
        found = operand(run)
        run.spend(1)
        return _item(found, field, is_optional=is_optional)

    return test if part.is_test else read


def _index(part: FunctionCall) -> Step:
    operand, index = _base(part.arguments[0]), program_of(part.arguments[1])
    is_optional = part.function == "[?]"

    def read(run: Evaluation) -> Value:
        found = operand(run)
        key = index(run)
        run.spend(1)
        return _item(found, key, is_optional=is_optional)

    return read


# -- operators -------------------------------------------------------------------------------------------


def _logical(part: FunctionCall) -> Step:
    terms = tuple(map(program_of, part.arguments))
    decisive = part.function == "||"

    def decide(run: Evaluation) -> Value:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                found = term(run)
                if found is decisive:
                    return decisive
                if type(found) is not bool:
                    failure = failure or no_overload(part.function)
            except EvaluationError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decisive

    return decide


def _choice(part: FunctionCall) -> Step:
    condition, yes, no = map(program_of, part.arguments)

    def choose(run: Evaluation) -> Value:
        found = condition(run)
        if type(found) is not bool:
            raise no_overload("?:")
        return yes(run) if found else no(run)

    return choose


def _unary(part: FunctionCall) -> Step:
    [operand] = map(program_of, part.arguments)
    is_not = part.function == "!"

    def apply(run: Evaluation) -> Value:
        found = operand(run)
        run.spend(1)
        if not is_not:
            return negate(found)
        if type(found) is not bool:
            raise no_overload("!")
        return not bool(found)

    return apply


def _equality_cost(left: Value, right: Value) -> int:
    if type(left) in (ExactQuantity, SemanticVersion):
        return 1
    return traversal(min(size_of(left), size_of(right)))


def _equality(part: FunctionCall) -> Step:
    left, right = map(program_of, part.arguments)
    is_equal = part.function == "=="

    def apply(run: Evaluation) -> bool:
        one, other = left(run), right(run)
        run.spend(_equality_cost(one, other))
        if is_equal:
            return equal(one, other)
        try:
            return not equal(one, other)
        except EvaluationError:
            return True  # As in Kubernetes: what cannot be compared is not equal.

    return apply


def _order(part: FunctionCall) -> Step:
    left, right = map(program_of, part.arguments)
    name, holds = part.function, ORDER[part.function]

    def apply(run: Evaluation) -> bool:
        one, other = left(run), right(run)
        is_text = type(one) in (str, bytes) and type(other) in (str, bytes)
        run.spend(traversal(min(size_of(one), size_of(other))) if is_text else 1)
        return holds(compare(one, other, name))

    return apply


def _arithmetic(part: FunctionCall) -> Step:
    left, right = map(program_of, part.arguments)
    name = part.function

    def apply(run: Evaluation) -> Value:
        one, other = left(run), right(run)
        if name == "+" and type(one) in (str, bytes, list):
            size = size_of(one) + size_of(other)
            # Lists cost more than in the reference, which does not copy them.
            run.spend(size if type(one) is list else traversal(size))
        else:
            run.spend(1)
        return arithmetic(name, one, other)

    return apply


def _membership(part: FunctionCall) -> Step:
    wanted, container = map(program_of, part.arguments)
    is_constant = _is_constant(part.arguments[1])

    def apply(run: Evaluation) -> bool:
        one, found = wanted(run), container(run)
        if type(found) is CelMap:
            run.spend(1)
            return one in found
        if type(found) is not list:
            raise no_overload("in")
        run.spend(0 if is_constant else len(found))
        return contains(found, one)

    return apply


_OPERATORS: dict[str, Callable[[FunctionCall], Step]] = {
    **dict.fromkeys(("&&", "||"), _logical),
    "?:": _choice,
    **dict.fromkeys(("!", "negate"), _unary),
    **dict.fromkeys(("==", "!="), _equality),
    **dict.fromkeys(ORDER, _order),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    "in": _membership,
    **dict.fromkeys(("[]", "[?]"), _index),
}


# -- calls, lists and maps -------------------------------------------------------------------------------


def _call(part: FunctionCall) -> Step:
    operator = _OPERATORS.get(part.function) if part.target is None else None
    if operator is not None:
        return operator(part)
    name = qualified_name(part)
    target = () if part.target is None or name else (part.target,)
    function = FUNCTIONS[name or part.function]
    arguments = tuple(map(program_of, (*target, *part.arguments)))
    if part.function == "orValue":
        return _or_value(arguments)
    return _applied(function, arguments)


def _applied(function: Function, arguments: tuple[Step, ...]) -> Step:
    call, cost = function.call, function.cost

    def apply(run: Evaluation) -> Value:
        values = tuple(argument(run) for argument in arguments)
        # Costs depend on arguments that may have wrong types; the call finds these.
        result = call(*values)
        run.spend(cost(values, result))
        return result

    return apply


def _or_value(arguments: tuple[Step, ...]) -> Step:
    optional, other = arguments

    def apply(run: Evaluation) -> Value:
        found = optional(run)
        if type(found) is not Optional:
            raise no_overload("orValue")
        return found.value if found.is_present else other(run)

    return apply


def _list(part: ListLiteral) -> Step:
    elements, cost = tuple(map(program_of, part.elements)), 0 if _is_constant(part) else _LIST_COST

    def make(run: Evaluation) -> list[Value]:
        found = [element(run) for element in elements]
        run.spend(cost)
        return found

    return make


def _map(part: MapLiteral) -> Step:
    entries = tuple((program_of(key), program_of(value)) for key, value in part.entries)
    cost = 0 if _is_constant(part) else _MAP_COST

    def make(run: Evaluation) -> CelMap:
        found = CelMap()
        for key, value in entries:
            name = key(run)
            found.put(name, value(run))
        run.spend(cost)
        return found

    return make


# -- macros ----------------------------------------------------------------------------------------------


class _Lazy:
    """Value of a variable that is computed when it is read for the first time."""

    def __init__(self, step: Step, variables: dict[str, Value]) -> None:
        self._step = step
        self._variables = variables

    def value(self, run: Evaluation) -> Value:
        """Return the value, or the error that reading the variable raises."""
        inner, run.variables = run.variables, self._variables
        try:
            return self._step(run)
        except EvaluationError as error:
            return _Failed(error)
        finally:
            run.variables = inner


def _bind(part: Bind) -> Step:
    name, value, result = part.variable, program_of(part.value), program_of(part.result)

    def apply(run: Evaluation) -> Value:
        outer = run.variables
        run.variables = {**outer, name: _Lazy(value, outer)}
        try:
            return result(run)
        finally:
            run.variables = outer

    return apply


def _loop(part: Loop) -> Step:
    visited, name = program_of(part.range), part.variable
    body = {"all": _quantifier, "exists": _quantifier, "exists_one": _exactly_one}.get(part.macro, _collect)(
        part
    )

    def apply(run: Evaluation) -> Value:
        found = visited(run)
        if type(found) not in (list, CelMap):
            raise EvaluationError(f"{part.macro} needs a list or a map")
        outer = run.variables
        run.variables = dict(outer)
        try:
            return body(run, _visit(run, name, found))
        finally:
            run.variables = outer

    return apply


Visits = Iterator[Value]
Body = Callable[[Evaluation, Visits], Value]


def _visit(run: Evaluation, name: str, values: Iterable[Value]) -> Visits:
    for value in values:
        run.variables[name] = value
        yield value


def _quantifier(part: Loop) -> Body:
    assert part.condition is not None
    condition, decisive = program_of(part.condition), part.macro == "exists"
    each = 4 if decisive else 3

    def decide(run: Evaluation, visits: Visits) -> Value:
        failure: EvaluationError | None = None
        for _ in visits:
            run.spend(each)
            try:
                found = condition(run)
                if found is decisive:
                    # The loop ends when its condition is looked at for the next element.
                    if next(visits, visits) is not visits:
                        run.spend(each - 1)
                    run.spend(1)
                    return decisive
                if type(found) is not bool:
                    failure = failure or no_overload(part.macro)
            except EvaluationError as error:
                failure = failure or error
        run.spend(1)
        if failure is not None:
            raise failure
        return not decisive

    return decide


def _holds(found: Value, macro: str) -> bool:
    if type(found) is not bool:
        raise no_overload(macro)
    return bool(found)


def _exactly_one(part: Loop) -> Body:
    assert part.condition is not None
    condition = program_of(part.condition)

    def count(run: Evaluation, visits: Visits) -> bool:
        number = 0
        for _ in visits:
            is_one = _holds(condition(run), part.macro)
            run.spend(1 + is_one)
            number += is_one
        run.spend(2)
        return number == 1

    return count


def _collect(part: Loop) -> Body:
    condition = None if part.condition is None else program_of(part.condition)
    result = _variable(part.variable) if part.result is None else program_of(part.result)

    def collect(run: Evaluation, visits: Visits) -> list[Value]:
        found = []
        for _ in visits:
            run.spend(1)
            if condition is None or _holds(condition(run), part.macro):
                found.append(result(run))
                run.spend(_LIST_COST + 1)
        run.spend(1)
        return found

    return collect
