"""Variants of a comparison: configurations, each with every combination of settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.reporting.variant_settings import Setting, change, check_change
from yunikorn.simulation.input_error import InputError

MOST = 64
"""Maximum number of variants, beyond which a table is unreadable."""


@attrs.frozen
class VariantPlan:
    """A variant to simulate."""

    name: str
    config: str
    """Text of queues.yaml."""

    def folder(self, number: int) -> str:
        """Return the folder name of the variant with this number, counted from 1."""
        return f"{number}-{re.sub(r'[^A-Za-z0-9._=-]+', '-', self.name)[:60].strip('-.')}"


def check_configs(configs: Sequence[tuple[Path, str]], registry: Registry) -> None:
    """Raise `InputError` that lists all problems of the configurations, given as paths and texts."""
    outcomes = [(path, check_config(text, registry)) for path, text in configs]
    invalid = [InputError(str(path), outcome.problems) for path, outcome in outcomes if not outcome.valid]
    if invalid:
        raise InputError.joined(invalid)


def make_plans(
    configs: Sequence[tuple[Path, str]], settings: Sequence[list[Setting]], registry: Registry
) -> list[VariantPlan]:
    """Make all variants; if there would be only one, the unchanged configuration is added as the first.

    `configs` are paths and texts. Raises `InputError` for an invalid original configuration, and `UsageError`
    that lists all settings with invalid paths or invalid results.
    """
    check_configs(configs, registry)
    names = _names([path for path, _ in configs])
    combinations: list[tuple[Setting, ...]] = list(itertools.product(*settings))
    if len(configs) * len(combinations) > MOST:
        raise UsageError(f"{len(configs) * len(combinations)} variants are too many; the maximum is {MOST}")
    if settings and len(configs) * len(combinations) == 1:
        combinations.insert(0, ())
    problems: list[str] = []
    found: list[VariantPlan] = []
    for name, (_, text) in zip(names, configs, strict=True):
        for combination in combinations:
            label = _label(name, combination, settings, alone=len(configs) == 1)
            found.append(VariantPlan(label, _changed(text, combination, registry, problems)))
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    if len(found) < 2:
        what_to_do = "give two configurations (--config A --config B) or a setting (--set PATH=VALUE)"
        raise UsageError(f"there is nothing to compare: {what_to_do}")
    return found


def _changed(text: str, combination: tuple[Setting, ...], registry: Registry, problems: list[str]) -> str:
    if not combination:
        return text
    try:
        changed = change(text, combination)
    except UsageError as error:
        problems += str(error).splitlines()
        combination = tuple(setting for setting in combination if _leads_somewhere(text, setting))
        changed = change(text, combination)
    problems += check_change(changed, combination, registry)
    return changed


def _leads_somewhere(text: str, setting: Setting) -> bool:
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
    name: str, combination: tuple[Setting, ...], settings: Sequence[list[Setting]], *, alone: bool
) -> str:
    if not combination:
        return name
    short = [_short(setting.path) for setting in combination]
    every = [_short(each[0].path) for each in settings]
    parts = [
        f"{last if every.count(last) == 1 else setting.path}={setting.value}"
        for last, setting in zip(short, combination, strict=True)
    ]
    # Paths with only one value are the same in all variants, and are left out of the label.
    told = [part for part, each in zip(parts, settings, strict=True) if len(each) > 1 or len(parts) == 1]
    text = " ".join(told or parts)
    if len(settings) == 1 and combination[0].value[:1].isalpha():
        text = combination[0].value  # a word needs no path to be understood
    return text if alone else f"{name} {text}"


def _short(path: str) -> str:
    """Return the last key of a path, including the dots of a property or a resource type."""
    match = re.search(r"\.(?:properties|guaranteed|max|maxresources)\.(.+)\Z", path)
    return match[1] if match else path.rpartition(".")[2]
