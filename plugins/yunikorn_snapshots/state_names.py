"""Names of classes, functions and constants of this project, by which a snapshot refers to code.

Data never runs code (docs/decisions/0195): a snapshot names what exists in these modules, and nothing else.
No module outside of them is imported, and none of those that load code, read files or start processes.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from yunikorn_snapshots.snapshot_errors import SnapshotError

PACKAGES = (
    "yunikorn",
    "yunikorn_policies",
    "yunikorn_plugins",
    "yunikorn_kubernetes.predicates",
    "yunikorn_kubernetes.preferences",
    "yunikorn_kubernetes.devices",
    "yunikorn_kubernetes.volumes",
    "yunikorn_kubernetes.names",
    "yunikorn_service.event_records",
    "yunikorn_service.scheduling_state_reporter",
)
"""Packages and modules whose objects are state."""
EXCLUDED = (
    "yunikorn.__main__",
    "yunikorn.cli",
    "yunikorn.framework.creation",
    "yunikorn.framework.defaults",
    "yunikorn.framework.installed",
    "yunikorn.framework.plugin_code",
    "yunikorn.interface.commands",
    "yunikorn.interface.operator_commands",
    "yunikorn.interface.saved_configuration",
    "yunikorn_plugins.events",
    "yunikorn_plugins.ldap_client",
    "yunikorn_plugins.ldap_groups",
    "yunikorn_plugins.ldap_settings",
    "yunikorn_plugins.os_groups",
)
"""Modules among these that load code, or that read and write outside of the process."""
BUILTINS: dict[str, Any] = {
    one.__qualname__: one for one in (bool, bytes, int, float, str, tuple, list, dict, set, frozenset)
} | {"deque": deque, "Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict}
"""Classes of Python that state may contain or name."""
LOCALS = "<locals>"


def is_state_module(name: str) -> bool:
    """Return True if a snapshot may name what is in this module."""
    return any(_below(name, one) for one in PACKAGES) and not any(_below(name, one) for one in EXCLUDED)


def _below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def load_module(name: str) -> ModuleType:
    """Return a module of the state; raise `SnapshotError` for any other."""
    if not is_state_module(name):
        raise SnapshotError(f"it names module {name!r}, which is none of those whose objects are state")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SnapshotError(f"it names module {name!r}, which cannot be imported: {error}") from error


def find_name(module: str, name: str) -> Any:
    """Return the class, function or constant of this name; raise `SnapshotError` if there is none."""
    if module == "builtins":
        if name in BUILTINS:
            return BUILTINS[name]
        raise SnapshotError(f"it names {name!r} of Python, which is no class that state contains")
    found: Any = load_module(module)
    for part in name.split("."):
        try:
            found = vars(found)[part]
        except (KeyError, TypeError):
            raise SnapshotError(f"it names {module}.{name}, which does not exist in this version") from None
    found = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    if isinstance(found, ModuleType):
        raise SnapshotError(f"it names {module}.{name}, which is a module")
    own = getattr(found, "__module__", module) if isinstance(found, (type, FunctionType)) else module
    if own != module:
        raise SnapshotError(f"it names {module}.{name}, which belongs to module {own!r}")
    return found


class KnownConstants:
    """Objects that modules of the state refer to, by their identity: they are named instead of written."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, str]] = {}
        self._modules = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the modules that were imported since the last call."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        for module_name, module in sorted(sys.modules.items()):
            if is_state_module(module_name) and isinstance(module, ModuleType):
                for name, value in vars(module).items():
                    self._add(module_name, name, value)

    def _add(self, module: str, name: str, value: Any) -> None:
        if isinstance(value, (type, FunctionType)):
            if value.__module__ == module and LOCALS not in value.__qualname__:
                self._names[id(value)] = module, value.__qualname__
            elif value.__module__ == module and isinstance(value, FunctionType):
                # A function that another one has made, such as a reader with a memory.
                self._names.setdefault(id(value), (module, name))
            if isinstance(value, enum.EnumMeta) and value.__module__ == module:
                for member in value:  # type: ignore[var-annotated]
                    self._names[id(member)] = module, f"{value.__qualname__}.{member.name}"
            elif isinstance(value, type) and value.__module__ == module:
                for inner, one in vars(value).items():
                    one = one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
                    if isinstance(one, FunctionType) and one.__module__ == module:
                        self._names.setdefault(id(one), (module, f"{value.__qualname__}.{inner}"))
        elif not isinstance(value, (ModuleType, str, int, float, bytes, bool, type(None))):
            self._names.setdefault(id(value), (module, name))

    def rows(self) -> dict[int, list[Any]]:
        """Return the rows that stand for the objects, by their identity."""
        return {number: ["named", *name] for number, name in self._names.items()}

    def name_of(self, value: object) -> tuple[str, str] | None:
        """Return module and name of an object; None if no module refers to the object."""
        return self._names.get(id(value))


# -- functions inside of others ------------------------------------------------------------------------------


@cache
def _codes(module: str) -> dict[tuple[str, int], CodeType]:
    """Return the code of all functions of a module by qualified name and position among equal names."""
    spec = load_module(module).__spec__
    loader: Any = None if spec is None else spec.loader
    if spec is not None and spec.has_location and not hasattr(loader, "get_code"):
        loader = SourceFileLoader(module, spec.origin or "")  # pytest's own has none
    whole = getattr(loader, "get_code", lambda _: None)(module)
    found: dict[tuple[str, int], CodeType] = {}
    counts: Counter[str] = Counter()
    waiting = [] if whole is None else [whole]
    while waiting:
        code = waiting.pop()
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                found[inner.co_qualname, counts[inner.co_qualname]] = inner
                counts[inner.co_qualname] += 1
                waiting.append(inner)
    return found


@cache
def _places(module: str) -> dict[Any, tuple[str, int]]:
    return {_key(code): place for place, code in _codes(module).items()}


def _key(code: CodeType) -> Any:
    """Return what tells code apart by what it does; tables of lines differ between two readings."""
    consts = tuple([one for one in code.co_consts if not isinstance(one, CodeType)])
    return code.co_qualname, code.co_firstlineno, code.co_code, code.co_names, repr(consts)


def place_of(function: FunctionType) -> tuple[str, int] | None:
    """Return the qualified name of a function inside of another one, and its position among equal names."""
    return _places(function.__module__).get(_key(function.__code__))


def function_at(module: str, name: str, position: int, cells: tuple[Any, ...], defaults: Any) -> FunctionType:
    """Return the function with this place in the source, whose free variables are these cells."""
    code = _codes(module).get((name, position)) if is_state_module(module) else None
    if code is None or len(code.co_freevars) != len(cells):
        raise SnapshotError(f"it names function {name} of {module}, which does not exist in this version")
    made = FunctionType(code, vars(load_module(module)), code.co_name, defaults, cells)
    made.__qualname__, made.__module__ = name, module
    return made
