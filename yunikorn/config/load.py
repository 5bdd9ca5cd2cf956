"""Conversion of the text of a queues.yaml to a checked configuration, or to all its problems."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence

import attrs

from yunikorn.config.document import Mapping, YamlNode, compose, decode, second_document, show
from yunikorn.config.keys import Draft
from yunikorn.config.partition_configs import PartitionDraft, check_hierarchy, read_partition
from yunikorn.config.plugin_refs import PluginCheck, read_door, read_plugin_list
from yunikorn.config.queues_yaml import TOP, PluginRef, SchedulerConfig
from yunikorn.config.yaml_reading import Findings, Spot, YamlTable
from yunikorn.errors import ConfigError, Problem, UnknownPlugin
from yunikorn.framework.installed import VARIABLE
from yunikorn.framework.kinds import EVENT_SINK
from yunikorn.framework.plugin_code import LoadedPlugin, NotLoaded
from yunikorn.framework.registry import Registry
from yunikorn.text import listed, suggest

DEFAULT_TEXT = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: '*'
"""
"""Configuration of a resource manager that registers without any."""

ConfigCheck = Callable[[Sequence[PartitionDraft], Findings], None]
"""Check that adds warnings and hints about the partitions of a configuration without problems."""

_CHECKSUM = re.compile("checksum: .{0,64}")


