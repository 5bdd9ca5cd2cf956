"""`yunikorn plugins`: list the installed plugins, their options, and the broken plugins.

With `--config FILE`: list the plugins that a configuration uses, where it names them, and what it disables.
With `--faults FILE`: list plugin failures in a run of the service, read from its log.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn import __version__
from yunikorn.config.load import load_config
from yunikorn.config.queues_yaml import WEIGHTED
from yunikorn.containment import entries_of, items_of, number_or_none, safe_repr, safe_text, text_or_none
from yunikorn.errors import ConfigError, UnknownPlugin, UsageError, printable
from yunikorn.framework.kinds import ALL_KINDS, NODE_SORT, PluginKind
from yunikorn.framework.offers import Broken, Offer, Option
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.framework.registry import Registry
from yunikorn.scheduling.node_policies import WeightedScores
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.input_files import read_input
from yunikorn_commands.output import echo, has_colours, results
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.plugin_uses import plugin_uses
from yunikorn_lab.commands.new_package import new


def read_faults(lines: Iterable[str]) -> list[PluginFailure]:
    """Return the failures in a log of JSON lines, in the order of their first entries.

    The service logs a failure when it first occurs, and again with its count when the service ends. If the
    service was killed or still runs, only the first occurrence is counted. The counts of several runs in one
    log are added up. Lines that are not JSON, such as output of other programs, are ignored. Raises
    `UsageError` for a file that is not such a log.
    """
    failures: dict[tuple[str, str], PluginFailure] = {}
    counted: dict[tuple[str, str], int] = {}
    has_text = has_entry = False
    for line in lines:
        entry = _entry(line)
        has_text |= bool(line.strip())
        has_entry |= entry is not None
        if entry is None or "plugin" not in entry:
            continue
        plugin, operation = str(entry["plugin"]), str(entry.get("operation", ""))
        times = entry.get("times")
        times = times if isinstance(times, int) else 1
        # Within one run of the service, the count starts at 1 and grows.
        before = 0 if times == 1 else counted.get((plugin, operation), 0)
        more = max(0, times - before)
        counted[plugin, operation] = times
        failure = failures.get((plugin, operation))
        if failure is None:
            failures[plugin, operation] = PluginFailure(plugin, operation, str(entry["message"]), more)
        else:
            failure.count += more
    if has_text and not has_entry:
        raise UsageError(
            "--faults: this is not a log of `yunikorn serve --log-format json`: no line is in that format"
        )
    return list(failures.values())


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"area", "level", "message"} <= entry.keys() else None


def faults_as_json(failures: list[PluginFailure]) -> str:
    """Return the failures as one JSON object."""
    data = [
        {
            "plugin": failure.plugin,
            "operation": failure.operation,
            "times": failure.count,
            "first": failure.message,
        }
        for failure in failures
    ]
    return json.dumps({"faults": data}, indent=2, ensure_ascii=False)


def faults_as_text(failures: list[PluginFailure]) -> str:
    """Return the failures by plugin as text, with their counts and first messages."""
    if not failures:
        return "this log contains no plugin failures"
    by_plugin: dict[str, list[PluginFailure]] = {}
    for failure in failures:
        by_plugin.setdefault(failure.plugin, []).append(failure)
    lines = []
    for plugin, own in by_plugin.items():
        lines.append(printable(plugin))
        lines += [f"  {failure.count:>6} x {printable(failure.message)}" for failure in own]
    return "\n".join(lines)


CORE = (Offer(NODE_SORT, WEIGHTED, WeightedScores, "yunikorn", "yunikorn", __version__),)
"""Policies that are part of the core, listed beside those that plugins offer."""
BROKEN = 1
UNLIMITED = 10_000
ROOMY = 120
"""Width in columns from which every field of a plugin has its own column."""


@click.group(name="plugins", invoke_without_command=True, subcommand_metavar="[new ...]")
@click.option("--kind", "kind_id", type=click.Choice([kind.id for kind in ALL_KINDS]), help="Only this kind.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--config",
    "config",
    type=INPUT,
    metavar="FILE",
    help="Show the plugins that this queues.yaml uses, where, and what it disables; - is standard input.",
)
@click.option(
    "--faults",
    "log",
    type=INPUT,
    metavar="FILE",
    help="Show plugin failures from a log of `serve --log-format json`; - is standard input.",
)
@click.pass_context
def command(
    ctx: click.Context, kind_id: str | None, as_json: bool, config: Path | None, log: Path | None
) -> None:
    """List the installed plugins, their options, and broken plugins; or create a new plugin.

    On a terminal the list fits its width; piped, every plugin has one line. Exit status: 0, or 1 if a plugin
    is broken and was not loaded, or has faults.
    """
    if ctx.invoked_subcommand is not None:
        given = {
            "--json": as_json,
            "--kind": kind_id is not None,
            "--config": config is not None,
            "--faults": log is not None,
        }
        for option in (option for option, is_given in given.items() if is_given):
            raise click.UsageError(f"{option} applies to the list, not to '{ctx.invoked_subcommand}'", ctx)
        return
    if log is not None:
        if kind_id is not None:
            raise click.UsageError(
                "--kind applies to the list of plugins; a log does not contain the kind", ctx
            )
        if config is not None:
            raise click.UsageError("--config and --faults cannot be combined", ctx)
        failures = read_faults(io.StringIO(read_input(log).decode("utf-8", "replace")))
        echo(faults_as_json(failures) if as_json else faults_as_text(failures))
        ctx.exit(BROKEN if failures else 0)
    registry = load_registry()
    kind = next((kind for kind in ALL_KINDS if kind.id == kind_id), None)
    used = None
    if config is not None:
        # Imported here because only --config needs it.
        from yunikorn_commands.config_input import folder_of, read_config
        from yunikorn_commands.input_files import name_of
        from yunikorn_commands.input_source import InputError

        registry = trusting(registry, folder_of(config))
        try:
            used = Used.of(read_config(config, registry), registry)
        except ConfigError as error:
            raise InputError(name_of(config), error.problems) from error
        registry = used.registry
    if as_json:
        echo(json.dumps(as_data(registry, kind, used), indent=2, ensure_ascii=False))
    else:
        _print_table(_listed(registry, kind, used), used)
        if used is not None:
            _print_disabled(used)
            _print_left_out(used)
        _print_broken(registry.broken)
    ctx.exit(BROKEN if registry.broken else 0)


command.add_command(new)


@attrs.frozen
class Used:
    """Plugins that a configuration uses and disables."""

    registry: Registry
    """Plugins as the configuration wants them, and those of the imported ones that it disables."""
    places: dict[tuple[str, str, str], list[str]]
    """Places that name a plugin, by kind, name and plugin."""
    disabled: dict[str, list[Offer]]
    """Imported plugins that each name in `plugins.disable` switches off."""
    not_imported: frozenset[str]
    """Names in `plugins.disable` of plugins that are not imported for that reason."""
    left_out: dict[str, str]
    """Reasons why a plugin with `required: false` is not used, by the place that names the plugin."""

    @classmethod
    def of(cls, text: str, registry: Registry) -> Used:
        """Read a configuration. Raises `ConfigError` with all its problems."""
        config = load_config(text, registry)
        enabled = registry.configured(config.disabled, config.overriding, config.loaded)
        places: dict[tuple[str, str, str], list[str]] = {}
        left_out: dict[str, str] = {}
        for use in chain.from_iterable(use.with_nested(enabled) for use in plugin_uses(config)):
            offer = next((one for one in CORE if (one.kind, one.name) == (use.kind, use.name)), None)
            try:
                offer = offer or enabled.find(use.kind, use.name)
            except UnknownPlugin as error:
                left_out[use.place] = str(error)
                continue
            places.setdefault(_key(offer), []).append(use.place)
        enabled.offers()  # imports the plugins that are not disabled
        whole = enabled.imported()
        disabled = {}
        for name in config.disabled:
            left = whole.without([name]).offers()
            disabled[name] = [offer for offer in whole.offers() if offer not in left]
        not_imported = frozenset(filter(registry.installed.means_unimported, config.disabled))
        return cls(whole, places, disabled, not_imported, left_out)

    def of_offer(self, offer: Offer) -> list[str]:
        """Return the places that name a plugin."""
        return self.places.get(_key(offer), [])


def _key(offer: Offer) -> tuple[str, str, str]:
    return offer.kind.id, offer.name, offer.plugin


# -- JSON ---------------------------------------------------------------------------------------------


def as_data(registry: Registry, kind: PluginKind | None = None, used: Used | None = None) -> dict[str, Any]:
    """Return all plugins (of one kind, or that are used) and all broken ones as JSON data."""
    data: dict[str, Any] = {
        "plugins": [_offer_data(offer, used) for offer in _in_order(_listed(registry, kind, used))],
        "broken": [attrs.asdict(broken) for broken in registry.broken],
    }
    if used is not None:
        data["disabled"] = {
            name: [{"kind": offer.kind.id, "name": offer.name, "plugin": offer.plugin} for offer in offers]
            for name, offers in used.disabled.items()
        }
        data["left_out"] = used.left_out
    return data


def _offer_data(offer: Offer, used: Used | None) -> dict[str, Any]:
    where = {} if used is None else {"used": used.of_offer(offer)}
    return where | {
        "kind": offer.kind.id,
        "name": offer.name,
        "plugin": offer.plugin,
        "distribution": offer.distribution,
        "version": offer.version,
        "class": offer.class_name,
        "file": offer.file,
        "description": offer.summary,
        "options": [_option_data(option) for option in offer.options],
    }


def _option_data(option: Option) -> dict[str, Any]:
    data = {"name": option.name, "type": option.type, "required": option.required}
    return data if option.required else {**data, "default": _plain(option.default)}


def _plain(value: Any) -> Any:
    """Return a default as JSON data; values without an equivalent become text."""
    kind = type(value)
    if kind is bool or value is None:
        return value
    if issubclass(kind, str):
        return text_or_none(value)
    if issubclass(kind, (int, float)):
        number = number_or_none(value)
        return safe_repr(value) if number is None else number
    if issubclass(kind, dict):
        return {safe_text(key): _plain(item) for key, item in items_of(value)}
    if issubclass(kind, (list, tuple)):
        return [_plain(item) for item in entries_of(value)]
    if issubclass(kind, (set, frozenset)):
        return sorted(map(safe_text, entries_of(value)))
    return safe_text(value)


# -- the table ----------------------------------------------------------------------------------------


def describe_option(option: Option) -> str:
    """Return an option as `resource: str = memory`, or `path: Path (required)`."""
    if option.required:
        return f"{option.name}: {option.type} (required)"
    default = _plain(option.default)
    shown = default if isinstance(default, str) and default else json.dumps(default, ensure_ascii=False)
    return f"{option.name}: {option.type} = {shown}"


def _listed(registry: Registry, kind: PluginKind | None, used: Used | None = None) -> list[Offer]:
    """Return all offers (of one kind, or that are used), and the policies of the core."""
    found = [*registry.offers(kind), *(one for one in CORE if kind in (None, one.kind))]
    return [offer for offer in found if used is None or used.of_offer(offer)]


def _in_order(offers: list[Offer]) -> list[Offer]:
    """Return the offers by kind; within a kind, in the order of registration."""
    return sorted(offers, key=lambda offer: ALL_KINDS.index(offer.kind))


def _source(offer: Offer) -> str:
    return f"{offer.distribution} {offer.version}".strip() or offer.plugin


def _width() -> int:
    if results().isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((80, 24)).columns
    return UNLIMITED


def _print_table(offers: list[Offer], used: Used | None) -> None:
    # Imported here because `--json` and `--help` do not need it.
    from rich.console import Console

    width = _width()
    console = Console(
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=None if has_colours(results()) else False,
    )
    table = _wide(offers, used) if width >= ROOMY else _narrow(offers, used)
    with console.capture() as captured:
        console.print(table, crop=False, overflow="fold")
    for line in captured.get().splitlines():
        echo(line.rstrip())


def _wide(offers: list[Offer], used: Used | None) -> Any:
    """Return the table of a wide terminal; piped, class and file have columns of their own."""
    piped = _width() == UNLIMITED
    columns = ["KIND", "NAME", "FROM", *(["USED AT"] if used else []), "OPTIONS", "DESCRIPTION"]
    table = _table(*columns, *(["CLASS", "FILE"] if piped else []))
    separator = "; " if piped else "\n"
    for offer in _in_order(offers):
        options = separator.join(describe_option(option) for option in offer.options) or "-"
        row = [offer.kind.id, offer.name, _source(offer)]
        if used is not None:
            row.append(separator.join(_shortened(used.of_offer(offer))))
        if piped:
            row += [options, offer.summary or "-", offer.class_name, offer.file or "-"]
        else:
            row += [options, "\n".join([offer.summary or "-", *_origin_lines(offer)])]
        table.add_row(*row)
    return table


def _narrow(offers: list[Offer], used: Used | None) -> Any:
    table = _table("KIND", "NAME", "FROM", "DESCRIPTION AND OPTIONS")
    for offer in _in_order(offers):
        lines = [offer.summary or "-", *(f"- {describe_option(option)}" for option in offer.options)]
        if used is not None:
            lines += [f"used at {place}" for place in _shortened(used.of_offer(offer))]
        lines += _origin_lines(offer)
        table.add_row(offer.kind.id, offer.name, _source(offer), "\n".join(lines))
    return table


def _origin_lines(offer: Offer) -> list[str]:
    return [offer.class_name, *([offer.file] if offer.file else [])]


MOST_PLACES = 5
"""Number of places of one plugin that the table lists; JSON has all of them."""


def _shortened(places: list[str]) -> list[str]:
    if len(places) <= MOST_PLACES:
        return places
    return [*places[:MOST_PLACES], f"and {len(places) - MOST_PLACES} more places"]


def _table(*columns: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("KIND", "NAME"))
    return table


def _print_disabled(used: Used) -> None:
    if not used.disabled:
        return
    echo("")
    echo("Disabled:")
    for name, offers in used.disabled.items():
        gone = ", ".join(f"{offer.kind.title} {offer.origin}" for offer in offers)
        if name in used.not_imported:
            gone = f"not imported; {gone}" if gone else "not imported"
        echo(f"  {printable(name)}: {gone or 'not installed, or broken'}")


def _print_left_out(used: Used) -> None:
    if not used.left_out:
        return
    echo("")
    echo("Not used, because of required: false:")
    for place, reason in used.left_out.items():
        echo(f"  {place}: {printable(reason)}")


def _print_broken(broken: list[Broken]) -> None:
    if not broken:
        return
    echo("")
    echo("Broken, not loaded:")
    for one in broken:
        echo(f"  {one}")
