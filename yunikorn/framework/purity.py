"""Inputs of a predicate's `check`, found in its bytecode, where the answer depends on nothing else.

An answer that depends only on listed properties of the request, on the id and the attributes of the node, and
on constants, may be remembered without changing any decision. The analysis accepts only code of which this is
certain: conditions and loops over texts, numbers, tuples and lists. Everything else, such as a nested
function, a `try`, a set, or an unknown instruction of a later Python, counts as dependent on anything. The
language is small on purpose: a printed function or generator contains its address, a set with NaN has no
fixed order, and `is` distinguishes equal texts. See `docs/decisions/0072`.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import FunctionType, MemberDescriptorType, MethodType
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
    isdecimal isalpha isalnum isdisjoint issubset issuperset
    """
)
"""Methods that return the same for the same arguments and change nothing, of every type in question."""
FUNCTIONS = _words(
    "len int float str bool min max sum any all sorted tuple list abs range isinstance round ord chr"
)
BUILTINS = {name: getattr(builtins, name) for name in FUNCTIONS}
INSTRUCTIONS = _words(
    """
    RESUME NOP CACHE PRECALL EXTENDED_ARG PUSH_NULL POP_TOP COPY SWAP LOAD_CONST LOAD_FAST
    LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_SMALL_INT LOAD_GLOBAL LOAD_ATTR LOAD_METHOD STORE_FAST
    KW_NAMES CALL CALL_KW BINARY_OP BINARY_SUBSCR BINARY_SLICE BUILD_TUPLE BUILD_LIST BUILD_STRING
    BUILD_SLICE LIST_EXTEND LIST_TO_TUPLE COMPARE_OP CONTAINS_OP IS_OP UNARY_NOT UNARY_NEGATIVE
    UNARY_INVERT TO_BOOL FORMAT_VALUE FORMAT_SIMPLE CONVERT_VALUE GET_ITER FOR_ITER END_FOR POP_ITER
    UNPACK_SEQUENCE RETURN_VALUE RETURN_CONST JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP NOT_TAKEN
    """
)
JUMPS = "POP_JUMP_"
"""Start of the names of all conditional jumps."""
SKIPPED = frozenset({"RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN"})
PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
FORMATTED = 4
"""Flag of FORMAT_VALUE for a format specification, such as `:n`, which depends on the locale."""
SCALARS = (str, int, float, bool, bytes, type(None))
ENTRIES = frozenset({str, int})
"""Types of keys and values of tags and amounts."""
LARGEST = 64
"""Largest number of entries of a constant."""
LONGEST = 4_096
"""Largest number of instructions of a function."""
MOST = 16
"""Largest number of functions."""
MISSING = object()

Path = tuple[str, str, Any]
"""Object (`ask` or `app`), property, and key of a mapping; `MISSING` for the whole property."""


class Impure(Exception):
    """The answer may depend on anything."""


@attrs.frozen(eq=False)
class Inputs:
    """Everything on which the answer of a `check` depends, apart from id and attributes of the node.

    All constants are immutable, so that a comparison by identity finds every change.
    """

    paths: tuple[Path, ...]
    plugin: object
    bases: tuple[type, ...]
    """The class of the plugin and its bases, whose attributes are among the `names`."""
    own: tuple[tuple[str, Any], ...]
    """Attributes of the plugin object that the code reads."""
    names: tuple[tuple[Mapping[str, Any], str, Any], ...]
    """Names that the code reads: where they are looked up, and the object found there."""
    absent: tuple[tuple[Mapping[str, Any], tuple[str, ...]], ...]
    """Names that the code would read, had they not been absent there."""
    functions: tuple[tuple[FunctionType, Any, Any], ...]
    """Functions that are called, with their code and defaults."""

    def are_constant(self) -> bool:
        """Return True if no constant has changed."""
        if type(self.plugin).__mro__ is not self.bases:
            return False
        for scope, name, value in self.names:
            if scope.get(name, MISSING) is not value:
                return False
        for scope, names in self.absent:
            if not scope.keys().isdisjoint(names):
                return False
        # No class intercepts these reads, because the names of the classes have not changed.
        for name, value in self.own:
            if getattr(self.plugin, name, MISSING) is not value:
                return False
        for function, code, defaults in self.functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
        return True

    def of(self, ask: Any) -> tuple[Hashable, ...] | None:
        """Return the values of the properties of a request; None if one is of a type derived by the RM."""
        found: list[Hashable] = []
        for owner, name, key in self.paths:
            value = getattr(ask if owner == ASK else ask.app, name)
            if key is not MISSING:
                value = value.get(key) if value else None
            elif isinstance(value, Mapping):
                if not ENTRIES.issuperset([*map(type, value), *map(type, value.values())]):
                    return None
                found.append((type(value), *value.items()))
                continue
            if type(value) not in SCALARS:
                return None
            found.append(value)
        return tuple(found)


