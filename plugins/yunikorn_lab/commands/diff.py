"""`yunikorn diff`: what differs between two configurations, in the language of queues.

The exit status is that of `diff`: 0 if nothing differs, 1 if something does, 2 when a configuration cannot be
used.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import printable
from yunikorn.framework.registry import Registry
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import ConfigInput
from yunikorn_commands.differences import differences
from yunikorn_commands.input_source import InputError
from yunikorn_commands.load_plugins import code_of_data, load_plugins_option
from yunikorn_commands.output import echo, remark
from yunikorn_commands.path_types import INPUT
from yunikorn_lab.commands.difference_words import in_words
from yunikorn_lab.commands.input_checks import InputChecks

DIFFERENT = 1
TEXT, JSON = "text", "json"
FIELDS = ("partition", "queue", "key", "change", "before", "after")
"""Attributes of a difference in the JSON list, beside the sentence."""


@click.command()
@click.argument("old", type=INPUT)
@click.argument("new", type=INPUT)
@click.option(
    "--format",
    "form",
    type=click.Choice((TEXT, JSON)),
    default=TEXT,
    show_default=True,
    help="Sentences, or a JSON list.",
)
@load_plugins_option
def command(old: Path, new: Path, form: str, load_plugins: tuple[Path | str, ...]) -> int:
    """Show what differs between two configurations; - reads standard input.

    Comments, order of keys and values that are the default make no difference. Both may be queues.yaml files
    or ConfigMaps. Exit status: 0 when nothing differs, 1 when something does, 2 when a configuration is
    invalid or cannot be read. Plugins that a configuration loads are not loaded here, without --load-plugins.
    """
    registry, checks = load_registry(), InputChecks()
    found: list[SchedulerConfig] = []
    for file in (old, new):
        with checks.part():
            found.append(_read(file, registry, load_plugins))
    checks.check()
    before, after = found
    lines = list(in_words(differences(before, after), before, after))
    if form == JSON:
        content = [
            {**{name: getattr(line.difference, name) for name in FIELDS}, "text": line.text} for line in lines
        ]
        echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            echo(printable(line.text))
    return DIFFERENT if lines else 0


def _read(file: Path, registry: Registry, named: tuple[Path | str, ...]) -> SchedulerConfig:
    given = ConfigInput.read(file)
    outcome = given.check(registry.permitting(code_of_data(file, named)))
    if outcome.config is None:
        raise InputError(given.name, outcome.problems)
    for problem in [one for one in outcome.warnings if one.path.startswith("plugins.load[")]:
        remark(f"{given.name}: {problem}", "warning")
    return outcome.config
