"""Text of a configuration in a file: a queues.yaml by itself, or in the ConfigMaps of Apache YuniKorn.

`kubectl get configmap -o yaml` prints one ConfigMap or a `List`; manifests have several documents. Problems
of the queues.yaml are reported with their place in the file, so that an editor finds them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from yunikorn.config.document import Listing, Mapping, Scalar, YamlNode, compose_all, quote
from yunikorn.config.load import ConfigCheck, Outcome, check_config
from yunikorn.errors import ConfigError, Problem
from yunikorn.framework.registry import Registry
from yunikorn.text import listed, suggest
from yunikorn_kubernetes.config_maps import (
    COMPRESSED,
    DEFAULT_GROUP,
    NAMES,
    POLICY_GROUP,
    YAML,
    Entry,
    merge,
)

MARK = "apiVersion"
"""Key of every Kubernetes object, and of no queues.yaml."""
KIND, CONFIG_MAP = "kind", "ConfigMap"
LISTS = ("List", "ConfigMapList")
ONE_KIND = f"{CONFIG_MAP}List"
ADVICE = "expected a queues.yaml, or the output of `kubectl get configmap yunikorn-configs -o yaml`"


@attrs.frozen
class LocatedText:
    """Text of a queues.yaml, and its place in the file that contains it."""

    text: str
    warnings: tuple[Problem, ...] = ()
    """Warnings about the ConfigMaps around the text."""
    _place: _Block | _Value | None = None

    @property
    def is_embedded(self) -> bool:
        """True if the text is part of a ConfigMap."""
        return self._place is not None

    def located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return problems of the text with their place in the file."""
        place = self._place
        return tuple(problems) if place is None else tuple(place.locate(problem) for problem in problems)

    def check(self, registry: Registry, checks: Iterable[ConfigCheck] = ()) -> Outcome:
        """Return the result of checking the text, with places in the file.

        `checks` add warnings and hints to a configuration without problems.
        """
        outcome = check_config(self.text, registry, checks)
        return attrs.evolve(
            outcome,
            problems=self.located(outcome.problems),
            warnings=(*self.warnings, *self.located(outcome.warnings)),
            notes=self.located(outcome.notes),
            hints=self.located(outcome.hints),
        )


def read_source(text: str) -> LocatedText:
    """Return the queues.yaml that a file contains. Raises `ConfigError` if its ConfigMaps have none."""
    if MARK not in text:
        return LocatedText(text)
    documents = compose_all(text)
    objects = [each for each in documents if isinstance(each, Mapping) and _is_object(each)]
    if not objects or objects[0] is not documents[0]:
        return LocatedText(text)
    reader = _ConfigMaps()
    for each in objects:
        reader.take(each)
    return reader.source(text)


def _is_object(node: Mapping) -> bool:
    return MARK in node.entries and KIND in node.entries and "partitions" not in node.entries


@attrs.frozen
class _Block:
    """A literal block: its lines are lines of the file, behind an indentation."""

    above: int
    """Number of lines before the first line of the block."""
    indent: int

    def locate(self, problem: Problem) -> Problem:
        if not problem.line:
            return problem
        column = problem.column + self.indent if problem.column else 0
        return problem._replace(line=problem.line + self.above, column=column)


@attrs.frozen
class _Value:
    """A quoted or compressed text, whose lines are no lines of the file."""

    key: str
    line: int
    column: int

    def locate(self, problem: Problem) -> Problem:
        inner = f" (line {problem.line}, column {problem.column} of {self.key})" if problem.line else ""
        return problem._replace(message=problem.message + inner, line=self.line, column=self.column)


_Nodes: TypeAlias = dict[str, Scalar]


@attrs.define
class _ConfigMap:
    """A ConfigMap as read."""

    node: Mapping
    texts: _Nodes
    contents: _Nodes
    binary_data: dict[str, bytes] = attrs.field(factory=dict)

    @property
    def data(self) -> dict[str, str]:
        return {key: node.text for key, node in self.texts.items()}


