"""Strict conversion from text to types, for the configuration and for plugin options.

YAML scalars stay text until their type is known (see `docs/decisions/archive/0001`), so all numbers and
booleans are converted here. A value that does not fit is refused and never coerced: `"false"` never becomes
True.
"""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn

from yunikorn.api import Plugin
from yunikorn.containment import is_plugin_of, safe_repr, safe_text
from yunikorn.framework.kinds import KINDS
from yunikorn.text import suggest

TRUE = frozenset({"true", "yes", "on", "y"})
FALSE = frozenset({"false", "no", "off", "n"})
MISSING = "required, but missing"
UNKNOWN_KEY = "unknown key"
_INTEGER = re.compile(r"[+-]?\d+\Z")


def to_int(value: object, _: Any = None) -> int:
    """Convert an integer or its decimal text. Raises `ValueError`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.match(value):
        return int(value)
    raise ValueError(f"expected a whole number, got {show(value)}")


def to_float(value: object, _: Any = None) -> float:
    """Convert a finite number or its text. Raises `ValueError`."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if number - number == 0:
            return number
    raise ValueError(f"expected a number, got {show(value)}")


def to_bool(value: object, _: Any = None) -> bool:
    """Convert a boolean, or a text in `TRUE` or `FALSE` in any case. Raises `ValueError`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in TRUE | FALSE:
        return value.lower() in TRUE
    raise ValueError(f"expected true or false, got {show(value)}")


def to_text(value: object, _: Any = None) -> str:
    """Return `value` if it is text. Raises `ValueError`."""
    if isinstance(value, str):
        return value
    raise ValueError(f"expected text, got {show(value)}")


def show(value: object) -> str:
    """Return the description of `value` in messages."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "nothing" if value is None else safe_repr(value)


def make_converter(*, comma_lists: bool = False) -> cattrs.Converter:
    """Return a strict converter: unknown keys are errors, and scalars must fit.

    `comma_lists` reads a text as in queue properties: split at commas where a list is expected, and as
    `NAME=VALUE, NAME=VALUE` where a mapping is expected.
    """
    converter = cattrs.Converter(forbid_extra_keys=True)
    for target, hook in ((int, to_int), (float, to_float), (bool, to_bool), (str, to_text)):
        converter.register_structure_hook(target, hook)
    converter.register_structure_hook(Path, lambda value, _: Path(to_text(value)))
    converter.register_structure_hook_factory(_is_choice, _choice_hook)
    converter.register_structure_hook_factory(_is_list, lambda kind: _list_hook(converter, kind, comma_lists))
    converter.register_structure_hook_factory(
        _is_mapping, lambda kind: _mapping_hook(converter, kind, comma_lists)
    )
    converter.register_structure_hook_factory(_is_policy, lambda base: partial(_made, base))
    converter.register_structure_hook_factory(attrs.has, lambda cls: _class_hook(converter, cls))
    return converter


def _is_policy(kind: Any) -> bool:
    return any(kind is known.base for known in KINDS)


def _made(base: type[Plugin], policy: object, _: Any) -> object:
    """Return a policy that `framework.nested_policies` has made."""
    if not is_plugin_of(policy, base):
        raise ValueError(f"expected a policy, got {show(policy)}")
    return policy


def _is_choice(kind: Any) -> bool:
    return get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum))


def _choice_hook(kind: Any) -> Callable[[Any, Any], Any]:
    """Return the function that finds the value of a `Literal` or the member of an `Enum`."""
    if isinstance(kind, type):
        choices = [(member.value, member) for member in kind]  # type: ignore[attr-defined]
    else:
        choices = [(value, value) for value in get_args(kind)]

    def structure(value: Any, _: Any) -> Any:
        for known, choice in choices:
            if known is value or (type(known) is type(value) and known == value):
                return choice
        if isinstance(value, str):  # a number in a queue property is a text
            for known, choice in choices:
                if type(known) is int and value == str(known):
                    return choice
        names = [known for known, _ in choices if isinstance(known, str)]
        hint = suggest(value, names) if isinstance(value, str) else ""
        expected = " or ".join(show(known) for known, _ in choices)
        raise ValueError(f"expected {expected}, got {show(value)}{hint}")

    return structure


_LISTS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    abc.Sequence: tuple,
    abc.Collection: tuple,
    abc.Iterable: tuple,
    abc.Set: frozenset,
}
"""List types that options may have, and the type of the result. A text is never taken as a list."""


def _is_list(kind: Any) -> bool:
    return (get_origin(kind) or kind) in _LISTS


