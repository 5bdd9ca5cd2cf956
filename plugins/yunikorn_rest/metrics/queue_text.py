"""Text of the metrics of queues, in the text format of Prometheus.

A cluster may have thousands of queues, each with dozens of samples. prometheus_client takes fifteen
microseconds for a sample, in which the core's thread has to wait; this module takes about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yunikorn_rest.metrics import families
from yunikorn_rest.metrics.core_figures import CoreFigures, QueueFigures
from yunikorn_rest.metrics.families import Family

Samples = Iterator[tuple[str, int]]
"""Labels beside that of the queue, and the value."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def quoted(value: str) -> str:
    """Return a label value in quotes, with special characters escaped."""
    if value.isalnum() and value.isascii():
        return f'"{value}"'
    return f'"{encodable(value).translate(_ESCAPES)}"'


def encodable(value: str) -> str:
    """Return a text without characters that UTF-8 cannot encode."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")


class QueueText:
    """Text of the metrics of queues over several scrapes.

    As in YuniKorn 1.9, a sample appears with its first value other than zero, and stays while the queue
    exists. So an amount that a configuration no longer limits becomes zero.
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, set[str]]] = {}
        """Labels of the samples that have appeared, by family and queue."""

    def of(self, core: CoreFigures) -> Iterator[str]:
        """Yield the lines of all metrics of queues."""
        shown = {path: quoted(path) for path in core.queues}
        yield from self._family(families.QUEUE_APPS, core, shown, _applications)
        yield from _ended(core)
        yield from self._family(families.QUEUE_RESOURCES, core, shown, _amounts)
        yield from _containers(core)

    def _family(
        self,
        family: Family,
        core: CoreFigures,
        shown: dict[str, str],
        samples: Callable[[QueueFigures], Samples],
    ) -> Iterator[str]:
        yield _head(family, family.name)
        before = self._seen.get(family.name, {})
        after = self._seen[family.name] = {}
        for path, queue in core.queues.items():
            values = {labels: value for labels, value in samples(queue) if value}
            seen = after[path] = before.get(path) or set()
            seen.update(values)
            queue_label = f"{family.name}{{queue={shown[path]},"
            for labels in sorted(seen):
                yield f"{queue_label}{labels}}} {values.get(labels, 0)}\n"


def _head(family: Family, name: str) -> str:
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"


def _applications(queue: QueueFigures) -> Samples:
    for counts in (queue.states, queue.ended):
        for name, count in (counts or {}).items():
            yield f'state="{name.lower()}"', count


def _amounts(queue: QueueFigures) -> Samples:
    for key, amount in queue.amounts.items():
        state, _, name = key.partition(" ")
        yield f'resource={quoted(name)},state="{state}"', amount
    yield 'resource="apps",state="maxRunningApps"', queue.max_applications


def _ended(core: CoreFigures) -> Iterator[str]:
    family = families.QUEUE_ENDED
    yield _head(family, family.name)
    existing = [(path, queue.ended) for path, queue in core.queues.items() if queue.ended]
    for path, counts in [*existing, *core.removed_queues.items()]:
        for state, count in counts.items():
            yield f'{family.name}{{queue={quoted(path)},state="{state.lower()}"}} {count}\n'


def _containers(core: CoreFigures) -> Iterator[str]:
    by_name: dict[str, tuple[int, int]] = {}
    for path, queue in core.queues.items():
        name = families.QUEUE_CONTAINERS.named(path)
        allocated, released = by_name.get(name, (0, 0))
        by_name[name] = allocated + queue.allocated, released + queue.released
    for name, (allocated, released) in by_name.items():
        if allocated or released:
            yield _head(families.QUEUE_CONTAINERS, name)
            yield f'{name}{{state="allocated"}} {allocated}\n{name}{{state="released"}} {released}\n'
