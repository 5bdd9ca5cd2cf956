"""`yunikorn plugins`: list the installed plugins, their options, and the broken plugins.

With `--faults FILE`: list plugin failures in a run of the service, read from its log.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from typing import Any, TextIO

import attrs
import click

from yunikorn import __version__
from yunikorn.cli.installed import load_registry
from yunikorn.cli.new_package import new
from yunikorn.cli.output import echo, results
from yunikorn.config.queues_yaml import WEIGHTED
from yunikorn.containment import entries_of, items_of, number_or_none, safe_repr, safe_text, text_or_none
from yunikorn.errors import UsageError, printable
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.framework.registry import KINDS, NODE_SORT, Broken, Kind, Offer, Option, Registry
from yunikorn.scheduling.node_policies import WeightedScores


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
@click.option("--kind", "kind_id", type=click.Choice([kind.id for kind in KINDS]), help="Only this kind.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--faults",
    "log",
    type=click.File(encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Show plugin failures from a log of `serve --log-format json`; - is standard input.",
)
@click.pass_context
def command(ctx: click.Context, kind_id: str | None, as_json: bool, log: TextIO | None) -> None:
    """List the installed plugins, their options, and broken plugins; or create a new plugin.

    On a terminal the list fits its width; piped, every plugin has one line. Exit status: 0, or 1 if a plugin
    is broken and was not loaded, or has faults.
    """
    if ctx.invoked_subcommand is not None:
        given = {"--json": as_json, "--kind": kind_id is not None, "--faults": log is not None}
        for option in (option for option, is_given in given.items() if is_given):
            raise click.UsageError(f"{option} applies to the list, not to '{ctx.invoked_subcommand}'", ctx)
        return
    if log is not None:
        if kind_id is not None:
            raise click.UsageError(
                "--kind applies to the list of plugins; a log does not contain the kind", ctx
            )
        failures = read_faults(log)
        echo(faults_as_json(failures) if as_json else faults_as_text(failures))
        ctx.exit(BROKEN if failures else 0)
    registry = load_registry()
    kind = next((kind for kind in KINDS if kind.id == kind_id), None)
    if as_json:
        echo(json.dumps(as_data(registry, kind), indent=2, ensure_ascii=False))
    else:
        _print_table(_listed(registry, kind))
        _print_broken(registry.broken)
    ctx.exit(BROKEN if registry.broken else 0)


command.add_command(new)


# -- JSON ---------------------------------------------------------------------------------------------


def as_data(registry: Registry, kind: Kind | None = None) -> dict[str, Any]:
    """Return all plugins (of one kind) and all broken ones as JSON data."""
    return {
        "plugins": [_offer_data(offer) for offer in _in_order(_listed(registry, kind))],
        "broken": [attrs.asdict(broken) for broken in registry.broken],
    }


def _offer_data(offer: Offer) -> dict[str, Any]:
    return {
        "kind": offer.kind.id,
        "name": offer.name,
        "plugin": offer.plugin,
        "distribution": offer.distribution,
        "version": offer.version,
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


def _listed(registry: Registry, kind: Kind | None) -> list[Offer]:
    """Return all offers (of one kind), and the policies of the core."""
    return [*registry.offers(kind), *(one for one in CORE if kind in (None, one.kind))]


def _in_order(offers: list[Offer]) -> list[Offer]:
    """Return the offers by kind; within a kind, in the order of registration."""
    return sorted(offers, key=lambda offer: KINDS.index(offer.kind))


def _source(offer: Offer) -> str:
    return f"{offer.distribution} {offer.version}".strip() or offer.plugin


def _width() -> int:
    if results().isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((80, 24)).columns
    return UNLIMITED


def _print_table(offers: list[Offer]) -> None:
    # Imported here because `--json` and `--help` do not need it.
    from rich.console import Console

    width = _width()
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    table = _wide(offers) if width >= ROOMY else _narrow(offers)
    with console.capture() as captured:
        console.print(table, crop=False, overflow="fold")
    for line in captured.get().splitlines():
        echo(line.rstrip())


def _wide(offers: list[Offer]) -> Any:
    table = _table("KIND", "NAME", "FROM", "OPTIONS", "DESCRIPTION")
    separator = "; " if _width() == UNLIMITED else "\n"
    for offer in _in_order(offers):
        options = separator.join(describe_option(option) for option in offer.options) or "-"
        table.add_row(offer.kind.id, offer.name, _source(offer), options, offer.summary or "-")
    return table


def _narrow(offers: list[Offer]) -> Any:
    table = _table("KIND", "NAME", "FROM", "DESCRIPTION AND OPTIONS")
    for offer in _in_order(offers):
        lines = [offer.summary or "-", *(f"- {describe_option(option)}" for option in offer.options)]
        table.add_row(offer.kind.id, offer.name, _source(offer), "\n".join(lines))
    return table


def _table(*columns: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("KIND", "NAME"))
    return table


def _print_broken(broken: list[Broken]) -> None:
    if not broken:
        return
    echo("")
    echo("Broken, not loaded:")
    for one in broken:
        echo(f"  {one}")
