"""Run of a soak test."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.service_process import ServiceProcess, resident_megabytes
from benchmarks.soak.cuts import Cable
from benchmarks.soak.manager import Manager
from yunikorn_service.client import BY_SUBJECT, ONE_STREAM

CONFIG = """\
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: a}]}
"""
BETWEEN_AUDITS = 5.0
"""Seconds between audits."""
GROWTH = 1.2
"""Maximum ratio of the average memory in the last third of a long run to that in the middle third."""
SLACK = 10.0
"""Insignificant growth in megabytes."""
LONG = 240.0
"""Minimum duration in seconds of a run whose memory is checked."""


@attrs.define
class Found:
    """Results of a soak test."""

    seconds: float = 0.0
    cuts: int = 0
    kills: int = 0
    stops: int = 0
    restarts: int = 0
    stumbles: int = 0
    updates: int = 0
    placed: int = 0
    sessions: int = 0
    audits: int = 0
    service_megabytes: list[float] = attrs.Factory(list)
    """Resident memory of the service after each audit."""
    own_megabytes: list[float] = attrs.Factory(list)

    def line(self) -> str:
        """Return the results as one line."""
        return (
            f"{self.seconds:5.0f} s: {self.updates:,} updates, {self.placed:,} placed,"
            f" {self.sessions} sessions;"
            f" {self.cuts} cuts, {self.kills} kills, {self.stops} stops, {self.restarts} restarts,"
            f" {self.stumbles} stumbles; {self.audits} audits agree;"
            f" service {self.service_megabytes[-1]:.0f} MB, resource managers {self.own_megabytes[-1]:.0f} MB"
        )


class Soak:
    """Soak test of a service behind a proxy, with two resource managers, one per layout."""

    def __init__(self, seconds: float, seed: int, say: Callable[[str], None]) -> None:
        self._seconds, self._say = seconds, say
        self._dice = random.Random(seed)
        self._managers = [
            Manager("one-stream", ONE_STREAM, random.Random(f"{seed}-one")),
            Manager("by-subject", BY_SUBJECT, random.Random(f"{seed}-by")),
        ]
        self.found = Found()

    async def run(self) -> Found:
        """Run the test. Raises `BenchmarkFailure` for lost or duplicate allocations and growing memory."""
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "queues.yaml"
            config.write_text(CONFIG, encoding="utf-8")
            with ServiceProcess(config, "--log", "error") as service:
                cable = Cable(lambda: service.address)
                await cable.lay()
                try:
                    await self._soak(service, cable)
                finally:
                    await cable.close()
        self._check_memory()
        return self.found

    async def _soak(self, service: ServiceProcess, cable: Cable) -> None:
        for manager in self._managers:
            await manager.connect(cable.address)
        begun = time.monotonic()
        audited = begun
        while (now := time.monotonic()) - begun < self._seconds:
            for manager in self._managers:
                await manager.step()
            await asyncio.sleep(self._dice.choice([0, 0, 0.002, 0.01]))
            # The service is not restarted in the last two thirds, in which its memory is measured.
            await self._trouble(service, cable, fatal=now - begun < self._seconds / 3)
            if service.ended:
                raise BenchmarkFailure("the service has ended by itself")
            if now - audited >= min(BETWEEN_AUDITS, self._seconds / 4):
                await self._audit(service, begun)
                audited = time.monotonic()
        await self._audit(service, begun)
        for manager in self._managers:
            await manager.shut_down()

    async def _trouble(self, service: ServiceProcess, cable: Cable, *, fatal: bool) -> None:
        found, chance = self.found, self._dice.random()
        if chance < 0.004:
            cable.cut()
            found.cuts += 1
        elif chance < 0.007:
            await self._dice.choice(self._managers).restart(cable.address)
            found.restarts += 1
        elif chance < 0.009:
            self._dice.choice(self._managers).stumble()
            found.stumbles += 1
        elif fatal and chance < 0.011:
            await self._end_service(service)

    async def _end_service(self, service: ServiceProcess) -> None:
        if self._dice.random() < 0.7:
            service.kill()
            self.found.kills += 1
        else:
            await asyncio.to_thread(service.stop)
            self.found.stops += 1
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.to_thread(service.start)

    async def _audit(self, service: ServiceProcess, begun: float) -> None:
        for manager in self._managers:
            await manager.audit()
        found, counts = self.found, [manager.counts for manager in self._managers]
        found.seconds = time.monotonic() - begun
        found.updates = sum(count.updates for count in counts)
        found.placed = sum(count.placed for count in counts)
        found.sessions = sum(count.sessions for count in counts)
        found.audits = sum(count.checks for count in counts)
        found.service_megabytes.append(service.megabytes())
        found.own_megabytes.append(resident_megabytes())
        self._say(found.line())

    def _check_memory(self) -> None:
        if self._seconds < LONG:
            return
        for whose, held in (
            ("the service", self.found.service_megabytes),
            ("the resource managers' process", self.found.own_megabytes),
        ):
            third = len(held) // 3
            middle, last = held[third : 2 * third], held[2 * third :]
            before, after = sum(middle) / len(middle), sum(last) / len(last)
            if after > GROWTH * before + SLACK:
                raise BenchmarkFailure(f"{whose} grows: {before:.0f} MB, then {after:.0f} MB")
