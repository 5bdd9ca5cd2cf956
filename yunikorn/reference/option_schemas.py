"""JSON Schema of plugin options, by their types (see `yunikorn.framework.options`)."""

from __future__ import annotations

import types
import typing
from collections import abc
from pathlib import Path
from typing import Any, get_args, get_origin

import attrs

from yunikorn.framework.options import FALSE, TRUE
from yunikorn.reference.values import Schema, any_of, in_any_case, pattern

_TEXT: Schema = {"type": ["string", "number", "boolean"]}
_SCALARS: dict[Any, Schema] = {
    str: _TEXT,
    Path: _TEXT,
    int: any_of({"type": "integer"}, pattern("[+-]?[0-9]+")),
    float: any_of({"type": "number"}, {"type": "string"}),
    bool: any_of({"type": "boolean"}, pattern("|".join(map(in_any_case, sorted(TRUE | FALSE))))),
    type(None): {"type": "null"},
}
_LISTS = (
    list,
    tuple,
    set,
    frozenset,
    abc.Sequence,
    abc.Collection,
    abc.Iterable,
    abc.Set,
)


def option_schema(annotation: Any, *, comma_lists: bool = False) -> Schema:
    """Return the schema of an option of this type; it accepts any value if the type is not documented.

    With `comma_lists` a list may also be a text, as in queue properties.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return option_schema(arguments[0], comma_lists=comma_lists)
    if origin in (typing.Union, types.UnionType):
        return any_of(*(option_schema(each, comma_lists=comma_lists) for each in arguments))
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if (origin or annotation) in _LISTS:
        entries = [option_schema(each) for each in arguments if each is not Ellipsis] or [{}]
        found: Schema = {"type": "array", "items": any_of(*entries) if len(entries) > 1 else entries[0]}
        return any_of(found, _TEXT) if comma_lists else found
    if (origin or annotation) in (dict, abc.Mapping):
        inner = option_schema(arguments[1]) if arguments else {}
        return {"type": "object", "additionalProperties": inner}
    if attrs.has(annotation):
        return _class_schema(annotation)
    return {}


def _class_schema(cls: type[Any]) -> Schema:
    fields = [field for field in attrs.fields(attrs.resolve_types(cls)) if field.init]
    found: Schema = {
        "type": "object",
        "properties": {field.alias or field.name: option_schema(field.type) for field in fields},
        "additionalProperties": False,
    }
    required = [field.alias or field.name for field in fields if field.default is attrs.NOTHING]
    return {**found, "required": required} if required else found
