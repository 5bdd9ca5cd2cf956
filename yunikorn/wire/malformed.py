"""Error for a message that cannot be translated, with the path of the invalid field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import attrs

from yunikorn.errors import YunikornError, printable

REFUSED = (ValueError, TypeError, AttributeError, LookupError)
"""Errors for a value that does not fit its field: of protobuf, or of a value with another type."""


class MalformedMessage(YunikornError):
    """A message that the interface does not allow; `path` is the invalid field (`asks[3].priority`)."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(printable(f"{path}: {reason}" if path else reason))


def blame(path: str, entry: Any, fill: Callable[[Any], object], error: Exception) -> NoReturn:
    """Raise `MalformedMessage` for an entry that could not be encoded, with the field if it can be found.

    `fill` encodes an entry of this class, and has raised `error`. The function tries each field alone to find
    the invalid one.
    """
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(type(entry)) if attrs.has(type(entry)) else ()
    empty = {field.name: "" for field in fields if field.default is attrs.NOTHING and field.init}
    for field in fields:
        value = getattr(entry, field.name)
        try:
            fill(type(entry)(**{**empty, field.name: value}))
        except REFUSED as reason:
            raise MalformedMessage(
                f"{path}.{field.name}" if path else field.name, _why(reason, value)
            ) from error
    raise MalformedMessage(path, _why(error, entry)) from error


def _why(error: Exception, value: object) -> str:
    if isinstance(error, ValueError):
        return f"{error}"
    return f"a {type(value).__name__} is not allowed here ({error})"
