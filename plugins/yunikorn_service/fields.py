"""Fields of the JSON objects in answers: name, presence and description, declared with the attrs class.

A *shape* is a frozen attrs class whose fields are made by `always` and `optional`. Its JSON text
(`yunikorn_rest.encoding`) and its part of the OpenAPI document (`yunikorn_rest.openapi`) follow from it.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

S = TypeVar("S")

_NAME, _OMITTED, _TEXT = "json name", "omitted if empty", "description"


def always(text: str, default: Any = attrs.NOTHING, *, name: str = "") -> Any:
    """Return a field that is always present; `text` is its description, `name` its JSON name.

    Without a name, the JSON name is the name of the attribute in camel case.
    """
    return _field(text, default, name, omitted=False)


def optional(text: str, default: Any, *, name: str = "") -> Any:
    """Return a field that is absent while it has its default, the empty value of its type."""
    return _field(text, default, name, omitted=True)


def _field(text: str, default: Any, name: str, *, omitted: bool) -> Any:
    return attrs.field(default=default, metadata={_NAME: name, _OMITTED: omitted, _TEXT: text})


NONE: Mapping[str, Any] = MappingProxyType({})
"""Default of optional mappings."""


@attrs.frozen
class ShapeField:
    """A field of a shape, as its JSON text and its schema need it."""

    attribute: str
    name: str
    """JSON name."""
    omitted: bool
    """True if the field is absent while it is empty."""
    description: str
    type: Any
    nested: bool
    """True if the value is a shape, or a sequence of shapes."""

    def is_omitted(self, value: object) -> bool:
        """Return True for an empty value that makes the field absent; of `bool | None` only None is empty."""
        return self.omitted and not value and (value is not False or self.type is bool)


def members_of(shape: type[Any]) -> tuple[ShapeField, ...]:
    """Return the fields of a shape in their order."""
    kind: Any = shape  # mypy does not accept classes as hashable arguments
    return _members_of(kind)


@cache
def _members_of(shape: Any) -> tuple[ShapeField, ...]:
    types = typing.get_type_hints(shape)
    return tuple(
        ShapeField(
            field.name,
            field.metadata[_NAME] or camel_case(field.name),
            field.metadata[_OMITTED],
            field.metadata[_TEXT],
            types[field.name],
            _is_nested(types[field.name]),
        )
        for field in attrs.fields(shape)
    )


def shape_like(shape: Callable[..., S], source: object, **others: Any) -> S:
    """Return a shape with the attributes that an object has under the same names, apart from `others`."""
    kind: Any = shape
    same = (field.name for field in attrs.fields(kind) if field.name not in others)
    return shape(**{name: getattr(source, name) for name in same}, **others)


def camel_case(name: str) -> str:
    """Return `max_running_apps` as `maxRunningApps`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def is_shape(kind: Any) -> bool:
    """Return True for a class whose objects become JSON objects."""
    return isinstance(kind, type) and attrs.has(kind)


def _is_nested(kind: Any) -> bool:
    return is_shape(kind) or any(_is_nested(inner) for inner in typing.get_args(kind))


def json_object(shape: object) -> dict[str, Any]:
    """Return a shape as a JSON object, as an answer has it."""
    kind: Any = type(shape)
    found = {}
    for field in members_of(kind):
        value = getattr(shape, field.attribute)
        if not field.is_omitted(value):
            found[field.name] = _json_value(value)
    return found


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _json_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(inner) for inner in value]
    return json_object(value) if attrs.has(type(value)) else value
