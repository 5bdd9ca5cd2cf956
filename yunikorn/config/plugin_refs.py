"""Plugins that a configuration names: reading them, and trying whether they can be made.

A plugin is made once and thrown away, so that an unknown name, an option that does not fit and a broken
plugin are found when the text is checked, with their place in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from yunikorn.config import document
from yunikorn.config.document import Scalar, show
from yunikorn.config.reading import Findings, Spot, Table, descend, plain_data
from yunikorn.config.schema import PluginRef
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.kinds import NODE_SORT, PLACEMENT, RESOLVER, Kind
from yunikorn.registry import Registry
from yunikorn.suggestions import suggest

ORIGINAL: Mapping[str, frozenset[str]] = {
    NODE_SORT.id: frozenset({"fair", "binpacking"}),
    PLACEMENT.id: frozenset({"provided", "user", "fixed", "tag"}),
}
"""The names that YuniKorn 1.9 knows, of the kinds where it refuses all others."""
ORIGINAL_OPTIONS: Mapping[str, frozenset[str]] = {
    NODE_SORT.id: frozenset({"resourceweights"}),
    PLACEMENT.id: frozenset({"value"}),
    RESOLVER.id: frozenset(),
}


@attrs.frozen
class _Verdict:
    """How trying a plugin went."""

    refusal: str = ""
    """Why it cannot be made at all."""
    faults: tuple[tuple[str, str], ...] = ()
    """What is wrong with its options: path below them, message."""


class PluginCheck:
    """Tries the plugins that a configuration names, each combination of name and options once."""

    def __init__(self, registry: Registry, findings: Findings) -> None:
        self.registry = registry
        self.findings = findings
        self._known: dict[tuple[str, str, bool, str], _Verdict] = {}

    def option_names(self, kind: Kind, name: str) -> list[str] | None:
        """The options of a plugin; None when there is no such plugin."""
        try:
            return [option.name for option in self.registry.find(kind, name).options]
        except UnknownPlugin:
            return None

    def verdict(
        self, kind: Kind, name: str, options: Mapping[str, Any], comma_lists: bool = False
    ) -> _Verdict:
        """Whether the plugin can be made with these options."""
        key = kind.id, name, comma_lists, repr(options)
        if key not in self._known:
            self._known[key] = self._try(kind, name, options, comma_lists)
        return self._known[key]

    def _try(self, kind: Kind, name: str, options: Mapping[str, Any], comma_lists: bool) -> _Verdict:
        try:
            self.registry.make(kind, name, options, comma_lists=comma_lists)
        except OptionError as error:
            return _Verdict(faults=error.failures)
        except (UnknownPlugin, PluginError) as error:
            return _Verdict(refusal=str(error))
        return _Verdict()

    def check(self, kind: Kind, ref: PluginRef, name_at: Spot, options_at: Spot) -> bool:
        """Report what is wrong with a plugin and its options; returns whether it can be made."""
        verdict = self.verdict(kind, ref.name, ref.options)
        if verdict.refusal:
            self.findings.problem(name_at, verdict.refusal)
        for below, message in verdict.faults:
            self.findings.problem(descend(options_at, below), message)
        return not verdict.refusal and not verdict.faults

    def known_options(
        self, kind: Kind, name: str, table: Table, core: Collection[str], skip: Collection[str] = ()
    ) -> dict[str, Any]:
        """The options in `table`: all keys but those of the `core`; unknown ones are reported and left out.

        `skip` are keys that every plugin of the kind may have, whether it looks at them or not.
        """
        names = self.option_names(kind, name)
        options = {}
        for key, node in table.node.entries.items():
            if key in core or key in skip:
                continue
            spot = table.key_spot(key)
            if names is not None and key not in names:
                known = [*core, *skip, *(option for option in names if option not in skip)]
                self.findings.problem(spot, f"unknown key{suggest(key, known)}; known: {', '.join(known)}")
                continue
            if kind.id in ORIGINAL_OPTIONS and key not in ORIGINAL_OPTIONS[kind.id]:
                self.findings.note(spot, "YuniKorn 1.9 does not know this key and refuses it")
            options[key] = plain_data(node)
        return options


def note_if_ours(kind: Kind, name: str, at: Spot, findings: Findings) -> None:
    """Say that YuniKorn 1.9 refuses a plugin that it does not have."""
    if kind.normal(name) not in ORIGINAL[kind.id]:
        findings.note(at, f"YuniKorn 1.9 has no {kind.title} called '{name}' and refuses it")


def read_plugin_list(table: Table, key: str, kind: Kind, plugins: PluginCheck) -> tuple[PluginRef, ...]:
    """A list of plugins, each a name or a mapping with `name` and options."""
    refs = []
    for spot in table.items(key) or ():
        ref = _read_ref(spot, kind, plugins)
        if ref:
            refs.append(ref)
    return tuple(refs)


def _read_ref(spot: Spot, kind: Kind, plugins: PluginCheck) -> PluginRef | None:
    findings = plugins.findings
    if isinstance(spot.node, Scalar):
        ref = PluginRef(spot.node.text)
        plugins.check(kind, ref, spot, spot)
        return ref
    if not isinstance(spot.node, document.Mapping):
        findings.problem(spot, f"expected a name, or a mapping with a name, got {show(spot.node)}")
        return None
    entry = Table(spot.path, spot.node, findings)
    name = entry.text("name")
    if not name:
        findings.problem(entry.spot("name"), f"required, but missing: which {kind.title} is it?")
        return None
    ref = PluginRef(name, plugins.known_options(kind, name, entry, ("name",)))
    plugins.check(kind, ref, entry.spot("name"), spot)
    return ref
