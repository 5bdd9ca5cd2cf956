"""Paths of settings by the names of queues: `root.research.resources.max.vcore`.

A path that begins with `root` is translated to the form that `yunikorn validate` prints, in which queues have
numbers: `partitions[0].queues[0].queues[1].resources.max.vcore`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from yunikorn.config.document import Listing, Mapping, Scalar, YamlNode, compose
from yunikorn.config.queues_yaml import QUEUE
from yunikorn.errors import UsageError
from yunikorn.text import suggest

ROOT = "root"
_FIRST = re.compile(r"[^.\[\]]+")


@attrs.frozen
class NamedQueue:
    """A queue of a configuration."""

    name: str
    path: str
    """Path by numbers; empty for a root queue that the configuration does not write."""
    children: list[NamedQueue]


def is_queue_path(path: str) -> bool:
    """Return True if a path of a setting begins with the root queue."""
    match = _FIRST.match(path)
    return match is not None and match[0].lower() == ROOT


def numbered_path(text: str, path: str) -> str:
    """Return a path by the names of queues in the form by numbers, for the configuration `text`.

    Raises `UsageError` if there is no such queue or key, or if several partitions have the queue.
    """
    root, _ = compose(text)
    problems: list[str] = []
    found: list[str] = []
    for queue in _roots(root):
        try:
            found.append(_walk(queue, path))
        except UsageError as error:
            problems.append(str(error))
    if len(found) > 1:
        raise UsageError(f"--set {path}: several partitions have this queue; write {' or '.join(found)}")
    if not found:
        raise UsageError(problems[0] if problems else f"--set {path}: the configuration has no queues")
    return found[0]


def _walk(queue: NamedQueue, path: str) -> str:
    rest, at = path[len(ROOT) :], ROOT
    while True:
        rest = rest.removeprefix(".")
        if not rest:
            what = "names a queue; add one of its keys, such as maxapplications or resources.max.vcore"
            raise UsageError(f"--set {path}: {what}")
        match = _FIRST.match(rest)
        key = match[0] if match else rest
        if key in QUEUE.known:
            return _with_key(queue, rest, path)
        child = _child(queue, rest)
        if child is None:
            known = [*(one.name for one in queue.children), *QUEUE.known]
            names = ", ".join(one.name for one in queue.children) or "none"
            raise UsageError(
                f"--set {path}: queue {at} has no child or key '{key}'{suggest(key, known)}; "
                f"children: {names}; keys: {', '.join(QUEUE.known)}"
            )
        queue, rest, at = child, rest[len(child.name) :], f"{at}.{child.name}"


def _with_key(queue: NamedQueue, rest: str, path: str) -> str:
    if not queue.path:
        raise UsageError(
            f"--set {path}: the configuration does not write the queue root, so that it has no keys; add it "
            "above its queues"
        )
    return f"{queue.path}.{rest}"


def _child(queue: NamedQueue, rest: str) -> NamedQueue | None:
    """Return the child with which the rest of a path begins; names may have dots, the longest is first."""
    for child in sorted(queue.children, key=lambda one: -len(one.name)):
        if rest.lower().startswith(child.name.lower()) and rest[len(child.name) :][:1] in ("", "."):
            return child
    return None


def _roots(root: YamlNode | None) -> Iterator[NamedQueue]:
    """Yield the root queue of each partition."""
    for number, partition in enumerate(_items(_value(root, "partitions"))):
        at = f"partitions[{number}]"
        queues = _queues(partition, at)
        named = [one for one in queues if one.name.lower() == ROOT]
        yield named[0] if len(queues) == 1 and named else NamedQueue(ROOT, "", queues)


def _queues(parent: YamlNode, at: str) -> list[NamedQueue]:
    found = []
    for number, queue in enumerate(_items(_value(parent, "queues"))):
        name = _value(queue, "name")
        path = f"{at}.queues[{number}]"
        if isinstance(name, Scalar):
            found.append(NamedQueue(name.text, path, _queues(queue, path)))
    return found


def _value(node: YamlNode | None, key: str) -> YamlNode | None:
    return node.entries.get(key) if isinstance(node, Mapping) else None


def _items(node: YamlNode | None) -> list[YamlNode]:
    return list(node.items) if isinstance(node, Listing) else []