class _ConfigMaps:
    """Reader of the ConfigMaps of a file."""

    def __init__(self) -> None:
        self._found: dict[str, _ConfigMap] = {}
        self._others: list[tuple[str, YamlNode]] = []
        """Names of other objects, with their positions."""
        self._problems: list[Problem] = []

    def take(self, node: Mapping, kind: str = "") -> None:
        """Read an object, or all objects of a list."""
        kind = _text(node.entries.get(KIND)) or kind
        if kind in LISTS:
            items = node.entries.get("items")
            for item in items.items if isinstance(items, Listing) else ():
                if isinstance(item, Mapping):
                    self.take(item, CONFIG_MAP if kind == ONE_KIND else "")
            return
        metadata = node.entries.get("metadata")
        name = _text(metadata.entries.get("name")) if isinstance(metadata, Mapping) else ""
        if kind != CONFIG_MAP or name not in NAMES:
            self._others.append((f"{kind or 'an object without kind'} {name}".rstrip(), node))
        elif name in self._found:
            first = self._found[name].node.line
            self._problem(node, f"{CONFIG_MAP} {name} is here twice, first in line {first}: give one of them")
        else:
            self._found[name] = self._read(node)

    def _read(self, node: Mapping) -> _ConfigMap:
        found = _ConfigMap(node, self._scalars(node, "data"), self._scalars(node, "binaryData"))
        for key, scalar in found.contents.items():
            try:
                found.binary_data[key] = base64.b64decode("".join(scalar.text.split()), validate=True)
            except binascii.Error as error:
                self._problem(scalar, f"{key} is not base64 ({error}), as binaryData has to be")
        return found

    def _scalars(self, node: Mapping, key: str) -> _Nodes:
        inner = node.entries.get(key)
        if inner is None or (isinstance(inner, Scalar) and inner.is_null):
            return {}
        if not isinstance(inner, Mapping):
            self._problem(inner, f"{key} of a {CONFIG_MAP} is a mapping")
            return {}
        found: _Nodes = {}
        for name, value in inner.entries.items():
            if isinstance(value, Scalar):
                found[name] = value
            else:
                self._problem(value, f"{name} is not a text: put a | behind '{name}:' to make it one")
        return found

    def source(self, text: str) -> LocatedText:
        """Return the queues.yaml of the policy group; raises `ConfigError`."""
        if not self._found:
            where = self._others[0][1] if self._others else YamlNode(1, 1)
            found = listed([name for name, _ in self._others])
            what = f"no {CONFIG_MAP} is called {' or '.join(NAMES)}; found: {found}; {ADVICE}"
            raise ConfigError([*self._problems, Problem("", what, where.line, where.column)])
        entries, problems, warnings = merge(dict(self._found))
        for problem in problems:
            name, _, key = problem.path.partition(": ")
            self._problem(self._found[name].contents[key], f"{key} is {problem.message}")
        key = _chosen(entries)
        if key not in entries and not problems:
            self._problem(next(reversed(self._found.values())).node, _missing(key, entries))
        if self._problems:
            raise ConfigError(self._problems)
        about = [*map(self._warning, warnings), *self._unused(entries, key)]
        return LocatedText(entries[key].text, tuple(about), self._place(text, key, entries[key]))

    def _problem(self, node: YamlNode, message: str) -> None:
        self._problems.append(Problem("", message, node.line, node.column))

    def _warning(self, message: str) -> Problem:
        node = self._found[message.partition(":")[0]].node
        return Problem("", message, node.line, node.column)

    def _unused(self, entries: dict[str, Entry], chosen: str) -> Iterator[Problem]:
        for key, entry in entries.items():
            if key.endswith(YAML) and key != chosen:
                text = f"{entry.source}: {key} is not used: the policy group reads {chosen}"
                scalar = self._scalar(key, entry)
                yield Problem("", text, scalar.line, scalar.column)
        for name, node in self._others:
            text = f"{name} is ignored: only {' and '.join(NAMES)} are read"
            yield Problem("", text, node.line, node.column)

    def _scalar(self, key: str, entry: Entry) -> Scalar:
        found = self._found[entry.source]
        return found.contents.get(f"{key}{COMPRESSED}") or found.texts[key]

    def _place(self, text: str, key: str, entry: Entry) -> _Block | _Value:
        node = self._scalar(key, entry)
        return _block(text, node) or _Value(key, node.line, node.column)


def _text(node: YamlNode | None) -> str:
    return node.text if isinstance(node, Scalar) and not node.is_null else ""


def _chosen(entries: dict[str, Entry]) -> str:
    group = entries[POLICY_GROUP].text.strip() if POLICY_GROUP in entries else ""
    return f"{group or DEFAULT_GROUP}{YAML}"


def _missing(key: str, entries: dict[str, Entry]) -> str:
    others = [name for name in entries if name.endswith(YAML)]
    near = suggest(key, others) or (f"; {CONFIG_MAP}s have {listed(others)}" if others else "")
    return f"the {CONFIG_MAP} has no key {quote(key)}, the queue configuration{near}"


def _block(text: str, node: Scalar) -> _Block | None:
    """Return the place of a literal block; None for a scalar whose lines are not lines of the file."""
    lines, indent = text.split("\n")[node.line :], 0
    for number, inner in enumerate(node.text.split("\n")):
        if not inner.strip():
            continue
        if number >= len(lines) or not lines[number].rstrip("\r").endswith(inner):
            return None
        before = lines[number].rstrip("\r").removesuffix(inner)
        if before.strip():
            return None
        indent = len(before)
    return _Block(node.line, indent)
