"""Inputs of a predicate's `check`, found in its bytecode, where the answer depends on nothing else.

An answer that depends only on listed properties of the request, on the id and the attributes of the node, and
on constants, may be remembered without changing any decision. The analysis accepts only code of which this is
certain: every instruction, name and method must be known to be free of side effects. Everything else, such as
an unknown instruction of a later Python, counts as dependent on anything. See `docs/decisions/0072`.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any

import attrs

ASK, APP, NODE = "ask", "app", "node"
ASK_PROPERTIES = frozenset({"tags", "resource", "priority", "task_group", "placeholder"})
"""Properties of a request that do not change while it waits, or that the core notices when they change."""
APP_PROPERTIES = frozenset({"tags", "user", "queue_name"})
NODE_PROPERTIES = frozenset({"id", "attributes"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


METHODS = _words(
    """
    get items keys values startswith endswith split rsplit splitlines strip lstrip rstrip lower upper
    casefold partition rpartition removeprefix removesuffix replace find rfind index count join isdigit
    isdecimal isalpha isalnum isdisjoint issubset issuperset union intersection difference
    """
)
"""Methods that return the same for the same arguments and change nothing, of every type in question."""
FUNCTIONS = _words(
    """
    len int float str bool min max sum any all sorted set frozenset tuple list dict abs range enumerate
    zip isinstance round map filter ord chr KeyError ValueError TypeError IndexError LookupError
    """
)
BUILTINS = {name: getattr(builtins, name) for name in FUNCTIONS}
INSTRUCTIONS = _words(
    """
    RESUME NOP CACHE PRECALL EXTENDED_ARG PUSH_NULL POP_TOP COPY SWAP LOAD_CONST LOAD_FAST
    LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_SMALL_INT LOAD_DEREF LOAD_CLOSURE LOAD_GLOBAL LOAD_ATTR
    LOAD_METHOD STORE_FAST STORE_DEREF COPY_FREE_VARS MAKE_CELL MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE
    KW_NAMES CALL CALL_KW BINARY_OP BINARY_SUBSCR BINARY_SLICE BUILD_TUPLE BUILD_LIST BUILD_SET
    BUILD_MAP BUILD_CONST_KEY_MAP BUILD_STRING BUILD_SLICE LIST_EXTEND LIST_APPEND SET_ADD SET_UPDATE
    MAP_ADD LIST_TO_TUPLE COMPARE_OP CONTAINS_OP IS_OP UNARY_NOT UNARY_NEGATIVE UNARY_INVERT TO_BOOL
    FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE GET_ITER FOR_ITER END_FOR POP_ITER
    UNPACK_SEQUENCE GET_LEN RETURN_VALUE RETURN_CONST RETURN_GENERATOR YIELD_VALUE PUSH_EXC_INFO
    CHECK_EXC_MATCH POP_EXCEPT RERAISE JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP NOT_TAKEN
    """
)
JUMPS = "POP_JUMP_"
"""Start of the names of all conditional jumps."""
SKIPPED = frozenset({"RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN"})
LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
SCALARS = (str, int, float, bool, bytes, type(None))
LARGEST = 64
"""Largest number of entries of a constant."""
LONGEST = 4_096
"""Largest number of instructions of a function."""
MISSING = object()

Path = tuple[str, str, Any]
"""Object (`ask` or `app`), property, and key of a mapping; `MISSING` for the whole property."""


class Impure(Exception):
    """The answer may depend on anything."""


@attrs.frozen
class Constant:
    """Value that the code reads by name, and that may be replaced while the plugin is in use."""

    holder: Any
    """Object with the attribute, or the globals of a module."""
    name: str
    value: Any
    frozen: Hashable
    """Copy of the value that cannot change."""

    def is_unchanged(self) -> bool:
        """Return True if the name still refers to an equal value."""
        holder = self.holder
        now = holder.get(self.name, MISSING) if type(holder) is dict else getattr(holder, self.name, MISSING)
        if now is not self.value:
            return False
        try:
            return self.frozen is now or freeze(now) == self.frozen
        except Impure:
            return False


@attrs.frozen
class Inputs:
    """Everything on which the answer of a `check` depends, apart from id and attributes of the node."""

    paths: tuple[Path, ...]
    constants: tuple[Constant, ...]

    def are_constant(self) -> bool:
        """Return True if no constant has changed."""
        return all(constant.is_unchanged() for constant in self.constants)

    def of(self, ask: Any) -> Iterator[Hashable]:
        """Yield the values of the properties of a request."""
        for owner, name, key in self.paths:
            value = getattr(ask if owner == ASK else ask.app, name)
            if key is not MISSING:
                yield value.get(key, MISSING) if value else MISSING
            elif isinstance(value, Mapping):
                yield tuple(value.items())
            else:
                yield value


def inputs_of(check: Callable[..., Any]) -> Inputs | None:
    """Return the inputs of a bound method `check(ask, node)`; None if the answer may depend on anything."""
    try:
        owner, function = check.__self__, check.__func__  # type: ignore[attr-defined]
        reading = _Reading(owner)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        if len(names) != 3:
            return None
        reading.function(function, dict(zip(names, ("self", ASK, NODE), strict=True)))
    except (Impure, AttributeError, IndexError, TypeError):
        return None
    return Inputs(tuple(dict.fromkeys(reading.paths)), tuple(reading.constants))


def freeze(value: Any, room: int = LARGEST) -> Hashable:
    """Return a copy of a constant that cannot change. Raises `Impure` for values of other types."""
    if type(value) in SCALARS:
        return value  # type: ignore[no-any-return]
    if type(value) not in (tuple, list, set, frozenset, dict) or len(value) > room:
        raise Impure
    entries = value.items() if type(value) is dict else value
    kept = tuple(freeze(entry, room // 2) for entry in entries)
    return value if type(value) in (tuple, frozenset) and kept == tuple(value) else (type(value), kept)


class _Reading:
    """Analysis of one check and of the functions that it calls."""

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin
        self._seen: set[CodeType] = set()
        self.paths: list[Path] = []
        self.constants: list[Constant] = []
        cls = type(plugin)
        plain = type(cls) is type and cls.__getattribute__ is object.__getattribute__
        if not plain or hasattr(cls, "__getattr__"):
            raise Impure

    def function(self, function: Any, roles: Mapping[str, str]) -> None:
        """Analyse a function whose parameters have these roles. Raises `Impure`."""
        if type(function) is not FunctionType or function.__closure__ is not None:
            raise Impure
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if freeze(default) is not default:
                raise Impure
        self._code(function.__code__, roles, function.__globals__)

    def _code(self, code: CodeType, roles: Mapping[str, str], scope: dict[str, Any]) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        steps = [step for step in dis.get_instructions(code) if step.opname not in SKIPPED]
        if len(steps) > LONGEST:
            raise Impure
        reached = -1
        """Index of the last instruction that belongs to an access of a role."""
        for index, step in enumerate(steps):
            name, value = step.opname, step.argval
            if name not in INSTRUCTIONS and not name.startswith(JUMPS):
                raise Impure
            if name in LOADS and value in roles:
                reached = self._access(steps, index, roles)
            elif name.startswith("STORE_") and value in roles:
                raise Impure
            elif name in ATTRIBUTES:
                if index > reached and value not in METHODS:
                    raise Impure
            elif name == "BINARY_OP" and step.argrepr.endswith("="):
                raise Impure
            elif name == "LOAD_GLOBAL":
                self._global(value, scope)
            elif name == "LOAD_CONST" and isinstance(value, CodeType):
                self._code(value, roles, scope)

    def _access(self, steps: list[dis.Instruction], index: int, roles: Mapping[str, str]) -> int:
        """Record the access of a role at an index; return the index of the last attribute that it loads."""
        role = roles[steps[index].argval]
        name = _attribute(steps, index + 1)
        if role == "self":
            self._own(name)
            return index + 1
        if role == NODE:
            if name not in NODE_PROPERTIES:
                raise Impure
            return index + 1
        owner, at = ASK, index + 1
        if name == APP:
            owner, at = APP, index + 2
            name = _attribute(steps, at)
        if name not in (ASK_PROPERTIES if owner == ASK else APP_PROPERTIES):
            raise Impure
        key = self._key(steps, at + 1, roles) if name == "tags" else MISSING
        self.paths.append((owner, name, key))
        return at

    def _key(self, steps: list[dis.Instruction], at: int, roles: Mapping[str, str]) -> Any:
        """Return the key if the tags are read as `.get(KEY)`, `.get(KEY, CONSTANT)` or `[KEY]`."""
        names = [step.opname for step in steps[at : at + 6]]
        is_get = names[:1] and names[0] in ATTRIBUTES and steps[at].argval == "get"
        start = at + 1 if is_get else at
        key, after = MISSING, start + 1
        if steps[start].opname == "LOAD_CONST":
            key = steps[start].argval
        elif steps[start].opname in LOADS and roles.get(steps[start].argval) == "self":
            key, after = getattr(self._plugin, self._own(_attribute(steps, start + 1))), start + 2
        if type(key) is not str:
            return MISSING
        if is_get and steps[after].opname == "LOAD_CONST":
            after += 1
        return key if steps[after].opname == ("CALL" if is_get else "BINARY_SUBSCR") else MISSING

    def _own(self, name: str) -> str:
        """Record the use of an attribute of the plugin object; return its name."""
        found = inspect.getattr_static(self._plugin, name)
        cls = type(self._plugin)
        if type(found) is FunctionType:
            if inspect.getattr_static(cls, name) is not found:
                raise Impure
            self.constants.append(Constant(cls, name, found, found))
            first = found.__code__.co_varnames[:1]
            self.function(found, dict.fromkeys(first, "self"))
            return name
        if type(found) is MemberDescriptorType:
            found = getattr(self._plugin, name)
        self.constants.append(Constant(self._plugin, name, found, freeze(found)))
        return name

    def _global(self, name: str, scope: dict[str, Any]) -> None:
        value = scope.get(name, MISSING)
        if value is MISSING:
            if name not in BUILTINS or getattr(builtins, name, None) is not BUILTINS[name]:
                raise Impure
            # A module may define a name of its own later.
            self.constants.append(Constant(scope, name, MISSING, MISSING))
        elif type(value) is FunctionType:
            self.constants.append(Constant(scope, name, value, value))
            self.function(value, {})
        else:
            self.constants.append(Constant(scope, name, value, freeze(value)))


def _attribute(steps: list[dis.Instruction], index: int) -> str:
    """Return the attribute that the instruction at an index loads. Raises `Impure` if it does not."""
    if index >= len(steps) or steps[index].opname not in ATTRIBUTES:
        raise Impure
    return str(steps[index].argval)
