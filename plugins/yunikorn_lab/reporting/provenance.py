"""Provenance of a result: everything that decided it, and nothing about the machine or the time of day.

Equal provenances mean equal results, byte for byte. A comparison therefore takes over finished runs whose
provenance is equal, and names what differs between two folders.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from yunikorn import __version__
from yunikorn.config.load import check_config
from yunikorn.framework.installed import installed_plugins, selected_plugins
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_files import HeldInput, InputFile
from yunikorn_lab.simulation.workload import ConfigEvent, Workload

WORKLOAD, NODES, CONFIG, PLUGIN = "workload", "nodes", "configuration loaded later", "plugin file"
"""Roles of input files."""
LINES = 6
"""Number of different lines of two configurations that a table shows."""


@attrs.frozen
class InputChecksum:
    """Checksum of an input file; the name has no folder, because the place of a file decides nothing."""

    role: str
    name: str
    sha256: str


@attrs.frozen
class Provenance:
    """Inputs and options of a run."""

    version: str
    plugins: list[str]
    """Distributions of installed plugins that took part, with their versions."""
    config: str
    """Name of the configuration's file."""
    config_text: str
    """Text of the configuration, after all settings."""
    settings: list[str]
    """Settings of `--set` that are part of the text."""
    options: dict[str, str]
    """All options that decide the result, by name."""
    seed: int | None
    inputs: list[InputChecksum]

    def rows(self) -> list[tuple[str, str]]:
        """Return labels and values for a table; the text of the configuration is not among them."""
        options = " ".join(f"{name} {value}" for name, value in self.options.items())
        return [
            ("yunikorn", self.version),
            ("plugins", ", ".join(self.plugins) or "none but the default ones"),
            ("configuration", f"{self.config}, SHA-256 {digest(self.config_text.encode())}"),
            *(("setting", setting) for setting in self.settings),
            *((one.role, f"{one.name}, SHA-256 {one.sha256}") for one in self.inputs),
            ("seed", "none" if self.seed is None else str(self.seed)),
            ("options", options or "none"),
        ]


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content in hex."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: InputFile) -> str:
    """Return the SHA-256 of an input in hex, or a remark if it cannot be read."""
    if isinstance(path, HeldInput):
        return digest(path.content)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unknown: {error.strerror or error}"


def workload_files(files: Iterable[tuple[str, InputFile]], workload: Workload) -> list[InputChecksum]:
    """Return the files of a workload, and the configurations that it loads later."""
    found = [InputChecksum(role, path.name, file_digest(path)) for role, path in files]
    reloads = {Path(event.file).name: event.text for event in workload.reloads}
    return [
        *found,
        *(InputChecksum(CONFIG, name, digest(text.encode())) for name, text in sorted(reloads.items())),
    ]


def find_provenance(
    config: Path,
    text: str,
    registry: Registry,
    *,
    inputs: Sequence[InputChecksum],
    options: Mapping[str, str],
    seed: int | None,
    settings: Sequence[str] = (),
    only: Collection[str] | None = None,
    reloads: Iterable[ConfigEvent] = (),
) -> Provenance:
    """Return the provenance of a run under a valid configuration, and under those of `reloads` later.

    `registry` may load the plugins of the configuration; `only` restricts the installed plugins, as for
    `Registry.load`.
    """
    found = check_config(text, registry).config
    disabled = frozenset(found.disabled if found else ())
    in_use = found.loaded if found else ()
    for event in reloads:
        code = event.code.with_loaded(in_use)
        later = event.source.check(registry.permitting(code)).config
        in_use += tuple(one for one in (later.loaded if later else ()) if one not in in_use)
    loaded = [InputChecksum(PLUGIN, Path(one.name).name, one.digest or _module(one.module)) for one in in_use]
    plugins = {
        f"{one.distribution or one.name} {one.version}".strip()
        for one in selected_plugins(installed_plugins(), only)
        if disabled.isdisjoint(one.names)
    }
    return Provenance(
        version=__version__,
        plugins=sorted(plugins),
        config=config.name,
        config_text=text,
        settings=list(settings),
        options=dict(options),
        seed=seed,
        inputs=[*inputs, *loaded],
    )


def _module(module: object) -> str:
    file = getattr(module, "__file__", None)
    return file_digest(Path(file)) if isinstance(file, str) else "unknown: the module has no file"


@attrs.frozen
class ProvenanceDifference:
    """A part of the provenance in which two results differ."""

    what: str
    one: str
    other: str

    @property
    def is_workload(self) -> bool:
        """True if the results are of different workloads, so that their figures cannot be compared."""
        return self.what in (WORKLOAD, NODES)


def differences(one: Provenance | None, other: Provenance | None) -> list[ProvenanceDifference]:
    """Return what differs between the inputs of two results, the workload first."""
    if one is None or other is None:
        return [ProvenanceDifference("provenance", _known(one), _known(other))] if one is not other else []
    found = []
    for role in dict.fromkeys([WORKLOAD, NODES, CONFIG, PLUGIN]):
        here, there = _files(one, role), _files(other, role)
        if {sha for _, sha in here} != {sha for _, sha in there}:
            found.append(ProvenanceDifference(role, _listed(here), _listed(there)))
    if one.config_text != other.config_text:
        found.append(ProvenanceDifference("configuration", *_changed_lines(one, other)))
    for name in dict.fromkeys([*one.options, *other.options]):
        here_value, there_value = one.options.get(name, ""), other.options.get(name, "")
        if here_value != there_value:
            found.append(ProvenanceDifference(name, here_value or "not given", there_value or "not given"))
    for name, here_value, there_value in (
        ("seed", str(one.seed), str(other.seed)),
        ("version of yunikorn", one.version, other.version),
        ("plugins", ", ".join(one.plugins) or "none", ", ".join(other.plugins) or "none"),
    ):
        if here_value != there_value:
            found.append(ProvenanceDifference(name, here_value, there_value))
    return found


def _known(provenance: Provenance | None) -> str:
    return "unknown" if provenance is None else "known"


def _files(provenance: Provenance, role: str) -> list[tuple[str, str]]:
    return [(one.name, one.sha256) for one in provenance.inputs if one.role == role]


def _listed(files: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({sha[:12]})" for name, sha in files) or "none"


def _changed_lines(one: Provenance, other: Provenance) -> tuple[str, str]:
    """Return the lines that only one of two configurations has, after their names."""
    lines = list(difflib.ndiff(one.config_text.splitlines(), other.config_text.splitlines()))
    return (
        f"{one.config}{_first([line[2:].strip() for line in lines if line.startswith('- ')])}",
        f"{other.config}{_first([line[2:].strip() for line in lines if line.startswith('+ ')])}",
    )


def _first(lines: list[str]) -> str:
    if not lines:
        return ""
    more = f" ... and {len(lines) - LINES} more lines" if len(lines) > LINES else ""
    return f": {' | '.join(lines[:LINES])}{more}"
