"""Options that a call gives twice although they have one value: refused, because only the last one counts."""

from __future__ import annotations

from collections import Counter
from functools import wraps
from typing import Any

import click


def refuse_repeated(command: click.Command) -> None:
    """Let a command, and all commands below it, refuse a repeated option that has one value."""
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
