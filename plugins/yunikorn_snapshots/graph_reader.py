"""Objects from the rows of a snapshot: all of them, or none.

Rows are checked as they are read: numbers, names, fields, and the order in which values can be made. Objects
are made without calling their classes, so nothing of the process is touched before everything was read.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from inspect import getattr_static
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType
from typing import Any

from yunikorn.resources import Resource
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.state_layouts import container_of, digest_of
from yunikorn_snapshots.state_names import find_name, function_at, load_module

DEEPEST = 100
"""Largest depth of values that are made of others, such as tuples of tuples."""
Row = list[Any]
Special = Callable[[Row], Any]
_CODE = (FunctionType, staticmethod, classmethod)
_MISSING: Any = object()
_FILLED: dict[str, Callable[[], Any]] = {
    "list": list,
    "dict": dict,
    "set": set,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "cell": CellType,
}
"""Containers that are made empty, and filled when all objects exist."""


class ReadLayout:
    """A class and its fields, as a snapshot names them."""

    def __init__(self, row: Row, version: str, after: dict[str, Callable[[Any], None]]) -> None:
        """Read a row of the table of layouts; raise `SnapshotError` if this version has no such class.

        `after` is as for `GraphReader`.
        """
        module, name, container, digest, names = row
        cls = find_name(module, name)
        if not isinstance(cls, type):
            raise SnapshotError(f"{module}.{name} is no class")
        base = container_of(cls)
        if digest != digest_of(cls) or (base.__name__ if base else "") != container:
            raise SnapshotError(
                f"class {module}.{name} has other fields in this version than in that of the snapshot:"
                f" restore the snapshot by the same version of YuniKorn ({version})"
            )
        self.cls: type[Any] = cls
        self.names: list[str] = names
        self.container = base
        self.is_value = base in (tuple, frozenset)
        """True if objects are made with their entries, and never change."""
        self.hashes = "__hash__" in vars(cls) and cls.__hash__ is not None
        self.setters = [self._setter(name) for name in names]
        new: Callable[..., Any] = (base or object).__new__
        self.make = partial(new, cls)
        self.count = len(names)
        self.hashed_dict = base is dict and self.hashes
        self.is_filled = base in (list, set, deque) or (base is dict and not self.hashes)
        """True if entries are added when all objects have their fields."""
        self.finish = after.get(f"{cls.__qualname__}!")
        self.finish_last = after.get(cls.__qualname__)

    def _setter(self, name: str) -> Callable[[Any, Any], None]:
        found = getattr_static(self.cls, name, None)
        if hasattr(type(found), "__set__") and not isinstance(found, property):
            return found.__set__  # type: ignore[no-any-return]
        if isinstance(found, (property, type, *_CODE)) or not name.isidentifier() or name.startswith("__"):
            raise SnapshotError(f"{self.cls.__qualname__}.{name} is no field")
        if isinstance(found, cached_property):
            return lambda one, value: vars(one).__setitem__(name, value)
        return lambda one, value: object.__setattr__(one, name, value)


class GraphReader:
    """Reader of the rows of a snapshot."""

    def __init__(
        self,
        layouts: Iterable[Row],
        rows: Sequence[Row],
        sets: Iterable[Row],
        version: str,
        special: dict[str, Special],
        after: dict[str, Callable[[Any], None]],
    ) -> None:
        """Read from these rows; `special` makes what is not state, by the first entry of its row.

        `after` finishes objects of a class whose fields are set, by the name of the class.
        """
        self._layouts = [ReadLayout(row, version, after) for row in layouts]
        self._rows = rows
        self._sets = {number: members for number, *members in sets}
        self._special = special
        self._made: list[Any] = [_MISSING] * len(rows)
        self._complete = bytearray(len(rows))
        self._depth = 0

    def read(self) -> Any:
        """Return the object of the first row, with everything that it leads to.

        Raises `SnapshotError`, or what Python raises where rows do not fit together.
        """
        if not self._rows:
            raise SnapshotError("it has no rows")
        rows, made = self._rows, self._made
        for number, row in enumerate(rows):
            kind = row[0]
            if type(kind) is int:
                if kind < 0:
                    raise SnapshotError(f"row {number} has layout {kind}")
                layout = self._layouts[kind]
                if not layout.is_value:
                    made[number] = layout.make()
            elif kind in _FILLED:
                made[number] = _FILLED[kind]()
            elif kind == "deque":
                made[number] = deque(maxlen=row[1])
        for number in range(len(rows)):
            if made[number] is _MISSING:
                self._make(number)
        layouts, last = self._layouts, []
        for number, row in enumerate(rows):
            if type(row[0]) is int:
                self._set_fields(number)
                if layouts[row[0]].finish_last is not None:
                    last.append(number)
        for number, row in enumerate(rows):
            if type(row[0]) is not int or layouts[row[0]].is_filled:
                self._fill(number, row)
        for number, members in self._sets.items():
            if rows[number] == ["set"]:
                made[number].update(self._values(members))
            elif rows[number] != ["frozenset"]:
                raise SnapshotError(f"row {number} is no set")
        for number in last:
            finish = layouts[rows[number][0]].finish_last
            assert finish is not None
            finish(made[number])
        return made[0]

    # -- values -------------------------------------------------------------------------------------

    def _value(self, written: Any) -> Any:
        if type(written) is not list:
            return written
        if len(written) == 2:
            kind, text = written
            return int(text) if kind == "int" else text.decode("utf-8", "surrogatepass")
        (number,) = written
        if number < 0:
            raise SnapshotError(f"it refers to row {number}")
        found = self._made[number]
        return self._make(number) if found is _MISSING else found

    def _values(self, written: Iterable[Any]) -> list[Any]:
        value = self._value
        return [one if type(one) is not list else value(one) for one in written]

    def _make(self, number: int) -> Any:
        """Make a value that consists of others, which are made first."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise SnapshotError("its values are nested too deeply, or contain themselves")
        row = self._rows[number]
        if row == ["frozenset"]:
            row = [*row, *self._sets.get(number, ())]
        found = self._made[number] = self._made_of(row)
        self._depth -= 1
        return found

    def _made_of(self, row: Row) -> Any:
        kind = row[0]
        if type(kind) is int:
            layout = self._layouts[kind]
            entries = row[1 + len(layout.names) :]
            return layout.make(
                self._hashed(entries) if layout.container is frozenset else self._values(entries)
            )
        if kind == "tuple":
            return tuple(self._values(row[1:]))
        if kind == "frozenset":
            return frozenset(self._hashed(row[1:]))
        make = getattr(self, f"_make_{kind}", None)
        if make is not None:
            return make(*row[1:])
        if kind in self._special:
            return self._special[kind](row)
        raise SnapshotError(f"it has a row of kind {kind!r}, which this version does not know")

    def _hashed(self, entries: Sequence[Any]) -> list[Any]:
        """Return values that are about to be hashed, whose fields have to be set."""
        found = self._values(entries)
        for one in entries:
            if type(one) is list and len(one) == 1 and type(self._rows[one[0]][0]) is int:
                self._set_fields(one[0])
        return found

    @staticmethod
    def _make_named(module: str, name: str) -> Any:
        return find_name(module, name)

    @staticmethod
    def _make_module(name: str) -> Any:
        return load_module(name)

    @staticmethod
    def _make_nothing() -> Any:
        return iter(())

    @staticmethod
    def _make_bytearray(content: bytes) -> bytearray:
        if type(content) is not bytes:  # a number would be a size
            raise SnapshotError("the content of an array of bytes is none")
        return bytearray(content)

    @staticmethod
    def _make_count(start: int, step: int = 1) -> Any:
        return itertools.count(start, step)

    def _make_amount(self, *entries: Any) -> Resource:
        found = dict(zip(entries[::2], self._values(entries[1::2]), strict=True))
        if not all(type(name) is str and type(amount) is int for name, amount in found.items()):
            raise SnapshotError("an amount has other entries than names and whole numbers")
        return Resource(found)

    def _make_proxy(self, *entries: Any) -> Any:
        found = self._hashed(entries)
        return MappingProxyType(dict(zip(found[::2], found[1::2], strict=True)))

    def _make_defaultdict(self, factory: Any, *_: Any) -> Any:
        return defaultdict(self._value(factory))

    def _make_partial(self, function: Any, arguments: Any, named: Any) -> Any:
        called, keywords = self._value(function), self._rows[named[0]]
        if not callable(called) or isinstance(called, type):
            raise SnapshotError(f"it would call {type(called).__qualname__}, which is no function")
        pairs = self._values(keywords[1:])
        return partial(called, *self._value(arguments), **dict(zip(pairs[::2], pairs[1::2], strict=True)))

    def _make_method(self, owner: Any, name: str) -> Any:
        """Return a method of a class of the state, or one that a special object permits."""
        thing = self._value(owner)
        if name.startswith("__") and name != "__call__":
            raise SnapshotError(f"it names method {name} of {type(thing).__qualname__}")
        found = getattr_static(type(thing), name, None)
        row = self._rows[owner[0]]
        if row[0] in self._special:
            return self._special["method"]([thing, name, row])
        if isinstance(found, classmethod):
            return getattr(thing, name)
        if isinstance(found, FunctionType):
            return MethodType(found, thing)
        method = getattr(thing, name, None)
        if isinstance(method, (BuiltinFunctionType, MethodType)) and container_of(type(thing)) is not None:
            return method
        raise SnapshotError(f"{type(thing).__qualname__} has no method {name}")

    def _make_function(self, module: str, name: str, position: int, cells: Any, defaults: Any) -> Any:
        return function_at(module, name, position, self._value(cells), self._value(defaults))

    # -- fields and entries ---------------------------------------------------------------------------

    def _set_fields(self, number: int) -> None:
        if self._complete[number]:
            return
        self._complete[number] = 1
        row, one = self._rows[number], self._made[number]
        layout = self._layouts[row[0]]
        count = layout.count
        if len(row) < count + 1 or (len(row) > count + 1 and layout.container is None):
            raise SnapshotError(f"{layout.cls.__qualname__} has {len(row) - 1} values instead of {count}")
        for setter, value in zip(layout.setters, self._values(row[1 : count + 1]), strict=True):
            setter(one, value)
        if layout.hashed_dict:
            self._fill_dict(one, row[count + 1 :])
        if layout.finish is not None:
            layout.finish(one)

    def _fill(self, number: int, row: Row) -> None:
        one, kind = self._made[number], row[0]
        if type(kind) is int:
            layout = self._layouts[kind]
            entries = row[1 + len(layout.names) :]
            if layout.container is dict:
                self._fill_dict(one, entries)
            elif layout.container is set:
                one.update(self._values(entries))
            else:
                one.extend(self._values(entries))
        elif kind in ("dict", "Counter", "OrderedDict"):
            self._fill_dict(one, row[1:])
        elif kind == "list":
            one.extend(self._values(row[1:]))
        elif kind == "deque":
            one.extend(self._values(row[2:]))
        elif kind == "defaultdict":
            self._fill_dict(one, row[2:])
        elif kind == "cell":
            one.cell_contents = self._value(row[1])

    def _fill_dict(self, one: Any, entries: Sequence[Any]) -> None:
        found = self._values(entries)
        dict.update(one, zip(found[::2], found[1::2], strict=True))
