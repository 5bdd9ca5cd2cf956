"""Metric families of prometheus_client, made of figures, and their text.

Text of the metrics of queues, in the text format of Prometheus.

A cluster may have thousands of queues, each with dozens of samples. prometheus_client takes fifteen
microseconds for a sample, in which the core's thread has to wait; this module takes about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from yunikorn import __version__
from yunikorn.clock import SECOND
from yunikorn_rest.metrics import families
from yunikorn_rest.metrics.core_figures import CoreFigures, QueueFigures
from yunikorn_rest.metrics.families import COUNTER, HISTOGRAM, Family
from yunikorn_service.buffered_sinks import SinkLoad
from yunikorn_service.histogram import Histogram
from yunikorn_service.method_meters import MethodUse

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


Sample = tuple[Sequence[str], float]
"""Values of the labels, and the value."""


@attrs.define
class ServiceFigures:
    """Figures of a service beside those of the core."""

    inbox: int = 0
    inbox_capacity: int = 0
    plugin_time: Mapping[tuple[str, str], float] = attrs.Factory(dict)
    """Seconds by plugin and operation."""
    plugins: Iterable[MethodUse] = ()
    sinks: Iterable[SinkLoad] = ()
    scrapes: Mapping[str, int] = attrs.Factory(dict)
    """Scrapes answered so far, by HTTP status code."""
    scraping: int = 0
    figures: Mapping[Family, float] = attrs.Factory(dict)
    """Figures of parts of the service, each the only value of its family."""


class MetricsText:
    """Text of the metrics of one service."""

    def __init__(self) -> None:
        """Create with a registry of its own, which has the metrics of the process and of Python."""
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._queues = QueueText()

    def of(self, core: CoreFigures, service: ServiceFigures) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        metrics = [*_scheduler_metrics(core), *_service_metrics(core, service), *self.registry.collect()]
        return "".join(self._queues.of(core)).encode() + generate_latest(_Collected(metrics))


class _Collected(Collector):
    """Metrics that have been collected, as a registry of their own."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._collected = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._collected


def _metric(family: Family, samples: Iterable[Sample], of: str = "") -> Metric:
    """Return a counter or gauge; `of` is the name that becomes part of the family's name."""
    name = family.named(of) if of else family.name
    metric = Metric(name.removesuffix("_total") if family.kind == COUNTER else name, family.help, family.kind)
    for values, value in samples:
        metric.add_sample(name, dict(zip(family.labels, map(encodable, values), strict=True)), value)
    return metric


def _histogram(family: Family, *histograms: tuple[Sequence[str], Histogram]) -> Metric:
    metric = Metric(family.name, family.help, HISTOGRAM)
    for values, histogram in histograms:
        labels = dict(zip(family.labels, values, strict=True))
        below = 0
        bounds = [f"{bound / SECOND:g}" for bound in histogram.bounds]
        for bound, count in zip([*bounds, "+Inf"], histogram.counts, strict=True):
            below += count
            metric.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, below)
        metric.add_sample(f"{family.name}_sum", labels, histogram.total / SECOND)
        metric.add_sample(f"{family.name}_count", labels, below)
    return metric


def _scheduler_metrics(core: CoreFigures) -> Iterator[Metric]:
    counts, ended, refused, states = core.counts, core.ended, core.refused, core.states
    yield _metric(
        families.ATTEMPTS,
        (
            (("allocated",), counts.get("allocated", 0)),
            (("released",), counts.get("released", 0)),
            (("rejected",), refused.get("ask", 0)),
            (("error",), counts.get("errors", 0)),
        ),
    )
    yield _metric(
        families.SUBMISSIONS,
        (
            (("new",), counts.get("submitted", 0)),
            (("accepted",), counts.get("accepted", 0)),
            (("rejected",), ended.get("Rejected", 0)),
        ),
    )
    current = [
        ((state,), states[state.capitalize()]) for state in ("running", "resuming", "failing", "completing")
    ]
    total = [((state,), ended.get(state.capitalize(), 0)) for state in ("completed", "failed")]
    yield _metric(families.APPLICATIONS, [*current, *total])
    yield _metric(
        families.NODES,
        (
            (("active",), core.nodes["active"]),
            (("draining",), core.nodes["draining"]),
            (("failed",), refused.get("node", 0)),
            (("decommissioned",), counts.get("removed_nodes", 0)),
        ),
    )
    yield from _node_usage(core)
    yield from _latencies(core.durations)