@attrs.frozen
class Outcome:
    """Result of checking the text of a configuration."""

    config: SchedulerConfig | None
    """Configuration, or None if there are problems."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """Findings that are valid but probably mistakes."""
    notes: tuple[Problem, ...] = ()
    """Findings that are valid here, but that YuniKorn 1.9 refuses or treats in another way."""
    hints: tuple[Problem, ...] = ()
    """Findings that are normal, but have no effect in the cluster that the text was compared with."""

    @property
    def valid(self) -> bool:
        """True if the configuration is usable."""
        return self.config is not None

    def strictly(self) -> Outcome:
        """Return the outcome with all notes turned into problems."""
        if not self.notes:
            return self
        return Outcome(None, _in_order([*self.problems, *self.notes]), self.warnings, (), self.hints)


def check_config(
    text: str | bytes,
    registry: Registry,
    checks: Iterable[ConfigCheck] = (),
    pace: Callable[[], None] | None = None,
) -> Outcome:
    """Read a configuration. Invalid input never raises; all problems are in the outcome.

    `checks` add warnings and hints to a configuration without problems. `pace` is called all the time
    during the work: it may pause the work, or end it by an error.
    """
    findings = Findings(pace)
    try:
        whole = decode(text) if isinstance(text, bytes) else text
        node, findings.problems = compose(whole, pace)
        config = None
        _warn_of_documents(whole, node, findings)
        if node is None or show(node) == "nothing":
            config = SchedulerConfig(checksum=checksum_of(whole), text=whole)
        elif not isinstance(node, Mapping):
            text = f"expected a mapping with the key 'partitions', got {show(node)}"
            findings.problem(Spot("", node), text)
        else:
            config = _read(YamlTable("", node, findings), whole, registry, checks)
    except ConfigError as error:
        return Outcome(None, error.problems)
    return Outcome(
        None if findings.problems else config,
        _in_order(findings.problems),
        _in_order(findings.warnings),
        _in_order(findings.notes),
        _in_order(findings.hints),
    )


def _warn_of_documents(text: str, node: YamlNode | None, findings: Findings) -> None:
    """Warn if the first document is empty, or not the only one."""
    if node is None or show(node) == "nothing":
        what = "there is no configuration here: the text is empty or has only comments"
        findings.warning(Spot("", node or YamlNode(1, 1)), what)
    other = second_document(text, findings.pace)
    if other is not None:
        what = "this document is ignored, only the first one is read: give each configuration its own file"
        findings.warning(Spot("", other), what)


def load_config(text: str | bytes, registry: Registry) -> SchedulerConfig:
    """Read a configuration. Raises `ConfigError` with all its problems."""
    outcome = check_config(text, registry)
    if outcome.config is None:
        raise ConfigError(outcome.problems)
    return outcome.config


def checksum_of(text: str) -> str:
    """Return the SHA-256 of the text without its own `checksum:` entry, in upper-case hex."""
    own = _CHECKSUM.search(text)
    return hashlib.sha256((text.replace(own[0], "") if own else text).encode()).hexdigest().upper()


class SchedulerDraft(Draft[SchedulerConfig]):
    """Whole configuration as read."""

    section = TOP
    partitions: list[PartitionDraft]
    sinks: tuple[PluginRef, ...]
    history: PluginRef | None
    disabled: list[tuple[str, Spot]]
    overriding: list[tuple[str, Spot]]
    loaded: list[tuple[str, Spot]]
    same_hierarchy: bool


def _read(
    table: YamlTable, text: str, registry: Registry, checks: Iterable[ConfigCheck]
) -> SchedulerConfig | None:
    findings = table.findings
    draft = SchedulerDraft(table)
    named, loaded = _load_plugins(draft, registry)
    skipped = len(loaded) < len(named)
    registry = registry.configured((), (), loaded)
    _check_disabled(draft, registry, findings.warning if skipped else findings.problem)
    _check_overriding(draft, registry, findings.warning if skipped else findings.problem)
    disabled, overriding = ([name for name, _ in each] for each in (draft.disabled, draft.overriding))
    plugins = PluginCheck(registry.configured(disabled, overriding), findings, knows_all=not skipped)
    draft.partitions = [read_partition(partition, plugins) for partition in table.tables("partitions")]
    _check_names(draft.partitions, findings)
    check_hierarchy([partition.root for partition in draft.partitions], draft.same_hierarchy, findings)
    events = table.table("events", TOP.names_inside("events"))
    draft.sinks = read_plugin_list(events, "sinks", EVENT_SINK, plugins) if events else ()
    draft.history = read_door(table, "history", plugins)
    if findings.problems:
        return None
    for check in checks:
        check(draft.partitions, findings)
    return attrs.evolve(draft.build(), loaded=named, checksum=checksum_of(text), text=text)


Loaded = tuple[LoadedPlugin, ...]


def _load_plugins(draft: SchedulerDraft, registry: Registry) -> tuple[Loaded, Loaded]:
    """Load the plugins that the configuration names, and report those that cannot be loaded.

    Returns all, also those that were skipped, and those that were loaded.
    """
    named: list[LoadedPlugin] = []
    found: list[LoadedPlugin] = []
    findings = draft.table.findings
    for name, spot in draft.loaded:
        try:
            one = registry.code.load(name, registry.stopwatch)
            registry.configured((), (), [*found, one])
        except NotLoaded as error:
            if registry.code.may_skip:
                named.append(LoadedPlugin(name, "", None))
                findings.warning(spot, f"{error}; what it offers was not checked")
            else:
                findings.problem(spot, str(error))
        except UnknownPlugin as error:
            findings.problem(spot, str(error))
        else:
            named.append(one)
            found.append(one)
    return tuple(named), tuple(found)


Report = Callable[[Spot, str], None]


def _check_overriding(draft: SchedulerDraft, registry: Registry, report: Report) -> None:
    """Report entries of `plugins.override` that mean nothing, and leave them out.

    An entry about a plugin that this process leaves out is none of them: the configuration is the same as for
    processes with all plugins.
    """
    fine = []
    for name, spot in draft.overriding:
        try:
            registry.find_all(name)
        except UnknownPlugin as error:
            if not registry.installed.may_offer_left_out(name):
                report(spot, str(error))
        else:
            fine.append((name, spot))
    draft.overriding = fine


def _check_disabled(draft: SchedulerDraft, registry: Registry, report: Report) -> None:
    """Report disabled plugins that do not exist, and leave them out."""
    # Plugins that are disabled by their own name are not imported, not even to learn the other names.
    off = [name for name, _ in draft.disabled if registry.installed.means_unimported(name)]
    known = [*off, *(registry.without(off).names_to_disable() if len(off) < len(draft.disabled) else ())]
    left_out = registry.installed.left_out
    for name, spot in draft.disabled:
        if name not in known:
            text = f"no plugin is called '{name}'{suggest(name, known)}; `yunikorn plugins` lists all"
            if left_out:
                text += (
                    f"; left out by {VARIABLE}: {listed(left_out)}; NAME@DISTRIBUTION means a policy of such"
                    " a plugin"
                )
            report(spot, text)
    draft.disabled = [(name, spot) for name, spot in draft.disabled if name in known]


def _check_names(partitions: list[PartitionDraft], findings: Findings) -> None:
    seen: set[str] = set()
    for partition in partitions:
        if partition.name.lower() in seen:
            text = f"partition '{partition.name}' is defined twice (case does not matter)"
            findings.problem(partition.table.spot("name"), text)
        seen.add(partition.name.lower())


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    # Aliases can repeat a problem at the same position under the same path.
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda problem: (problem.line, problem.column)))
