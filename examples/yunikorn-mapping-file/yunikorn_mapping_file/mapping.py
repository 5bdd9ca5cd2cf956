"""Parser of mapping files."""

from __future__ import annotations

import attrs

from yunikorn.api import Application

FORMS = "'user NAME QUEUE', 'group NAME QUEUE', 'tag NAME=VALUE QUEUE' or '* QUEUE'"


@attrs.frozen
class Mapping:
    """Line of the file: a condition, and the queue of applications that meet the condition."""

    kind: str
    """`user`, `group`, `tag`, or `*` for all applications."""
    name: str
    value: str
    queue: str

    def holds(self, app: Application) -> bool:
        """Return True if the application meets the condition."""
        if self.kind == "user":
            return app.user == self.name
        if self.kind == "group":
            return self.name in app.groups
        if self.kind == "tag":
            return app.tags.get(self.name) == self.value
        return True


def read_mappings(text: str) -> tuple[Mapping, ...]:
    """Return the mappings of a file, in order. Raises `ValueError` with all invalid lines."""
    found, wrong = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        mapping = _read(words)
        if mapping is None:
            wrong.append(f"line {number}: expected {FORMS}, got '{line.strip()}'")
        elif not all(mapping.queue.split(".")):
            wrong.append(f"line {number}: a level of the queue '{mapping.queue}' is empty")
        else:
            found.append(mapping)
    if wrong:
        raise ValueError("; ".join(wrong))
    return tuple(found)


def _read(words: list[str]) -> Mapping | None:
    match words:
        case ["*", queue]:
            return Mapping("*", "", "", queue)
        case ["user" | "group" as kind, name, queue]:
            return Mapping(kind, name, "", queue)
        case ["tag", condition, queue] if "=" in condition:
            name, _, value = condition.partition("=")
            return Mapping("tag", name, value, queue) if name else None
        case _:
            return None
