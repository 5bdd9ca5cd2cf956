"""Rows of all objects that can be reached from one: what a snapshot consists of.

Each object is one row, numbered from 0 in the order in which it was reached. A plain value stands in its row;
a list of one number refers to another row. So shared objects stay shared, and cycles need nothing special.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import attrs

from yunikorn.resources import Resource
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.state_layouts import container_of, digest_of, reader_of, slots_of
from yunikorn_snapshots.state_names import (
    BUILTINS,
    LOCALS,
    KnownConstants,
    is_state_module,
    place_of,
)

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
Row = list[Any]
Hook = Callable[[Any], Row]
"""Function that returns the row of an object."""
_EMPTY = {type(iter(())), type(iter([])), type(iter({}))}
_METHODS = frozenset({"get", "append", "add", "pop", "setdefault", "discard"})
"""Methods of containers that state may refer to."""


@attrs.frozen
class SameAs:
    """Value of another field of the same object, which stands for one that is not written."""

    field: str


class ObjectLayout:
    """Class and field names of objects, and their row in the table of layouts."""

    def __init__(self, number: int, cls: Any, names: tuple[str, ...], omitted: dict[str, Any]) -> None:
        self.number, self.names = number, names
        container = container_of(cls)
        self.container = container
        self.row = [
            cls.__module__,
            cls.__qualname__,
            "" if container is None else container.__name__,
            digest_of(cls),
            list(names),
        ]
        self.read = reader_of(names)
        self.omitted = [(names.index(name), value) for name, value in omitted.items() if name in names]
        """Positions of fields that are not state, each with what is written instead."""


class GraphWriter:
    """Writer of the rows of an object and of everything that can be reached from it."""

    def __init__(
        self,
        hooks: dict[type[Any], Hook],
        omitted: Mapping[str, Mapping[str, Any]],
        substitutes: Mapping[str, tuple[str, ...]],
        named: dict[int, Row],
    ) -> None:
        """Create without rows; `named` has rows of objects of the process, by their identity.

        `hooks` write objects of exactly these classes. `omitted` are fields that are not written, by class,
        with what stands for them. `substitutes` are derived classes that stand for their bases, with the
        fields that they add.
        """
        self._omitted, self._substitutes = omitted, substitutes
        self._constants = KnownConstants()
        self._named = {**self._constants.rows(), **named}
        self._references: dict[int, Row] = {}
        """References of rows to objects, by their identity."""
        self._objects: list[Any] = []
        self._parents: list[int] = []
        self._at = -1
        self._late: deque[tuple[int, Any]] = deque()
        """Sets, whose members are numbered by what leads to them in a certain order."""
        self.sets: list[Row] = []
        """Members of each set, after its number."""
        self.layouts: list[Row] = []
        """Rows of the layouts so far."""
        self._layouts: dict[tuple[type[Any], tuple[str, ...]], ObjectLayout] = {}
        self._row_of: dict[type[Any], Callable[[Any], Row]] = {
            list: lambda one: ["list", *self._values(one)],
            tuple: lambda one: ["tuple", *self._values(one)],
            set: self._set,
            frozenset: self._frozenset,
            dict: self._dict,
            Counter: lambda one: ["Counter", *self._pairs(one)],
            OrderedDict: lambda one: ["OrderedDict", *self._pairs(one)],
            defaultdict: lambda one: ["defaultdict", self.value(one.default_factory), *self._pairs(one)],
            Resource: lambda one: ["amount", *itertools.chain.from_iterable(one.items())],
            deque: lambda one: ["deque", one.maxlen, *self._values(one)],
            bytearray: lambda one: ["bytearray", bytes(one)],
            itertools.count: self._count,
            partial: self._partial,
            MethodType: self._method,
            BuiltinFunctionType: self._builtin,
            FunctionType: self._function,
            CellType: lambda one: ["cell", self.value(one.cell_contents)],
            MappingProxyType: lambda one: ["proxy", *self._pairs(dict(one))],
            ModuleType: self._module,
            **hooks,
        }

    def rows(self, root: Any) -> Iterator[Row]:
        """Yield the row of an object, and those of all that it leads to."""
        self.value(root)
        objects, late = self._objects, self._late
        while self._at + 1 < len(objects) or late:
            if self._at + 1 == len(objects):
                number, members = late.popleft()
                self.sets.append([number, *self._in_order(members)])
            else:
                self._at += 1
                yield self._row(objects[self._at])

    def _set(self, one: Any) -> Row:
        self._late.append((self._at, one))
        return ["set"]

    def _frozenset(self, one: Any) -> Row:
        if all(map(_is_plain, one)):
            return ["frozenset", *self._values(_sorted(one))]
        self._late.append((self._at, one))
        return ["frozenset"]

    def _in_order(self, members: Any) -> list[Any]:
        """Return the members of a set in an order that does not depend on hashes, as far as possible."""
        known = {id(one) for one in members if type(one) in PLAIN or id(one) in self._references}
        first = self._values(_sorted([one for one in members if id(one) in known]))
        return [
            *(one for one in first if type(one) is not list),
            *sorted(one for one in first if type(one) is list),
            *self._values([one for one in members if id(one) not in known]),
        ]

    def value(self, value: Any) -> Any:
        """Return what stands for a value in a row: the value itself if it is plain, else its number."""
        if type(value) in PLAIN:
            return value
        return self._references.get(id(value)) or self._add(value)

    def _add(self, value: Any) -> Row:
        """Number an object, whose row is written later."""
        reference = self._references[id(value)] = [len(self._objects)]
        self._objects.append(value)
        self._parents.append(self._at)
        return reference

    def _values(self, values: Any) -> list[Any]:
        plain, known, add = PLAIN, self._references.get, self._add
        return [one if type(one) in plain else known(id(one)) or add(one) for one in values]

    def _pairs(self, mapping: Any) -> list[Any]:
        return self._values(itertools.chain.from_iterable(dict.items(mapping)))

    def _row(self, one: Any) -> Row:
        known = self._named.get(id(one))
        if known is not None:
            return known
        cls = type(one)
        make = self._row_of.get(cls)
        return self._object(one, cls) if make is None else make(one)

    # -- objects of classes ---------------------------------------------------------------------------

    def _object(self, one: Any, cls: Any) -> Row:
        known, added = self._state_class(cls)
        if known is None:
            if isinstance(one, type):
                return self._class(one)
            if cls in _EMPTY and one.__length_hint__() == 0:
                return ["nothing"]
            raise SnapshotError(self.explain(one))
        slots = slots_of(cls)
        own = getattr(one, "__dict__", None)
        if own is None:
            names = tuple(name for name in slots if hasattr(one, name))
        else:
            names = (
                *(name for name in slots if hasattr(one, name)),
                *(name for name in own if name not in added),
            )
        layout = self._layouts.get((cls, names))
        if layout is None:
            omitted = {
                name: value
                for base in reversed(known.__mro__)
                for name, value in self._omitted.get(f"{base.__module__}:{base.__qualname__}", {}).items()
            }
            layout = self._layouts[cls, names] = ObjectLayout(len(self.layouts), known, names, omitted)
            self.layouts.append(layout.row)
            if own is None and names == slots:
                self._row_of[cls] = partial(self._slotted, layout)
        return self._of_layout(one, layout)

    def _slotted(self, layout: ObjectLayout, one: Any) -> Row:
        """Return the row of an object of a class without a dictionary, most of which have all fields."""
        try:
            return self._of_layout(one, layout)
        except AttributeError:  # a slot has no value yet
            return self._object(one, type(one))

    def _of_layout(self, one: Any, layout: ObjectLayout) -> Row:
        values: Any = layout.read(one)
        if layout.omitted:
            values = list(values)
            for at, instead in layout.omitted:
                is_same = isinstance(instead, SameAs)
                values[at] = values[layout.names.index(instead.field)] if is_same else instead
        row = [layout.number, *self._values(values)]
        if layout.container is not None:
            row += (
                self._pairs(one) if layout.container is dict else self._values(layout.container.__iter__(one))
            )
        return row

    def _state_class(self, cls: type[Any]) -> tuple[type[Any] | None, tuple[str, ...]]:
        """Return the class of the state that stands for a class, and the fields that are left out."""
        added: tuple[str, ...] = ()
        for base in cls.__mro__:
            if self._constants.name_of(base) is not None and is_state_module(base.__module__):
                return base, added
            name = f"{base.__module__}:{base.__qualname__}"
            if name in self._substitutes:
                added += self._substitutes[name]
            elif not _only_counts(base):
                break
        return None, ()

    # -- code -----------------------------------------------------------------------------------------

    def _class(self, one: type[Any]) -> Row:
        if BUILTINS.get(one.__qualname__) is one:
            return ["named", "builtins", one.__qualname__]
        known, _ = self._state_class(one)
        if known is not None:
            return ["named", known.__module__, known.__qualname__]
        raise SnapshotError(self.explain(one))

    def _dict(self, one: Any) -> Row:
        return ["dict", *self._pairs(one)]

    @staticmethod
    def _count(one: Any) -> Row:
        # `count` has no public state; its text is `count(START)` or `count(START, STEP)`.
        return ["count", *map(int, repr(one)[6:-1].split(","))]

    def _partial(self, one: Any) -> Row:
        return ["partial", self.value(one.func), self.value(one.args), self.value(one.keywords)]

    def _method(self, one: Any) -> Row:
        return ["method", self.value(one.__self__), one.__func__.__name__]

    def _builtin(self, one: Any) -> Row:
        owner = one.__self__
        if isinstance(owner, ModuleType) or one.__name__ not in _METHODS or container_of(type(owner)) is None:
            raise SnapshotError(self.explain(one))
        return ["method", self.value(owner), one.__name__]

    def _function(self, one: Any) -> Row:
        place = place_of(one) if is_state_module(one.__module__) else None
        if place is None or one.__kwdefaults__:
            raise SnapshotError(self.explain(one))
        cells = self.value(one.__closure__ or ())
        return ["function", one.__module__, *place, cells, self.value(one.__defaults__)]

    def _module(self, one: Any) -> Row:
        if not is_state_module(one.__name__):
            raise SnapshotError(self.explain(one))
        return ["module", one.__name__]

    def explain(self, one: Any) -> str:
        """Return why an object cannot be written, with the objects through which it was reached."""
        trail: list[str] = []
        at = self._at
        while at >= 0 and len(trail) < 8:
            trail.append(type(self._objects[at]).__qualname__)
            at = self._parents[at]
        what = (
            f"class {one.__qualname__}" if isinstance(one, type) else f"an object of {type(one).__qualname__}"
        )
        name = getattr(one, "__qualname__", "")
        return (
            f"{what} {name} of {getattr(one, '__module__', type(one).__module__)} cannot be kept in a"
            f" snapshot; reached through {' <- '.join(trail)}"
        )


def _sorted(members: Iterable[Any]) -> list[Any]:
    """Return members with the plain ones, and tuples of plain ones, in an order of their own."""
    return sorted(members, key=lambda one: repr(one) if _is_plain(one) else "")


def _is_plain(one: Any) -> bool:
    return type(one) in PLAIN or (type(one) is tuple and all(map(_is_plain, one)))


def _only_counts(cls: type[Any]) -> bool:
    """Return True if a class was derived to count the calls of a plugin, and adds no field."""
    return not vars(cls).get("__slots__", True) and LOCALS not in cls.__qualname__ and len(cls.__mro__) > 2
