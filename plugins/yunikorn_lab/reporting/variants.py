"""Variants of a comparison: configurations with every combination of settings by path.

Paths name queues, as in `root.research.maxapplications=5,10`, or have the form that `yunikorn validate`
prints: `partitions[0].queues[0].maxapplications`. Missing mappings of a path are created, so that limits can
be added where there were none. Invalid results are reported by the check of the configuration.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from yunikorn.config.document import Listing, Mapping, Scalar, YamlNode, compose
from yunikorn.config.load import check_config
from yunikorn.config.properties import KNOWN, POLICIES
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.text import suggest
from yunikorn_commands.input_files import name_of
from yunikorn_commands.input_source import InputChecks, InputError
from yunikorn_commands.plugin_files import trusting
from yunikorn_lab.config_effects import check_effects
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.queue_paths import is_queue_path, numbered_path

FREE = ("properties", "guaranteed", "max", "maxresources", "resourceweights", "priorityclasses")
"""Mappings with arbitrary keys: the rest of a path below them is one key, including dots."""

_STRING = "tag:yaml.org,2002:str"
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_NAME = re.compile(r"[^.\[\]]+")
_CLOSING = {"{": "}", "[": "]"}


@attrs.frozen
class VariantSetting:
    """A value for a path, as given on the command line."""

    path: str
    value: str
    written: str = attrs.field(default="", eq=False)
    """Path as written, if it names queues; `path` then has their numbers."""

    @property
    def label(self) -> str:
        """Path as written."""
        return self.written or self.path

    def __str__(self) -> str:
        return f"{self.label}={self.value}"

    def numbered(self, text: str) -> VariantSetting:
        """Return the setting with the numbers of queues in a configuration; raises `UsageError`."""
        if not is_queue_path(self.path):
            return self
        return attrs.evolve(self, path=numbered_path(text, self.path), written=self.path)


def parse_settings(texts: Sequence[str]) -> list[list[VariantSetting]]:
    """Parse each `PATH=VALUE[,VALUE...]` to a list of settings; raises `UsageError` that lists all errors."""
    found: list[list[VariantSetting]] = []
    problems: list[str] = []
    for text in texts:
        path, equals, values = text.partition("=")
        if not equals or not path.strip():
            problems.append(f"--set {text}: expected PATH=VALUE, such as root.a.maxapplications=5")
            continue
        settings = [VariantSetting(path.strip(), value) for value in _split(values)]
        if len({setting.value for setting in settings}) < len(settings):
            problems.append(f"--set {text}: the same value is given twice")
        if any(setting.path == other[0].path for other in found for setting in settings[:1]):
            problems.append(f"--set {text}: {path.strip()} is set twice; give all its values in one --set")
        found.append(settings)
    if problems:
        raise UsageError("\n".join(problems))
    return found


def _split(text: str) -> list[str]:
    """Split a text at commas outside of brackets and quotes."""
    parts, start, open_, quote = [], 0, [], ""
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            open_.append(_CLOSING[char])
        elif open_ and char == open_[-1]:
            open_.pop()
        elif char == "," and not open_:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def change(text: str, settings: Iterable[VariantSetting]) -> str:
    """Apply the settings to the configuration `text`; raises `UsageError` that lists all invalid paths."""
    root, _ = compose(text)
    if root is None:
        raise UsageError("--set cannot change an empty configuration")
    document = _to_yaml(root)
    checks = InputChecks()
    written: dict[str, VariantSetting] = {}
    for setting in settings:
        with checks.part():
            numbered = setting.numbered(text)
            other = written.setdefault(numbered.path, numbered)
            if other is not numbered:
                raise UsageError(f"--set {numbered.label}: is also set as {other.label}")
            _set(document, numbered)
    checks.check()
    # Line breaks are disabled, because folding a scalar could change its value.
    return str(yaml.serialize(document, Dumper=yaml.SafeDumper, width=1_000_000, allow_unicode=True))


def check_change(text: str, settings: Sequence[VariantSetting], registry: Registry) -> list[str]:
    """Return the errors of a configuration after these settings, as lines; empty for a valid configuration.

    Warnings about a changed value count as errors, because the value would be ignored. An error is attributed
    to the setting of its path, or to all settings together if none matches.
    """
    outcome = check_config(text, registry, [check_effects])
    found = [*outcome.problems]
    paths = tuple(setting.path for setting in settings)
    found += [one for one in outcome.warnings if one.path and one.path.startswith(paths)]
    lines = []
    for one in found:
        blamed = [setting for setting in settings if one.path.startswith(setting.path)] or settings
        # Line numbers are left out, because they refer to a generated text.
        said = f"{one.path}: {one.message}" if one.path else one.message
        lines.append(f"--set {', '.join(map(str, blamed))}: {said}")
    return list(dict.fromkeys(lines))


# -- the tree ---------------------------------------------------------------------------------------------


def _to_yaml(node: YamlNode) -> yaml.Node:
    if isinstance(node, Mapping):
        pairs = [(_text(key, plain=False), _to_yaml(value)) for key, value in node.entries.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False)
    if isinstance(node, Listing):
        items = [_to_yaml(item) for item in node.items]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=False)
    if isinstance(node, Scalar):
        return _text("null" if node.is_null else node.text, plain=node.plain)
    raise TypeError(f"no such node: {node!r}")


def _text(text: str, *, plain: bool) -> yaml.ScalarNode:
    if not plain:
        return yaml.ScalarNode(_STRING, text, style='"')
    resolver: Any = yaml.resolver.Resolver()
    return yaml.ScalarNode(resolver.resolve(yaml.ScalarNode, text, (True, False)), text)


def _value(setting: VariantSetting) -> yaml.Node:
    if setting.value[:1] not in ("{", "[", '"', "'"):
        return _text(setting.value or "null", plain=True)
    try:
        node, problems = compose(setting.value)
        if problems or node is None:
            raise ConfigError(problems)
    except ConfigError as error:
        reason = error.problems[0].message if error.problems else "it is empty"
        raise UsageError(f"--set {setting}: the value cannot be read: {reason}") from error
    return _to_yaml(node)


def _set(document: yaml.Node, setting: VariantSetting) -> None:
    node, rest, name = document, setting.path, ""
    while True:
        if isinstance(node, yaml.SequenceNode):
            position, rest = _position(node, rest, setting)
            if not rest:
                node.value[position] = _value(setting)
                return
            node, rest = node.value[position], rest.removeprefix(".")
        elif isinstance(node, yaml.MappingNode):
            key, rest = _key(node, rest, name, setting)
            index = next((at for at, (one, _) in enumerate(node.value) if one.value == key), None)
            if not rest:
                _put(node, key, index, _value(setting))
                return
            if index is None or _is_null(node.value[index][1]):
                node = _make(node, key, rest, index, setting)
            else:
                node = node.value[index][1]
            name, rest = key, rest.removeprefix(".")
        else:
            what = "empty" if _is_null(node) else f"'{node.value}'"
            raise UsageError(
                f"--set {setting.label}: nothing can be set below {name}, because its value is {what}"
            )


def _position(node: yaml.SequenceNode, rest: str, setting: VariantSetting) -> tuple[int, str]:
    match = _INDEX.match(rest)
    count = len(node.value)
    if match is None or int(match[1]) >= count:
        there = f"it has {count}, counted from 0" if match else f"it is a list of {count}, write [0]"
        at = setting.path[: len(setting.path) - len(rest)].rstrip(".")
        entry = match[0] if match else rest
        raise UsageError(f"--set {setting.label}: there is no entry '{entry}' in {at}: {there}")
    return int(match[1]), rest[match.end() :]


def _key(node: yaml.MappingNode, rest: str, name: str, setting: VariantSetting) -> tuple[str, str]:
    """Split `rest` into its first key and the remainder; existing keys may contain dots."""
    for key in sorted((one.value for one, _ in node.value), key=len, reverse=True):
        if rest.startswith(key) and rest[len(key) : len(key) + 1] in ("", ".", "["):
            return key, rest[len(key) :]
    if name in FREE and rest:
        _check_property(name, rest, setting)
        return rest, ""
    match = _NAME.match(rest)
    if match is None:
        raise UsageError(f"--set {setting.label}: expected a name, got '{rest}'")
    return match[0], rest[match.end() :]


def _check_property(name: str, key: str, setting: VariantSetting) -> None:
    if name != "properties" or key in KNOWN or key.startswith(tuple(f"{one}." for one in POLICIES)):
        return
    raise UsageError(
        f"--set {setting.label}: unknown property '{key}'{suggest(key, KNOWN)}; known: {', '.join(KNOWN)}"
    )


def _make(
    node: yaml.MappingNode, key: str, rest: str, index: int | None, setting: VariantSetting
) -> yaml.MappingNode:
    """Create a mapping below `key`; the rest of the path must start with a name."""
    if rest.startswith("["):
        keys = [one.value for one, _ in node.value]
        at = setting.path[: len(setting.path) - len(rest) - len(key)].rstrip(".") or "the configuration"
        what = f"there is no list '{key}' in {at}{suggest(key, keys)}"
        raise UsageError(f"--set {setting.label}: {what}; known: {', '.join(keys)}")
    made = yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
    _put(node, key, index, made)
    return made


def _put(node: yaml.MappingNode, key: str, index: int | None, value: yaml.Node) -> None:
    """Set the value of a key; without an `index` the key is appended."""
    pair = (_text(key, plain=False), value)
    if index is None:
        node.value.append(pair)
    else:
        node.value[index] = pair


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in ("null", "")


BASELINE = "baseline"
"""Name of the unchanged configuration."""
MOST = 64
"""Maximum number of variants, beyond which a table is unreadable."""


@attrs.frozen
class VariantPlan:
    """A variant to simulate."""

    name: str
    config: str
    """Text of queues.yaml."""
    home: Path = Path()
    """Folder of the file, from which the configuration may load plugins."""
    file: str = ""
    settings: tuple[VariantSetting, ...] = ()
    """Settings that have changed its text."""

    def folder(self, number: int) -> str:
        """Return the folder name of the variant with this number, counted from 1."""
        return f"{number}-{re.sub(r'[^A-Za-z0-9._=-]+', '-', self.name)[:60].strip('-.')}"


def check_configs(configs: Sequence[tuple[Path, str]], registry: Registry) -> None:
    """Raise `InputError` that lists all problems of the configurations, given as paths and texts."""
    outcomes = [(path, check_config(text, trusting(registry, path.parent))) for path, text in configs]
    invalid = [InputError(name_of(path), outcome.problems) for path, outcome in outcomes if not outcome.valid]
    if invalid:
        raise InputError.joined(invalid)


def make_plans(
    configs: Sequence[tuple[Path, str]], settings: Sequence[list[VariantSetting]], registry: Registry
) -> list[VariantPlan]:
    """Make all variants; if there would be only one, the unchanged configuration is added as the first.

    `configs` are paths and texts. Raises `InputError` for an invalid original configuration, and `UsageError`
    that lists all settings with invalid paths or invalid results.
    """
    check_configs(configs, registry)
    names = _names([path for path, _ in configs])
    combinations: list[tuple[VariantSetting, ...]] = list(itertools.product(*settings))
    if len(configs) * len(combinations) > MOST:
        raise UsageError(f"{len(configs) * len(combinations)} variants are too many; the maximum is {MOST}")
    if settings and len(configs) * len(combinations) == 1:
        combinations.insert(0, ())
    problems: list[str] = []
    found: list[VariantPlan] = []
    for name, (path, text) in zip(names, configs, strict=True):
        here = trusting(registry, path.parent)
        for combination in combinations:
            label = _label(name, combination, settings, alone=len(configs) == 1)
            config = changed(text, combination, here, problems)
            found.append(VariantPlan(label, config, path.parent, path.name, combination))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    if len(found) < 2:
        what_to_do = "give two configurations (--config A --config B) or a setting (--set PATH=VALUE)"
        raise UsageError(f"there is nothing to compare: {what_to_do}")
    return found


def changed(
    text: str, combination: tuple[VariantSetting, ...], registry: Registry, problems: list[str]
) -> str:
    """Return a valid configuration after some settings; what is wrong with them is added to `problems`."""
    if not combination:
        return text
    try:
        config = change(text, combination)
    except UsageError as error:
        problems += str(error).splitlines()
        combination = tuple(setting for setting in combination if _leads_somewhere(text, setting))
        combination = tuple({setting.numbered(text).path: setting for setting in combination}.values())
        config = change(text, combination)
    numbered = [setting.numbered(text) for setting in combination]
    problems += check_change(config, numbered, registry)
    return config


def _leads_somewhere(text: str, setting: VariantSetting) -> bool:
    try:
        change(text, [setting])
    except UsageError:
        return False
    return True


def _names(paths: list[Path]) -> list[str]:
    """Return the shortest distinct names: the stem of the file, its name, or the whole path."""
    for short in (lambda path: path.stem, lambda path: path.name, str):
        names = [short(path) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise UsageError("the same configuration is given twice")


def _label(
    name: str,
    combination: tuple[VariantSetting, ...],
    settings: Sequence[list[VariantSetting]],
    *,
    alone: bool,
) -> str:
    """Return what distinguishes a variant: the values that vary, and the file where there are several."""
    if not combination:
        return BASELINE if alone else name
    parts = short_settings(combination)
    # Paths with only one value are the same in all variants.
    varying = [part for part, each in zip(parts, settings, strict=True) if len(each) > 1]
    return " ".join(varying or parts if alone else [name, *varying])


def short_settings(settings: Sequence[VariantSetting]) -> list[str]:
    """Return settings as texts with the ends of their paths, or with whole paths where the ends are equal."""
    shorts = _shorts([one.path for one in settings])
    return [_part(short, one.value) for short, one in zip(shorts, settings, strict=True)]


def _part(short: str, value: str) -> str:
    """Return a setting as text; the name of a policy needs no path to be understood."""
    return value if short.endswith(("policy", "policy.type")) and value[:1].isalpha() else f"{short}={value}"


def _shorts(paths: Sequence[str]) -> list[str]:
    """Return the ends of paths, or whole paths where the ends are equal."""
    ends = [short_path(path) for path in paths]
    return [path if ends.count(end) > 1 else end for path, end in zip(paths, ends, strict=True)]


def short_path(path: str) -> str:
    """Return the last two keys of a path; of a property or the amount of a type, all of its name."""
    match = re.search(r"\.(?:properties\.|(?=(?:guaranteed|max|maxresources)\.))(.+)\Z", path)
    if match:
        return match[1]
    above, _, last = path.rpartition(".")
    above = above.rpartition(".")[2]
    return last if not above or "[" in above else f"{above}.{last}"


@attrs.frozen
class Variant:
    """A configuration variant and its results, one per seed."""

    name: str
    results: list[FullReport]
    settings: tuple[VariantSetting, ...] = ()
    """Settings that have changed its configuration; empty for finished folders."""
    file: str = ""
    """Path of the configuration, if the variant was simulated by this comparison."""
