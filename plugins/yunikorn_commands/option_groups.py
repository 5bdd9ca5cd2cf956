"""Groups and classes of options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import attrs
import click

_OPTION = "option"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Function that adds an option to a command."""


def option_group(*options: Decorator) -> Decorator:
    """Return the decorator that adds options to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def option(*names: str, default: Any = None, **settings: Any) -> Any:
    """Return a field of an attrs class with the option that sets it, whose names and settings are click's.

    The usual name is that of the field.
    """
    needed = settings.get("required", False)
    known = settings if needed else {**settings, "default": default}
    return attrs.field(default=attrs.NOTHING if needed else default, metadata={_OPTION: (names, known)})


def options_of(kind: type[Any]) -> Iterator[Decorator]:
    """Yield the options of the fields of a class, in their order."""
    for field in attrs.fields(kind):
        if _OPTION in field.metadata:
            names, settings = field.metadata[_OPTION]
            usual = "--" + field.name.strip("_").replace("_", "-")
            yield click.option(*(names or (usual,)), field.name, **settings)


def option_class(kind: type[Any], argument: str) -> Decorator:
    """Return the decorator that adds the options of a class, for which the command gets one argument."""
    names = [field.name for field in attrs.fields(kind) if _OPTION in field.metadata]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**given: Any) -> Any:
            values = kind(**{name: given.pop(name) for name in names})
            return command(**{argument: values}, **given)

        return option_group(*options_of(kind))(call)

    return add
