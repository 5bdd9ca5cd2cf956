"""Configuration files of commands: queues.yaml files and ConfigMaps, from files and from standard input."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from yunikorn.config.document import decode
from yunikorn.config.load import ConfigCheck, Outcome
from yunikorn.errors import ConfigError, Problem, UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.config_source import LocatedText, read_source
from yunikorn_commands.input_files import DASH, LARGEST_CONFIG, name_of, read_input
from yunikorn_commands.input_source import InputError
from yunikorn_commands.mistaken_files import not_a_config
from yunikorn_commands.plugin_files import trusting


def folder_of(file: Path) -> Path:
    """Return the folder of an input file; the current one for standard input."""
    return Path() if file == DASH else file.parent


@attrs.frozen
class ConfigInput:
    """Content of a file with a configuration."""

    file: Path
    data: bytes = attrs.field(repr=False)

    @classmethod
    def read(cls, file: Path) -> ConfigInput:
        """Read a file; raises `UnreadableInput`."""
        return cls(file, read_input(file, LARGEST_CONFIG))

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return name_of(self.file)

    def source(self) -> LocatedText:
        """Return the queues.yaml of the file; raises `ConfigError`, also for a file of another kind."""
        mistaken = not_a_config(self.data)
        if mistaken:
            raise ConfigError([Problem("", mistaken, 1, 1)])
        return self.embedded()

    def embedded(self) -> LocatedText:
        """Return the text of the file, or that in its ConfigMaps; raises `ConfigError`."""
        return read_source(decode(self.data))

    def check(self, registry: Registry, checks: Iterable[ConfigCheck] = ()) -> Outcome:
        """Return the result of checking the configuration, with places in this file.

        `checks` add warnings and hints to a configuration without problems.
        """
        try:
            source = self.source()
        except ConfigError as error:
            return Outcome(None, error.problems)
        return source.check(registry, checks)


def read_config(path: Path, registry: Registry) -> str:
    """Return the text of a configuration to run under.

    Raises `UnreadableInput`, `UsageError` if there is none, and `InputError` if a ConfigMap has problems. The
    problems of a plain queues.yaml are reported by those who use it.
    """
    found = ConfigInput.read(path)
    mistaken = not_a_config(found.data)
    if mistaken:
        raise UsageError(f"{found.name}: {mistaken}")
    try:
        source = found.embedded()
    except ConfigError as error:
        raise InputError(found.name, error.problems) from error
    if not source.text.strip():
        raise UsageError(f"{found.name}: is empty: expected a configuration with a partition")
    if source.is_embedded:
        # Their places are those of the ConfigMap only here.
        outcome = found.check(trusting(registry, folder_of(path)))
        if outcome.problems:
            raise InputError(found.name, outcome.problems)
    return source.text
