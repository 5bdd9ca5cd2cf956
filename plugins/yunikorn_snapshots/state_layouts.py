"""Layouts: the class of an object, and the names of its fields, as a snapshot has them.

A layout has a digest of what the class can have in this version. A reader compares the digest with its own,
so that an object of another version is refused by the name of its class, before anything is made of it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from dis import EXTENDED_ARG, opmap
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any

import attrs

CONTAINERS = (dict, list, tuple, set, frozenset, deque)
"""Classes of Python that classes of the state may derive from."""
_STORE, _EXTENDED = opmap["STORE_ATTR"], EXTENDED_ARG


def container_of(cls: type[Any]) -> type[Any] | None:
    """Return the class of Python with the entries of an object, or None."""
    return next((base for base in CONTAINERS if issubclass(cls, base)), None)


@cache
def slots_of(cls: Any) -> tuple[str, ...]:
    """Return the names of all slots of a class."""
    return tuple(
        name
        for base in reversed(cls.__mro__)
        for name, one in vars(base).items()
        if isinstance(one, MemberDescriptorType)
    )


@cache
def possible_fields(cls: Any) -> frozenset[str]:
    """Return the names of all fields that objects of a class may have: slots, attributes that methods set."""
    found = set(slots_of(cls))
    if attrs.has(cls):
        found |= {field.name for field in attrs.fields(cls)}
    for base in cls.__mro__[:-1]:
        found |= set(vars(base).get("__annotations__", ()))
        for one in vars(base).values():
            one = getattr(one, "fget", None) or getattr(one, "__func__", one)
            if isinstance(one, FunctionType):
                found |= _stored_by(one.__code__)
            elif type(one).__name__ == "cached_property":
                found.add(one.attrname)
    return frozenset(found)


def _stored_by(code: CodeType) -> set[str]:
    """Return the names of the attributes that a function sets; `dis` takes ten times as long."""
    found: set[str] = set()
    above = 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument |= above
        above = argument << 8 if operation == _EXTENDED else 0
        if operation == _STORE:
            found.add(code.co_names[argument])
    return found


@cache
def digest_of(cls: Any) -> str:
    """Return a digest of the fields that objects of a class may have, and of its bases."""
    bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
    text = "\n".join([*bases, "", *sorted(possible_fields(cls))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def reader_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of these fields of an object."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda thing: (only(thing),)
    return attrgetter(*names)
