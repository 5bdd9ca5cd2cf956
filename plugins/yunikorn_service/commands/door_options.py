"""Options of a command by which a call opens and sets the doors of its service.

Default doors declare their options. Those of a door of another package follow from the class: `--NAME` opens
it, and each attribute is an option `--NAME-ATTRIBUTE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import click

from yunikorn.api import Door
from yunikorn.containment import safe_text
from yunikorn.errors import OptionError, PluginError, UsageError, printable
from yunikorn.framework.kinds import DOOR
from yunikorn.framework.offers import Offer, Option
from yunikorn.framework.registry import Registry
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.offered_commands import left_out
from yunikorn_service.service_door import ServiceDoor
from yunikorn_service.service_settings import ServerSettings

_DOORS = "yunikorn_service.commands.door_options"
"""Key of the doors in the context of a call."""


class ServiceCommand(click.Command):
    """Command that runs a service, with the options of the doors that are installed.

    The plugins are imported when the options are needed, hence also for `--help`.
    """

    without: frozenset[str] = frozenset()
    """Names of doors that the command does not have."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the command and of its doors."""
        *own, of_help = super().get_params(ctx)
        return [*own, *(option for entry in self.doors(ctx).entries for option in entry.options), of_help]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an error for an unknown option names the doors that cannot be used."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = "; ".join([error.format_message().rstrip("."), *map(printable, self.doors(ctx).problems)])
            raise click.UsageError(text, ctx) from error

    def doors(self, ctx: click.Context) -> DoorOptions:
        """Return the doors that a call may open. Raises `click.UsageError` for unknown plugins."""
        found = ctx.meta.get(_DOORS)
        if found is None:
            taken = {name for option in self.params for name in option.opts}
            try:
                found = DoorOptions(load_registry(), self.without, taken)
            except UsageError as error:
                raise click.UsageError(str(error), ctx) from error
            ctx.meta[_DOORS] = found
        assert isinstance(found, DoorOptions)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the command, then those of each door."""
        doors = self.doors(ctx)
        sections: list[tuple[str, Sequence[click.Parameter]]] = [("Options", super().get_params(ctx))]
        for title, options in [*sections, *((entry.title, entry.options) for entry in doors.entries)]:
            records = [record for one in options if (record := one.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(records)
        for problem in doors.problems:
            formatter.write_paragraph()
            formatter.write_text(printable(problem))


@attrs.frozen
class _Entry:
    """Door with its options."""

    offer: Offer
    options: list[click.Option]

    @property
    def title(self) -> str:
        """Title of the section of help."""
        line = _line(self.offer).removesuffix(".")
        is_default = issubclass(self.offer.cls, ServiceDoor)
        return line if is_default else f"{line} ({printable(self.offer.distribution)})"


class DoorOptions:
    """Installed doors with their options, and those that cannot be used."""

    def __init__(self, registry: Registry, without: frozenset[str], taken: set[str]) -> None:
        """Read the doors `registry` offers; `taken` has the options that the command has already."""
        self.registry = registry
        self.entries: list[_Entry] = []
        self.problems = [f"not loaded: {broken}" for broken in registry.broken]
        """Doors and plugins that cannot be used, with the reasons."""
        if registry.installed.left_out:
            self.problems.append(left_out(registry.installed.left_out))
        taken = {"--help", "-h", *taken}
        offers = [offer for offer in registry.offers(DOOR) if offer.name not in without]
        for offer in offers:
            others = [one for one in offers if one.name == offer.name and one is not offer]
            if others and not issubclass(offer.cls, ServiceDoor):
                what = f"{others[0].origin} has the same name; choose one by YUNIKORN_PLUGINS"
                self.problems.append(f"door {offer.origin} cannot be used: {what}")
                continue
            is_default = issubclass(offer.cls, ServiceDoor)
            options = [*(offer.cls.flags() if is_default else _derived(offer))]
            names = {name for option in options for name in option.opts}
            if names & taken:
                which = ", ".join(sorted(names & taken))
                self.problems.append(f"door {offer.origin} cannot be used: the command already has {which}")
                continue
            taken |= names
            self.entries.append(_Entry(offer, options))

    def split(self, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Take the values of the doors out of those of a call, and return them by door."""
        return {
            entry.offer.name: {str(one.name): values.pop(str(one.name)) for one in entry.options}
            for entry in self.entries
        }

    def open(self, values: Mapping[str, Mapping[str, Any]], settings: ServerSettings) -> list[Door]:
        """Return the doors that a call opens.

        Raises `UsageError` or `click.BadParameter` for options that cannot be used.
        """
        made = [self._made(entry, values[entry.offer.name], settings) for entry in self.entries]
        return [door for door in made if door is not None]

    def _made(self, entry: _Entry, values: Mapping[str, Any], settings: ServerSettings) -> Door | None:
        offer = entry.offer
        if issubclass(offer.cls, ServiceDoor):
            return offer.cls.of_flags(values, settings)
        opened, *options = entry.options
        given = {
            option.name: values[str(one.name)]
            for option, one in zip(offer.options, options, strict=True)
            if values[str(one.name)] is not None
        }
        if not values[str(opened.name)]:
            if given:
                first = _flag(offer, next(iter(given)))
                raise UsageError(f"{first} needs {_flag(offer)}, which opens the door")
            return None
        try:
            door = self.registry.make(DOOR, offer.name, given, comma_lists=True)
        except OptionError as error:
            raise UsageError(
                "\n".join(f"{_flag(offer, path.lstrip('.'))}: {message}" for path, message in error.faults)
            ) from error
        except PluginError as error:
            raise UsageError(str(error)) from error
        assert isinstance(door, Door)
        return door


def _flag(offer: Offer, attribute: str = "") -> str:
    return "--" + "-".join(filter(None, (offer.name, attribute.replace("_", "-"))))


def _line(offer: Offer) -> str:
    return printable(offer.summary or f"Open the door {offer.name}.")


def _derived(offer: Offer) -> Iterator[click.Option]:
    prefix = f"door_{offer.name}".replace("-", "_")
    yield click.Option((_flag(offer), prefix), is_flag=True, help=_line(offer))
    for option in offer.options:
        yield click.Option(
            (_flag(offer, option.name), f"{prefix}_{option.name}"),
            metavar=option.type.upper(),
            help=_help(option),
        )


def _help(option: Option) -> str:
    default = "[required]" if option.required else f"[default: {printable(safe_text(option.default))}]"
    return "  ".join(filter(None, (printable(option.help), default)))