def inputs_of(check: Callable[..., Any]) -> Inputs | None:
    """Return the inputs of a bound method `check(ask, node)`; None if the answer may depend on anything."""
    if type(check) is not MethodType or type(check.__func__) is not FunctionType:
        return None
    function = check.__func__
    try:
        reading = _Reading(check.__self__)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        if len(names) != 3:
            return None
        reading.function(function, dict(zip(names, ("self", ASK, NODE), strict=True)))
    except (Impure, AttributeError, IndexError, TypeError):
        return None
    return reading.inputs()


def is_immutable(value: object, room: int = LARGEST) -> bool:
    """Return True for numbers, texts, and small tuples and frozen sets of them."""
    if type(value) is tuple or type(value) is frozenset:
        return len(value) <= room and all(is_immutable(entry, room // 2) for entry in value)
    return type(value) in SCALARS


class _Reading:
    """Analysis of one check and of the functions that it calls."""

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin
        self._paths: dict[Path, None] = {}
        self._own_names: dict[str, Any] = {}
        self._names: dict[tuple[int, str], tuple[Mapping[str, Any], str, Any]] = {}
        self._functions: dict[FunctionType, tuple[FunctionType, Any, Any]] = {}
        cls = type(plugin)
        self._classes = [vars(base) for base in cls.__mro__[:-1]]
        plain = type(cls) is type and cls.__getattribute__ is object.__getattribute__
        if not plain or hasattr(cls, "__getattr__"):
            raise Impure

    def inputs(self) -> Inputs:
        """Return the result."""
        absent: dict[int, tuple[Mapping[str, Any], list[str]]] = {}
        for scope, name, value in self._names.values():
            if value is MISSING:
                absent.setdefault(id(scope), (scope, []))[1].append(name)
        return Inputs(
            tuple(self._paths),
            self._plugin,
            type(self._plugin).__mro__,
            tuple(self._own_names.items()),
            tuple(one for one in self._names.values() if one[2] is not MISSING),
            tuple((scope, tuple(names)) for scope, names in absent.values()),
            tuple(self._functions.values()),
        )

    def function(self, function: FunctionType, roles: Mapping[str, str]) -> None:
        """Analyse a function whose parameters have these roles. Raises `Impure`."""
        if function in self._functions:
            return
        code, scope = function.__code__, function.__globals__
        self._functions[function] = (function, code, function.__defaults__)
        plain = type(scope) is dict and _builtins_of(function) is vars(builtins)
        simple = not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR)
        if not plain or not simple or function.__closure__ is not None or function.__kwdefaults__ is not None:
            raise Impure
        if not all(map(is_immutable, function.__defaults__ or ())) or len(self._functions) > MOST:
            raise Impure
        steps = list(plain_steps(dis.get_instructions(code)))
        if len(steps) > LONGEST:
            raise Impure
        reached = -1
        """Index of the last instruction that belongs to an access of a role."""
        for index, step in enumerate(steps):
            if step.opname in LOADS and step.argval in roles:
                reached = self._access(steps, index, roles)
            elif step.opname == "LOAD_GLOBAL":
                self._global(step.argval, scope)
            elif index > reached:
                _require_plain(step, steps[index - 1], roles)

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
        self._paths[owner, name, key] = None
        return at

    def _key(self, steps: list[dis.Instruction], at: int, roles: Mapping[str, str]) -> Any:
        """Return the key if the tags are read as `.get(KEY)`, `.get(KEY, CONSTANT)` or `[KEY]`."""
        is_get = steps[at].opname in ATTRIBUTES and steps[at].argval == "get"
        start = at + 1 if is_get else at
        key, after = MISSING, start + 1
        if steps[start].opname == "LOAD_CONST":
            key = steps[start].argval
        elif steps[start].opname in LOADS and roles.get(steps[start].argval) == "self":
            key, after = self._own(_attribute(steps, start + 1)), start + 2
        if type(key) is not str:
            return MISSING
        if is_get and steps[after].opname == "LOAD_CONST":
            after += 1
        return key if steps[after].opname == ("CALL" if is_get else "BINARY_SUBSCR") else MISSING

    def _own(self, name: str) -> Any:
        """Record the use of an attribute of the plugin object; return its value, which is immutable."""
        found = inspect.getattr_static(self._plugin, name)
        if type(found) is not MemberDescriptorType and not is_immutable(found):
            raise Impure  # a property, a method or something that may change in place
        value = getattr(self._plugin, name)
        if not is_immutable(value):
            raise Impure
        for scope in self._classes:
            for one in (name, "__getattribute__", "__getattr__"):
                self._name(scope, one)
        self._own_names[name] = value
        return value

    def _global(self, name: str, scope: dict[str, Any]) -> None:
        value = self._name(scope, name)
        if value is MISSING:
            # A module may define a name of its own later.
            if name not in BUILTINS or self._name(vars(builtins), name) is not BUILTINS[name]:
                raise Impure
        elif type(value) is FunctionType:
            self.function(value, {})
        elif not is_immutable(value):
            raise Impure

    def _name(self, scope: Mapping[str, Any], name: str) -> Any:
        """Record the use of a name; return what it refers to, or `MISSING`."""
        value = scope.get(name, MISSING)
        self._names.setdefault((id(scope), name), (scope, name, value))
        return value


def plain_steps(steps: Iterable[dis.Instruction]) -> Iterator[dis.Instruction]:
    """Yield the instructions that do something, with the pairs of Python 3.13 as two. Raises `Impure`."""
    for step in steps:
        pair = PAIRS.get(step.opname)
        if pair is not None:
            if type(step.argval) is not tuple or len(step.argval) != 2:
                raise Impure
            for name, value in zip(pair, step.argval, strict=True):
                yield step._replace(opname=name, argval=value)
        elif step.opname not in SKIPPED:
            yield step


def _builtins_of(function: Any) -> Any:
    return function.__builtins__


def _require_plain(step: dis.Instruction, before: dis.Instruction, roles: Mapping[str, str]) -> None:
    """Raise `Impure` if an instruction may have, or depend on, anything but the values in question."""
    name, value = step.opname, step.argval
    if name in ATTRIBUTES:
        plain = value in METHODS and _is_call(step)
    elif name == "STORE_FAST":
        plain = value not in roles
    elif name == "LOAD_CONST":
        plain = is_immutable(value)
    elif name == "BINARY_OP":
        plain = not step.argrepr.endswith("=")
    elif name == "IS_OP":
        # Equal texts may or may not be one object; None always is.
        plain = before.opname == "LOAD_CONST" and before.argval is None and not step.is_jump_target
    elif name == "FORMAT_VALUE":
        plain = not (step.arg or 0) & FORMATTED
    else:
        plain = name in INSTRUCTIONS or name.startswith(JUMPS)
    if not plain:
        raise Impure


def _is_call(step: dis.Instruction) -> bool:
    """Return True if a method is loaded to be called, so that no bound method becomes a value."""
    return step.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bool((step.arg or 0) & 1))


def _attribute(steps: list[dis.Instruction], index: int) -> str:
    """Return the attribute that the instruction at an index loads. Raises `Impure` if it does not."""
    if index >= len(steps) or steps[index].opname not in ATTRIBUTES:
        raise Impure
    return str(steps[index].argval)