def _is_mapping(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (dict, abc.Mapping)


def _list_hook(converter: cattrs.Converter, kind: Any, comma_lists: bool) -> Callable[[Any, Any], Any]:
    container = _LISTS[get_origin(kind) or kind]
    arguments = [argument for argument in get_args(kind) if argument is not Ellipsis]
    fixed = container is tuple and bool(arguments) and Ellipsis not in get_args(kind)
    inner = list[arguments[0]] if arguments and not fixed else list  # type: ignore[valid-type]
    element = arguments[0] if arguments else Any

    def structure(value: Any, _: Any) -> Any:
        if comma_lists and isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value.strip() else []
        if not isinstance(value, (list, tuple, set, frozenset)):
            raise ValueError(f"expected a list, got {show(value)}")
        if fixed:
            if len(value) != len(arguments):
                raise ValueError(f"expected {len(arguments)} entries, got {len(value)}")
            return tuple(converter.structure(item, want) for item, want in zip(value, arguments, strict=True))
        return container(_structure_each(converter, value, element, inner))

    return structure


def _structure_each(converter: cattrs.Converter, values: Any, element: Any, inner: Any) -> list[Any]:
    results, faults = [], []
    for index, value in enumerate(values):
        try:
            results.append(converter.structure(value, element))
        except Exception as error:
            error.add_note(
                cattrs.IterableValidationNote(f"Structuring {inner} @ index {index}", index, element)
            )
            faults.append(error)
    if faults:
        raise cattrs.IterableValidationError(f"While structuring {inner}", faults, inner)
    return results


def _mapping_hook(converter: cattrs.Converter, kind: Any, comma_lists: bool) -> Callable[[Any, Any], Any]:
    key_type, value_type = get_args(kind) or (Any, Any)

    def structure(value: Any, _: Any) -> Any:
        if comma_lists and isinstance(value, str):
            value = _pairs(value)
        if not isinstance(value, dict):
            raise ValueError(f"expected a mapping, got {show(value)}")
        result, faults = {}, []
        for key, item in value.items():
            try:
                result[converter.structure(key, key_type)] = converter.structure(item, value_type)
            except Exception as error:
                error.add_note(
                    cattrs.IterableValidationNote(f"Structuring mapping @ key {key!r}", key, value_type)
                )
                faults.append(error)
        if faults:
            raise cattrs.IterableValidationError("While structuring mapping", faults, dict)
        return result

    return structure


def _pairs(text: str) -> dict[str, str]:
    """Return the mapping in a text such as `gpu=4, vcore=1`. Raises `ValueError`."""
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise ValueError(f"expected NAME=VALUE, separated by commas, got {part.strip()!r}")
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        found[name] = value
    return found


def has_text_form(kind: Any) -> bool:
    """Return True if an option of this type can be a text: a scalar, or a list or mapping of scalars."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return has_text_form(arguments[0])
    if origin in (Union, UnionType):
        return all(map(has_text_form, arguments))
    if _is_list(kind) or _is_mapping(kind):
        return all(map(_is_scalar, arguments))
    return _is_scalar(kind)


def _is_scalar(kind: Any) -> bool:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_scalar(arguments[0])
    if origin in (Union, UnionType):
        return all(map(_is_scalar, arguments))
    nested = (
        _is_list(kind) or _is_mapping(kind) or attrs.has(kind) or is_dataclass(kind) or is_typeddict(kind)
    )
    return not nested


def _class_hook(converter: cattrs.Converter, cls: Any) -> Callable[[Any, Any], Any]:
    generated = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)

    def structure(value: Any, target: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"expected a mapping, got {show(value)}")
        return generated(value, target)

    return structure


def faults(error: Exception) -> list[tuple[str, str]]:
    """Return the errors of a failed `structure` as (path, message); a path looks like `.teams[0].name`."""
    found: list[tuple[str, str]] = []
    _collect(error, "", found)
    return found


def _collect(error: BaseException, path: str, found: list[tuple[str, str]]) -> None:
    if isinstance(error, cattrs.ClassValidationError):
        with_notes, without = error.group_exceptions()
        for inner, note in with_notes:
            if isinstance(inner, KeyError) and inner.args == (note.name,):
                found.append((f"{path}.{note.name}", MISSING))
            else:
                _collect(inner, f"{path}.{note.name}", found)
        for inner in without:
            _collect(inner, path, found)
    elif isinstance(error, cattrs.IterableValidationError):
        with_index, without = error.group_exceptions()
        for inner, index in with_index:
            step = f"[{index.index}]" if isinstance(index.index, int) else f".{index.index}"
            _collect(inner, f"{path}{step}", found)
        for inner in without:
            _collect(inner, path, found)
    elif isinstance(error, cattrs.ForbiddenExtraKeysError):
        found.extend((f"{path}.{name}", UNKNOWN_KEY) for name in sorted(error.extra_fields))
    else:
        found.append((path, safe_text(error)))
