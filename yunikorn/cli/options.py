"""Options of all commands: groups and classes of them, and the refusal of those that a call repeats."""

from __future__ import annotations

from collections import Counter
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


def refuse_repeated(command: click.Command) -> None:
    """Let a command, and all commands below it, refuse a repeated option that has one value.

    Only the last value would count.
    """
    original = command.make_parser

    @wraps(original)
    def make_parser(ctx: click.Context) -> Any:
        parser = original(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            found = parse(args)
            if not ctx.resilient_parsing:
                _check(found[2], ctx)
            return found

        setattr(parser, "parse_args", parse_args)  # noqa: B010
        return parser

    setattr(command, "make_parser", make_parser)  # noqa: B010
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            refuse_repeated(inner)


def _check(order: list[click.Parameter], ctx: click.Context) -> None:
    for param, count in Counter(order).items():
        if count > 1 and isinstance(param, click.Option) and not _may_repeat(param):
            raise click.UsageError(f"{param.opts[-1]} is given {count} times: give it once", ctx)


def _may_repeat(option: click.Option) -> bool:
    # A flag that is set twice is set.
    return option.multiple or option.count or (option.is_flag and not option.secondary_opts)