def _node_usage(core: CoreFigures) -> Iterator[Metric]:
    by_name: dict[str, list[int]] = {}
    for resource, tenths in core.node_usage.items():
        name = families.metric_name(resource)
        before = by_name.get(name)
        by_name[name] = (
            tenths if before is None else [one + other for one, other in zip(before, tenths, strict=True)]
        )
    for name, tenths in sorted(by_name.items()):
        ranges = zip(families.RANGES, tenths, strict=True)
        yield _metric(families.NODE_USAGE, [((label,), count) for label, count in ranges], of=name)


def _latencies(durations: Mapping[str, Histogram]) -> Iterator[Metric]:
    if not durations:
        return
    yield _histogram(families.LATENCY, ((), durations["turn"]))
    yield _histogram(families.CYCLE, ((), durations["round"]))
    yield _histogram(
        families.SORTING, (("app",), durations["app_sort"]), (("queue",), durations["queue_sort"])
    )
    yield _histogram(families.TRY_NODE, ((), durations["fit"]))
    yield _histogram(families.TRY_NODES, ((), durations["search"]))
    yield _histogram(families.PREEMPTION, ((), durations["preemption"]))
    yield _histogram(families.DECISION, ((), durations["decision"]))


def _service_metrics(core: CoreFigures, service: ServiceFigures) -> Iterator[Metric]:
    counts = core.counts
    yield _metric(families.DECISIONS, [((), counts.get("decisions", 0))])
    yield _metric(families.STEPS, [((), counts.get("steps", 0))])
    yield _metric(families.BUSY, [((), counts.get("busy", 0) / SECOND)])
    yield _metric(families.INBOX, [((), service.inbox)])
    yield _metric(families.INBOX_CAPACITY, [((), service.inbox_capacity)])
    yield _metric(families.SESSIONS, [((state,), core.sessions[state]) for state in ("running", "paused")])
    yield _metric(families.REFUSALS, [((kind,), core.refused.get(kind, 0)) for kind in families.REFUSED])
    yield _metric(families.PLUGIN_TIME, list(service.plugin_time.items()))
    uses = [((use.plugin, use.kind, use.method), use) for use in service.plugins]
    yield _metric(families.PLUGIN_CALLS, [(labels, use.calls) for labels, use in uses])
    yield _metric(families.PLUGIN_CALL_TIME, [(labels, use.seconds) for labels, use in uses])
    yield _metric(families.PLUGIN_REFUSALS, [(labels, use.refusals) for labels, use in uses])
    yield _metric(families.PLUGIN_FAULTS, list(core.faults.items()))
    loads = _loads_by_sink(service.sinks)
    yield _metric(families.SINK_WAITING, [((sink,), load[0]) for sink, load in loads.items()])
    yield _metric(families.SINK_TAKEN, [((sink,), load[1]) for sink, load in loads.items()])
    yield _metric(families.SINK_DROPPED, [((sink,), load[2]) for sink, load in loads.items()])
    yield _metric(families.IDLE_SLICES, core.idle_slices.items())
    yield _metric(families.DOMAINS, core.domains.items())
    yield _metric(families.WAITING_APPS, [((policy,), count) for policy, count in core.waiting.items()])
    for family, value in service.figures.items():
        yield _metric(family, [((), value)])
    yield _metric(families.BUILD, [((__version__,), 1)])
    yield _metric(
        families.SCRAPES, [((code,), service.scrapes.get(code, 0)) for code in ("200", "500", "503")]
    )
    yield _metric(families.SCRAPING, [((), service.scraping)])


def _loads_by_sink(sinks: Iterable[SinkLoad]) -> dict[str, tuple[int, int, int]]:
    """Return waiting, taken and dropped events by sink; sinks of several resource managers may be equal."""
    loads: dict[str, tuple[int, int, int]] = {}
    for load in sinks:
        waiting, taken, dropped = loads.get(load.origin, (0, 0, 0))
        loads[load.origin] = waiting + load.waiting, taken + load.taken, dropped + load.dropped
    return loads
