"""Reader of the requirements of a gang on the topology, which the RM gives as JSON in a tag.

    {"required": "block", "preferred": [{"level": "rack", "for": "10m"}],
     "slices": [{"size": 8, "level": "rack"}], "groups": {"driver": {"required": "host"}},
     "exclusive": true}

A text that is no JSON object is the name of the required level.
"""

from __future__ import annotations

import json
from typing import Any

from yunikorn.config.durations import parse_duration
from yunikorn.model.gang_topology import (
    GANG_TOPOLOGY_TAG,
    GangSlice,
    GangTopology,
    GroupTopology,
    PreferredLevel,
)
from yunikorn.scheduling.topology.topology_tree import ROOT, Topology
from yunikorn.text import listed, suggest

LONGEST_REQUEST = 16_384
"""Largest number of characters of the tag; each request of the application depends on it."""
MOST_SLICES = 8
"""Largest number of sizes of slices inside each other."""
_GROUP_KEYS = ("required", "preferred", "slices")
_KEYS = (*_GROUP_KEYS, "groups", "exclusive")


def read_topology_tag(text: str, topology: Topology) -> tuple[GangTopology | None, str]:
    """Return the requirements, or None and all problems of the text."""
    if len(text) > LONGEST_REQUEST:
        return None, f"tag {GANG_TOPOLOGY_TAG} has more than {LONGEST_REQUEST} characters"
    reader = _Reader(topology)
    found = reader.read(text)
    # JSON may escape halves of characters, which no resource manager can be told of.
    problems = "; ".join(reader.problems).encode(errors="backslashreplace").decode()
    return (None, f"tag {GANG_TOPOLOGY_TAG}: {problems}") if problems else (found, "")


class _Reader:
    """Reader of one tag."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._levels: dict[str, int] = {}
        """Levels that a request may name: those of the tree of the first one."""
        self.problems: list[str] = []

    def read(self, text: str) -> GangTopology | None:
        """Return the requirements; problems are added to the list."""
        given: Any = {"required": text.strip()}
        if text.lstrip()[:1] in ("{", "[", '"'):
            try:
                given = json.loads(text, object_pairs_hook=self._unique)
            except (ValueError, RecursionError) as error:
                self.problems.append(f"invalid JSON: {error}")
                return None
        if not self._is_mapping(given, "", _KEYS):
            return None
        groups: dict[str, GroupTopology] = {}
        own = self._group(given, "")
        named = given.get("groups", {})
        if self._is_mapping(named, "groups", None):
            for name, each in named.items():
                if self._is_mapping(each, f"groups.{name}", _GROUP_KEYS):
                    groups[name] = self._group(each, f"groups.{name}.", own)
        exclusive = self._exclusive(given.get("exclusive", False), own.required)
        found = GangTopology(own.required, own.preferred, own.slices, tuple(groups.items()), exclusive)
        if not found.levels and not self.problems:
            self.problems.append("it names no level")
        return found

    def _unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self.problems.append("a key occurs twice")
        return found

    def _is_mapping(self, value: Any, at: str, keys: tuple[str, ...] | None) -> bool:
        if not isinstance(value, dict):
            self.problems.append(f"{at or 'it'} must be a mapping")
            return False
        for key in value if keys is not None else ():
            if key not in keys:  # type: ignore[operator]
                at_key = f"{at}.{key}" if at else key
                self.problems.append(f"unknown key {at_key}{suggest(key, keys)}; known: {listed(keys)}")  # type: ignore[arg-type]
        return True

    def _group(self, given: dict[str, Any], at: str, outer: GroupTopology | None = None) -> GroupTopology:
        """Read the requirements of a gang, or those of a task group inside its `outer` ones."""
        required = self._level(given["required"], f"{at}required") if "required" in given else ""
        preferred = [self._preferred(each, f"{at}preferred") for each in self._list(given, "preferred", at)]
        slices = [self._slice(each, f"{at}slices") for each in self._list(given, "slices", at)]
        found = GroupTopology(required, tuple(filter(None, preferred)), tuple(filter(None, slices)))
        if not self.problems:
            self._check(found, at, self._levels.get(outer.required, ROOT) if outer is not None else ROOT)
        return found

    def _exclusive(self, value: Any, required: str) -> str:
        """Read the level of which the gang has domains alone; true means the required one."""
        if value is False:
            return ""
        level = required if value is True else self._level(value, "exclusive")
        if self._levels.get(level, ROOT) > self._levels.get(required, ROOT) or not required:
            self.problems.append("exclusive: it needs a required level, which is the same or a closer one")
        return level

    def _list(self, given: dict[str, Any], key: str, at: str) -> list[Any]:
        value = given.get(key, [])
        if not isinstance(value, list) or len(value) > MOST_SLICES:
            self.problems.append(f"{at}{key} must be a list of at most {MOST_SLICES} entries")
            return []
        return value

    def _level(self, value: Any, at: str) -> str:
        name = value if isinstance(value, str) else json.dumps(value)
        tree = self._topology.tree_of(name)
        if tree is not None and not self._levels:
            self._levels = {level: number for number, level in enumerate(tree.levels)}
        known = self._levels or self._topology.levels
        if name in known:
            return name
        if not known:
            problem = f"the partition has no topology, and no level '{name}'"
        elif tree is not None:
            problem = f"'{name}' is a level of another tree; levels of one tree: {listed(known)}"
        else:
            problem = f"unknown level '{name}'{suggest(name, known)}; known: {listed(known)}"
        self.problems.append(f"{at}: {problem}")
        return ""

    def _preferred(self, value: Any, at: str) -> PreferredLevel | None:
        entry = {"level": value} if isinstance(value, str) else value
        if not self._is_mapping(entry, at, ("level", "for")):
            return None
        try:
            wait = parse_duration(str(entry.get("for", "0")))
            if wait < 0:
                raise ValueError(f"a time is 0 or more, got {entry['for']}")
        except ValueError as error:
            self.problems.append(f"{at}: {error}")
            wait = 0
        return PreferredLevel(self._level(entry.get("level"), at), wait)

    def _slice(self, value: Any, at: str) -> GangSlice | None:
        if not self._is_mapping(value, at, ("size", "level")):
            return None
        size = value.get("size")
        if type(size) is not int or size < 1:
            self.problems.append(f"{at}: size must be a whole number of 1 or more")
            return None
        return GangSlice(size, self._level(value.get("level"), at))

    def _check(self, found: GroupTopology, at: str, outer: int) -> None:
        """Check the order of levels: each is inside the one before, or closer than what follows."""
        number = self._levels
        if found.required and number[found.required] < outer:
            self.problems.append(f"{at}required: level {found.required} is not inside that of the gang")
        widest = number.get(found.required, outer)
        closest = [number[each.level] for each in found.preferred]
        if closest != sorted(closest, reverse=True) or any(level <= widest for level in closest):
            self.problems.append(
                f"{at}preferred: name levels from the closest to the widest, inside the required one"
            )
        waits = [each.wait for each in found.preferred]
        if waits != sorted(waits):
            self.problems.append(f"{at}preferred: a level cannot be given up before a closer one")
        for one, inner in zip(found.slices, found.slices[1:], strict=False):
            if one.size % inner.size or number[inner.level] <= number[one.level]:
                self.problems.append(
                    f"{at}slices: {inner.size} per {inner.level} must divide {one.size} per {one.level},"
                    " at a closer level"
                )
