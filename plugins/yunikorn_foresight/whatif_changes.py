"""Changes of a what-if as users write them, read for a scheduler: all problems in one pass."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_commands.config_input import folder_of, read_config
from yunikorn_commands.config_source import LocatedText
from yunikorn_commands.input_files import hold, name_of
from yunikorn_commands.input_source import InputChecks
from yunikorn_commands.plugin_files import CodePermission, trusting
from yunikorn_lab.reporting.variants import VariantSetting, changed, check_configs, parse_settings
from yunikorn_lab.simulation.adjustments import with_copies
from yunikorn_lab.simulation.continuation import NO_CHANGES, FirstChanges, with_changes
from yunikorn_lab.simulation.reader import read_node_file
from yunikorn_lab.simulation.workload import ConfigEvent, Workload, WorkloadApplication, WorkloadNode

if TYPE_CHECKING:
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.scheduler import Scheduler

_COPIES = re.compile(r"([0-9]{1,7}):(.+)")
LABEL = "the configuration in use, changed"


@attrs.frozen(kw_only=True)
class WrittenChanges:
    """Changes as they are written."""

    config: Path | None = None
    """File with another configuration."""
    settings: tuple[str, ...] = ()
    """`PATH=VALUE`, as for `compare`."""
    policies: tuple[str, ...] = ()
    """`QUEUE=NAME`: policies that order the applications of queues."""
    add_nodes: tuple[str, ...] = ()
    """`N:NODE`, copies of a node, or files with nodes."""
    drain: tuple[str, ...] = ()
    """Names of nodes."""
    submit: Workload | None = None
    """Workload whose applications are submitted; its nodes are not used."""

    def texts(self) -> tuple[str, ...]:
        """Return the changes as texts, in the form of options."""
        named = (
            ("--config", () if self.config is None else (name_of(self.config),)),
            ("--set", self.settings),
            ("--policy", self.policies),
            ("--add-nodes", self.add_nodes),
            ("--drain", self.drain),
            ("--submit", () if self.submit is None else (self.submit.name,)),
        )
        return tuple(f"{option} {value}" for option, values in named for value in values)


@attrs.frozen
class ReadChanges:
    """Changes of a scheduler, checked."""

    first: FirstChanges
    arrivals: Workload | None
    """Applications that are submitted later."""


def read_changes(scheduler: Scheduler, written: WrittenChanges, registry: Registry) -> ReadChanges:
    """Return the changes; raises `UsageError` and `InputError` with all problems.

    They concern the cluster of the first resource manager.
    """
    checks = InputChecks()
    known = {node.name: node for node in with_changes(scheduler, NO_CHANGES, _workload(())).nodes}
    config: ConfigEvent | None = None
    with checks.part():
        config = _config(scheduler, written, registry)
    nodes: list[WorkloadNode] = []
    for text in written.add_nodes:
        with checks.part():
            nodes += _new_nodes(text, known, [one.name for one in nodes])
    now: list[WorkloadApplication] = []
    later: list[WorkloadApplication] = []
    for app in written.submit.applications if written.submit is not None else ():
        (later if app.submit else now).append(app)
    first = FirstChanges(config=config, drain=written.drain, add=tuple(nodes), submit=tuple(now))
    arrivals = _workload(later)
    with checks.part():
        with_changes(scheduler, first, arrivals)
    checks.check()
    return ReadChanges(first, arrivals if later else None)


def _workload(applications: tuple[WorkloadApplication, ...] | list[WorkloadApplication]) -> Workload:
    return Workload("what-if", "snapshot", [], list(applications))


def _config(scheduler: Scheduler, written: WrittenChanges, registry: Registry) -> ConfigEvent | None:
    """Return the changed configuration; None for the one in use."""
    checks = InputChecks()
    file, settings = written.config, list[VariantSetting]()
    text = scheduler.configuration(next(scheduler.sessions()).rm_id).text
    if file is not None:
        registry = trusting(registry, folder_of(file))
        with checks.part():
            text = read_config(file, registry)
            check_configs([(file, text)], registry)
    with checks.part():
        settings += _single(parse_settings(written.settings))
    for policy in written.policies:
        with checks.part():
            settings.append(_policy(policy))
    checks.check()
    problems: list[str] = []
    text = changed(text, tuple(settings), registry, problems)
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    if file is None:
        return ConfigEvent(0, LABEL, LocatedText(text)) if settings else None
    return ConfigEvent(0, name_of(file), LocatedText(text), CodePermission.of_operator(folder_of(file)))


def _single(found: list[list[VariantSetting]]) -> list[VariantSetting]:
    several = [one[0].path for one in found if len(one) > 1]
    if several:
        raise UsageError(
            "\n".join(f"--set {path}: give one value; `yunikorn sweep` tries several" for path in several)
        )
    return [one[0] for one in found]


def _policy(text: str) -> VariantSetting:
    queue, equals, name = (part.strip() for part in text.partition("="))
    if not equals or not queue or not name:
        raise UsageError(f"--policy {text}: expected QUEUE=NAME, such as root.batch=fifo")
    return VariantSetting(f"{queue}.properties.application.sort.policy", name)


def _new_nodes(text: str, known: dict[str, WorkloadNode], taken: list[str]) -> list[WorkloadNode]:
    copies = _COPIES.fullmatch(text)
    if copies is None:
        file = Path(text)
        if not file.is_file():
            raise UsageError(f"--add-nodes {text}: expected N:NODE, such as 10:node-1, or a file with nodes")
        return read_node_file(hold(file)).nodes
    node = known.get(copies[2])
    if node is None:
        raise UsageError(f"--add-nodes {text}: there is no node {copies[2]!r}{suggest(copies[2], known)}")
    names = [*known, *taken]
    names.remove(node.name)
    return with_copies([node], Fraction(int(copies[1]) + 1), names)[1:]
