"""Selectors of devices: compiled once, with the attributes that their results depend on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from yunikorn_kubernetes.devices.cel.cel_checker import result_type
from yunikorn_kubernetes.devices.cel.cel_parser import parse_expression
from yunikorn_kubernetes.devices.cel.cel_program import Evaluation, Step, program_of
from yunikorn_kubernetes.devices.cel.cel_syntax import (
    Bind,
    Expression,
    FunctionCall,
    Identifier,
    InvalidExpression,
    LiteralValue,
    Loop,
    Select,
    SelectorError,
    children,
)
from yunikorn_kubernetes.devices.cel.cel_types import ANY, BOOL
from yunikorn_kubernetes.devices.cel.cel_values import CelMap, CostExceeded, EvaluationError, Value

DEVICE = "device"


class CompiledSelector:
    """A selector that has passed all checks."""

    def __init__(self, expression: str) -> None:
        """Compile an expression. Raises `SelectorError`."""
        try:
            tree = parse_expression(expression)
            found = result_type(tree)
        except InvalidExpression as error:
            raise SelectorError(f"the selector {_short(expression)} cannot be compiled: {error}") from None
        if found not in (BOOL, ANY):
            raise SelectorError(f"the selector {_short(expression)} gives {found} instead of bool")
        self.expression = expression
        self._program: Step = program_of(tree)
        self.reads = _reads(tree)
        """Attributes and capacities that the expression reads, as (`attributes` or `capacity`, domain, name),
        and fields of the device, as (name, "", ""); None if it can read everything."""

    def matches(self, device: CelMap) -> bool:
        """Return True if a device matches. Raises `SelectorError` if the expression has no result for it."""
        return self.evaluate(device)[0]

    def evaluate(self, device: CelMap) -> tuple[bool, int]:
        """Return the result for a device, and the steps that it took. Raises `SelectorError`."""
        run = Evaluation(device)
        try:
            found = self._program(run)
        except (EvaluationError, CostExceeded) as error:
            raise SelectorError(f"the selector {_short(self.expression)} has no result: {error}") from None
        if type(found) is not bool:
            raise SelectorError(f"the selector {_short(self.expression)} gives no bool")
        return found, run.cost


def _short(expression: str) -> str:
    return repr(expression if len(expression) <= 200 else expression[:200] + "...")


@lru_cache(maxsize=1024)
def compile_selector(expression: str) -> CompiledSelector | SelectorError:
    """Return a compiled selector, or the reason why there is none."""
    try:
        return CompiledSelector(expression)
    except SelectorError as error:
        return error


def device_value(
    driver: str,
    attributes: Iterable[tuple[str, Value]],
    capacity: Iterable[tuple[str, Value]],
    *,
    is_shared: bool,
) -> CelMap:
    """Return a device as expressions see it; names without a domain belong to the driver's domain."""
    return CelMap(
        {
            "driver": driver,
            "allowMultipleAllocations": is_shared,
            "attributes": _by_domain(driver, attributes),
            "capacity": _by_domain(driver, capacity),
        }
    )


_NO_NAMES = CelMap()


def _by_domain(driver: str, values: Iterable[tuple[str, Value]]) -> CelMap:
    found: dict[str, CelMap] = {}
    for qualified, value in values:
        domain, slash, name = qualified.partition("/")
        if not slash:
            domain, name = driver, qualified
        found.setdefault(domain, CelMap()).put(name, value)
    return CelMap(found, fallback=_NO_NAMES)


# -- what an expression reads ----------------------------------------------------------------------------

Read = tuple[str, str, str]


def _reads(tree: Expression) -> frozenset[Read] | None:
    found: set[Read] = set()
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, (Bind, Loop)) and part.variable == DEVICE:
            return None
        read = _read(part)
        if read is not None:
            found.add(read)
            continue
        if isinstance(part, Identifier) and part.name == DEVICE:
            return None
        left += children(part)
    return frozenset(found)


def _read(part: Expression) -> Read | None:
    """Return what a part reads if it is `device.KIND[DOMAIN].NAME` or a plain field of the device."""
    if isinstance(part, Select) and _is_device(part.operand) and part.field not in ("attributes", "capacity"):
        return part.field, "", ""
    inner = _step(part)
    outer = None if inner is None else _step(inner[0])
    if inner is None or outer is None:
        return None
    whole, domain = outer
    if isinstance(whole, Select) and _is_device(whole.operand) and whole.field in ("attributes", "capacity"):
        return whole.field, domain, inner[1]
    return None


def _step(part: Expression) -> tuple[Expression, str] | None:
    """Return operand and name of `OPERAND.NAME` or `OPERAND["NAME"]`."""
    if isinstance(part, Select):
        return part.operand, part.field
    if isinstance(part, FunctionCall) and part.function in ("[]", "[?]"):
        operand, index = part.arguments
        if isinstance(index, LiteralValue) and type(index.value) is str:
            return operand, index.value
    return None


def _is_device(part: Expression) -> bool:
    return isinstance(part, Identifier) and part.name == DEVICE
