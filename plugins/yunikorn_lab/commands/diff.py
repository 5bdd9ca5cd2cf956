"""`yunikorn diff`: what differs between two configurations, in the language of queues.

The exit status is that of `diff`: 0 if nothing differs, 1 if something does, 2 when a configuration cannot be
used.

Differences between two configurations in the language of queues, one line for each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.config.filters import FilterConfig
from yunikorn.config.queues_yaml import LimitConfig, PluginRef, QueueConfig, RuleConfig, SchedulerConfig
from yunikorn.errors import printable
from yunikorn.framework.plugin_code import LoadedPlugin
from yunikorn.framework.registry import Registry
from yunikorn.quantities import spell_quantity
from yunikorn.resources import Resource
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import ConfigInput
from yunikorn_commands.differences import ADDED, ConfigDifference, differences
from yunikorn_commands.input_source import InputChecks, InputError
from yunikorn_commands.load_plugins import code_of_data, load_plugins_option
from yunikorn_commands.output import echo, remark
from yunikorn_commands.path_types import INPUT

ARROW = "\N{RIGHTWARDS ARROW}"
_NAMES = {
    "maxapplications": "max applications",
    "submitacl": "submit ACL",
    "adminacl": "admin ACL",
    "nodesortpolicy": "node sort policy",
    "usergroupresolver": "user group resolver",
}
"""Keys in words; other keys are printed as in queues.yaml."""


@attrs.frozen
class DifferenceLine:
    """A difference in words."""

    difference: ConfigDifference
    text: str


def in_words(
    found: Iterable[ConfigDifference], old: SchedulerConfig, new: SchedulerConfig
) -> Iterator[DifferenceLine]:
    """Yield the lines of differences; the name of the partition is left out if both have only one."""
    names = {partition.name for config in (old, new) for partition in config.partitions}
    queues = [dict(_queues(config)) for config in (old, new)]
    for one in found:
        prefix = f"partition {one.partition}: " if one.partition and one.key and len(names) > 1 else ""
        if not one.key:
            known = queues[one.change == ADDED].get((one.partition, one.queue))
            prefix = f"partition {one.partition}: " if one.queue and len(names) > 1 else ""
            yield DifferenceLine(one, prefix + _whole(one, known))
            continue
        for text in _WORDS.get(one.key.partition(".")[0], _plain)(one):
            yield DifferenceLine(one, prefix + text)


def _queues(config: SchedulerConfig) -> Iterator[tuple[tuple[str, str], QueueConfig]]:
    for partition in config.partitions:
        for path, queue in partition.root.walk():
            yield (partition.name, path), queue


def _whole(one: ConfigDifference, queue: QueueConfig | None) -> str:
    if not one.queue:
        return f"partition {one.partition} {one.change}"
    about = []
    if queue is not None and one.change == ADDED:
        about = [
            f"guaranteed {_amount(queue.guaranteed)}" if queue.guaranteed else "",
            f"max {_amount(queue.max)}" if queue.max else "",
            f"max applications {queue.max_applications}" if queue.max_applications else "",
        ]
    said = ", ".join(filter(None, about))
    return f"queue {one.queue} {one.change}" + (f" ({said})" if said else "")


# -- keys -----------------------------------------------------------------------------------------------


def _plain(one: ConfigDifference) -> Iterator[str]:
    name = _NAMES.get(one.key, one.key)
    yield f"{_subject(one)}{_change(name, one.before, one.after)}" + (f" ({one.note})" if one.note else "")


def _resources(one: ConfigDifference) -> Iterator[str]:
    _, kind, name = one.key.split(".", 2)
    yield f"{_subject(one)}{_change(f'{kind} {name}', one.before, one.after)}"


def _subject(one: ConfigDifference) -> str:
    return f"{one.queue}: " if one.queue else ""


def _change(name: str, before: Any, after: Any) -> str:
    if before is None:
        return f"{name} {_value(after)} added"
    if after is None:
        return f"{name} {_value(before)} removed"
    return f"{name} {_value(before)} {ARROW} {_value(after)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value) if str(value) else "''"


def _amount(amount: Resource) -> str:
    return ", ".join(f"{name} {spell_quantity(name, value)}" for name, value in amount.items())


# -- limits ---------------------------------------------------------------------------------------------


def _limits(one: ConfigDifference) -> Iterator[str]:
    """Yield a line for each user and group whose limit differs."""
    before, after = (dict(_limited(value or ())) for value in one.values)
    where = f"at {one.queue}"
    changed = False
    for key in [*before, *(key for key in after if key not in before)]:
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        changed = True
        if was is None:
            yield f"limit for {key} {where} added: {_limit(now)}"
        elif now is None:
            yield f"limit for {key} {where} removed: {_limit(was)}"
        else:
            yield f"limit for {key} {where}: {_limit(was)} {ARROW} {_limit(now)}"
    if not changed:
        yield f"limits {where}: descriptions or order changed"


def _limited(limits: Iterable[LimitConfig]) -> Iterator[tuple[str, tuple[Resource | None, int]]]:
    for limit in limits:
        value = (limit.max_resources or None, limit.max_applications)
        for kind, names in (("user", limit.users), ("group", limit.groups)):
            for name in names:
                yield (f"all other {kind}s" if name == "*" else f"{kind} {name}"), value


def _running(count: int) -> str:
    return "" if not count else "1 application" if count == 1 else f"{count} applications"


def _limit(value: tuple[Resource | None, int] | None) -> str:
    amount, applications = value or (None, 0)
    parts = [_amount(amount) if amount else "", _running(applications)]
    return ", ".join(filter(None, parts)) or "no limit"


# -- placement rules ------------------------------------------------------------------------------------


def _rules(one: ConfigDifference) -> Iterator[str]:
    before, after = (list(value or ()) for value in one.values)
    old, new = ([_rule(rule) for rule in rules] for rules in (before, after))
    found = False
    for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        found = True
        for index in range(start, end):
            yield f"placement rule {index + 1} removed: {old[index]}"
        for index in range(first, last):
            yield f"placement rule {index + 1} added: {new[index]}"
    if not found:
        yield "placement rules: options changed"


def _rule(rule: RuleConfig) -> str:
    about = [
        "creates queues" if rule.create else "",
        _filter(rule.filter) if rule.filter else "",
        f"below {_rule(rule.parent)}" if rule.parent else "",
        "" if rule.required else "not required",
    ]
    said = ", ".join(filter(None, about))
    return f"{rule.name} {rule.value}".rstrip() + (f" ({said})" if said else "")


def _filter(rule: FilterConfig) -> str:
    named = [*(f"user {name}" for name in rule.users), *(f"group {name}" for name in rule.groups)]
    return f"{'only' if rule.allow else 'all but'} {', '.join(named) or 'all users'}"


# -- lists of plugins -----------------------------------------------------------------------------------

_PLUGINS = {
    "predicates": "predicate",
    "events.sinks": "event sink",
    "plugins.load": "plugin file or module",
    "plugins.disable": "disabled plugin",
    "plugins.override": "override",
}
"""Keys with lists of plugins, and one entry in words."""


def _plugins(one: ConfigDifference) -> Iterator[str]:
    """Yield a line for each plugin that only one of the lists has, or whose options or content differ."""
    title = _PLUGINS.get(one.key)
    if title is None:
        yield from _plain(one)
        return
    before, after = ({_plugin(entry): entry for entry in value or ()} for value in one.values)
    yield from (f"{title} {name} removed" for name in before if name not in after)
    yield from (f"{title} {name} added" for name in after if name not in before)
    changed = [name for name, entry in before.items() if name in after and after[name] != entry]
    for name in changed:
        yield f"{title} {name}: {_plugin_change(before[name], after[name])}"
    if before.keys() == after.keys() and not changed:
        yield f"{title}s: the order has changed"


def _plugin(entry: PluginRef | LoadedPlugin | str) -> str:
    return entry if isinstance(entry, str) else entry.name


def _plugin_change(old: Any, new: Any) -> str:
    """Return what differs between two entries of one name, without the values of options."""
    if isinstance(old, LoadedPlugin):
        return "its content has changed"
    names = sorted({*old.options, *new.options})
    differing = [name for name in names if old.options.get(name) != new.options.get(name)]
    if differing:
        return f"options changed ({', '.join(differing)})"
    return "required" if new.required else "not required"


_WORDS: dict[str, Callable[[ConfigDifference], Iterator[str]]] = {
    "resources": _resources,
    "limits": _limits,
    "placementrules": _rules,
    "predicates": _plugins,
    "events": _plugins,
    "plugins": _plugins,
}


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
