"""Rows of a recording that follow from samples of the core, from events of nodes, and from the audit log."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import sqlalchemy as sa

from yunikorn.accounting.event_batch import Entry, Source
from yunikorn.clock import MILLISECOND
from yunikorn_history.core_sample import SampledConfig, SampledCore, take_sample
from yunikorn_history.history_tables import AUDIT, CONFIGS, FAULTS, LEVELS, MINUTE, NODES, SERIES, SHAPES
from yunikorn_history.node_rows import RecordedNodes
from yunikorn_history.recorded_parts import RecordingContext
from yunikorn_history.rows import Row
from yunikorn_history.sampled_series import TURNS, SampledSeries
from yunikorn_history.service_usage import Find
from yunikorn_service.runtime.sliced_reads import CoreReader

MOST_SERIES = 50_000
"""Number of rows of series that are continued, those of days first."""
MOST_SAMPLES = 30
"""Number of samples that wait in memory at most; one of 3,000 nodes occupies a megabyte."""
MOST_KEPT = 1_000
"""Number of faults of earlier runs that are counted on."""
APPLY, SOON = "apply configuration", 30_000
"""Operation of the audit log that changes a configuration, and the time until it is in use (ms)."""
FILE, REST, OWN, CONFIG_MAP = "file", "REST", "resource manager", "ConfigMap"
"""Sources of configurations."""


@attrs.frozen
class KeptRows:
    """Rows of a database from which the samples are continued."""

    series: Sequence[Sequence[Any]] = ()
    nodes: Sequence[Sequence[Any]] = ()
    faults: Sequence[Sequence[Any]] = ()
    configs: Sequence[Sequence[Any]] = ()
    now: int = 0
    """Time at which they were read (ms)."""

    @classmethod
    def read(cls, find: Find, now: int) -> KeptRows:
        """Read the rows that matter at a time (ms)."""
        level, time = SERIES.c.level, SERIES.c.time
        nodes = sa.select(NODES, SHAPES.c.amounts).join(SHAPES, NODES.c.shape == SHAPES.c.id)
        present = [sa.and_(level == one, time >= now - now % LEVELS[one]) for one in LEVELS]
        return cls(
            find(sa.select(SERIES).where(sa.or_(*present)).order_by(level.desc(), time).limit(MOST_SERIES)),
            find(nodes.where(NODES.c.left.is_(None))),
            find(sa.select(FAULTS).order_by(FAULTS.c.latest.desc()).limit(MOST_KEPT)),
            find(sa.select(CONFIGS.c.rm, CONFIGS.c.group, CONFIGS.c.checksum).order_by(CONFIGS.c.id)),
            now,
        )


class RecordedCore:
    """Part of a recording with series, nodes, configurations, audit and faults."""

    def __init__(self, context: RecordingContext, kept: KeptRows) -> None:
        self._context, self._names = context, context.names
        self._series = SampledSeries(context.names, kept.series, kept.now)
        self._nodes = RecordedNodes(
            context.names, context.shapes, lambda: context.new_id(NODES.name), kept.nodes
        )
        self._samples: deque[SampledCore] = deque(maxlen=MOST_SAMPLES)
        self._time: int | None = None
        """Time of the latest sample (ms)."""
        self._number = 0
        self._configs = {(rm, group): checksum for rm, group, checksum in kept.configs}
        self._applied: tuple[int, str] = (0, "")
        """Time of the latest change of a configuration over REST (ms), and its operator."""
        self._faults = {(plugin, text): row for row in kept.faults for _, plugin, text, *_ in [row]}
        self._seen: dict[tuple[int, str], int] = {}
        """Number of each failure in this process."""

    # -- in the event loop ----------------------------------------------------------------------------

    async def sample(self, core: CoreReader) -> None:
        """Sample the core."""
        self._samples.append(await core.read(take_sample))

    # -- in the thread of the recorder ----------------------------------------------------------------

    def observe(self, entries: Sequence[Entry], source: Source) -> None:
        """Take entries of the events of a partition."""
        self._series.observe(entries, source)
        self._nodes.observe(entries, source)

    def rows(self, now: int) -> Iterator[tuple[str, Row]]:
        """Yield the rows that have changed."""
        # Samples first: an entry that explains the configuration of a sample was there before the sample.
        samples = [self._samples.popleft() for _ in range(len(self._samples))]
        while self._context.audited:
            time, entry = self._context.audited.popleft()
            yield from self._audit_rows(time // MILLISECOND, entry)
        for sample in samples:
            # Samples that are late or missing do not make waits longer than they were.
            passed = MINUTE if self._time is None else min(max(0, sample.time - self._time), 2 * MINUTE)
            self._time = sample.time
            self._series.add(sample, passed)
            self._nodes.add(sample)
            self._add_waits(sample, passed)
            yield from self._fault_rows(sample)
            for config in sample.configs:
                yield from self._config_rows(sample.time, config)
        self._series.count(now)
        yield from ((SERIES.name, row) for row in self._series.rows())
        yield from ((NODES.name, row) for row in self._nodes.rows())

    def repeat(self) -> None:
        """Return all rows that may still change again."""
        self._series.repeat()
        self._nodes.repeat()
        self._configs.clear()

    def _add_waits(self, sample: SampledCore, passed: int) -> None:
        """Add the time since the previous sample to the waits of applications."""
        self._number += 1
        for wait in sample.waits:
            app = self._context.application(wait.rm, wait.partition, wait.app_id)
            if app is None:
                continue
            is_new = wait.cause not in app.waits
            waited = min(passed, max(0, sample.time - wait.since))
            app.waits[wait.cause] = app.waits.get(wait.cause, 0) + waited
            app.longest_wait = self._names.of(max(app.waits, key=app.waits.__getitem__))
            # Rows of thousands that wait are not written each minute; any change of one writes its row.
            if is_new or app.id % TURNS == self._number % TURNS:
                self._context.changed(app)

    def _audit_rows(self, time: int, entry: Mapping[str, Any]) -> Iterator[tuple[str, Row]]:
        of, who = self._names.of, entry.get("who", {})
        what, outcome = entry["what"], entry["outcome"]
        if what == APPLY:
            self._applied = time, who.get("name", "")
        if outcome != "begun":
            values = [_text(entry.get(name)) for name in ("before", "after")]
            row = (time, of(who.get("name", "")), of(who.get("role", "")), who.get("address", ""), of(what))
            row += (_text(entry.get("target", {})), of(outcome), *values, entry.get("reason"))
            yield AUDIT.name, (self._context.new_id(AUDIT.name), *row)

    def _config_rows(self, time: int, config: SampledConfig) -> Iterator[tuple[str, Row]]:
        """Yield the row of a configuration if another one was in use before."""
        of, own = self._names.of, config.group is None
        key = of(config.rm) if own else 0, of(config.group or "")
        if self._configs.get(key) == config.checksum:
            return
        self._configs[key] = config.checksum
        applied, operator = self._applied
        source, by = (CONFIG_MAP if self._context.config_source() else OWN, config.rm) if own else (FILE, "")
        if applied and 0 <= time - applied < SOON:
            source, by = REST, operator
        row = (time, *key, config.text, config.checksum, of(source), of(by))
        yield CONFIGS.name, (self._context.new_id(CONFIGS.name), *row)

    def _fault_rows(self, sample: SampledCore) -> Iterator[tuple[str, Row]]:
        for plugin, message, count in sample.failures:
            key = self._names.of(plugin), message
            more, self._seen[key] = count - self._seen.get(key, 0), count
            if more > 0:
                known = self._faults.get(key) or (self._context.new_id(FAULTS.name), *key, sample.time, 0, 0)
                row = self._faults[key] = (*known[:4], sample.time, known[5] + more)
                yield FAULTS.name, row


def _text(value: object) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))
