"""Every abuse in every method of plugins, in one core as a service composes it.

The core has a thread of its own, and so have event sinks and the policies that workers call. A resource
manager of each case registers, has a cluster, and shuts down; the core then serves the next case.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.kit import plugin_with
from tests.example_counts import examples
from tests.plugins.abuses import ABUSES
from tests.plugins.test_abuses import (
    CASES,
    KINDS_OF_COMMON,
    PLUGIN,
    REGISTRY,
    SHARED,
    UNCALLED,
    Calls,
    abuses_of,
    play,
    plugin_class,
    uncalled_members,
)
from yunikorn.clock import Clock, ManualClock
from yunikorn.containment import describe_error
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import ADMISSION, PREDICATE, RESOLVER, SUBMIT, PluginKind
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_rest.event_store import EventStore
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_service.measurements import Measurements
from yunikorn_service.runtime.policy_workers import PolicyWorkers
from yunikorn_service.runtime.threaded import ThreadedScheduler


class ServedScheduler:
    """A scheduler whose methods run in the thread of a served core; each call waits for all answers."""

    def __init__(self) -> None:
        self.sinks, self.workers = BufferedSinks(), PolicyWorkers()
        self.clock = ManualClock()
        """Clock that the core follows."""
        self.core = ThreadedScheduler(self._make, self.clock, workers=self.workers)

    def _make(self, clock: Clock) -> Scheduler:
        return Scheduler(
            REGISTRY,
            clock,
            Timeouts(),
            buffer_sinks=self.sinks,
            workers=self.workers,
            measurements=Measurements(lambda: 0),
            event_receiver=EventStore("served"),
        )

    def stop(self, rm_id: str) -> None:
        """Shut a resource manager down, and wait for the threads of its sinks."""
        self._call("stop", rm_id)
        self.sinks.finish()

    def __getattr__(self, name: str) -> Any:
        if name == "failures":
            return self.core.call(lambda core: core.failures)
        return functools.partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        def operate(core: Scheduler) -> Any:
            found = getattr(core, name)(*arguments, **named)
            return list(found) if isinstance(found, Iterator) else found

        answer = self.core.call(operate)
        while self.core.call(_waits_for_workers):
            pass
        return answer


def _waits_for_workers(core: Scheduler) -> bool:
    try:
        found = core.partition("rm")
    except UsageError:
        return False  # not registered
    return found is not None and found.questions is not None and len(found.questions) > 0


@pytest.fixture(scope="module")
def served() -> Iterator[ServedScheduler]:
    before = set(threading.enumerate())
    found = ServedScheduler()
    with found.core:
        yield found
        assert found.core.alive
        assert found.core.failure is None
    begun = set(threading.enumerate()) - before
    for thread in begun:
        if thread.name == "yunikorn-policy":
            thread.join(PATIENCE)
    left = {thread.name for thread in begun if thread.is_alive()}
    assert not {name for name in left if name.startswith("yunikorn-")}


PATIENCE = 60.0
"""Seconds that a wait takes at most."""
HAVING_THREADS = (RESOLVER, SUBMIT, ADMISSION)
"""Kinds whose policies workers call."""
KINDS_EACH = examples(1)
"""Number of kinds in which each abuse of a shared member is tried; `test_abuses` tries more of them."""


def test_every_abuse_of_every_member_is_tried() -> None:
    for member, number in SHARED.items():
        for each in (KINDS_EACH, KINDS_OF_COMMON):
            tried = Counter(
                abuse for kind, name in CASES if name == member for abuse in abuses_of(kind, name, each)
            )
            assert set(tried) == set(ABUSES)
            assert set(tried.values()) == {min(number, each)}


@pytest.mark.parametrize("kind", [*HAVING_THREADS, PREDICATE], ids=lambda kind: kind.id)
def test_members_that_threads_read_are_called(kind: PluginKind, served: ServedScheduler) -> None:
    assert uncalled_members(kind, served) <= UNCALLED.keys() - {"blocking", "calls_at_once"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "member"), CASES, ids=lambda one: getattr(one, "id", one))
def test_abuses_are_contained_named_and_counted_in_a_served_core(
    kind: PluginKind, member: str, served: ServedScheduler
) -> None:
    for abuse in abuses_of(kind, member, KINDS_EACH):
        body, calls = ABUSES[abuse], Calls()
        plugin = plugin_with(
            **{kind.hook.removeprefix("yunikorn_"): [plugin_class(kind, member, body, calls)]}
        )
        if not REGISTRY.register(plugin, *PLUGIN):
            assert "test-plugin (yunikorn-test 1.0)" in str(REGISTRY.broken[-1]), "left out, and named"
            continue
        escaped = ""
        try:
            play(kind, member, abuse, calls, served)
        except AssertionError as error:
            escaped = f"{abuse}: {error}"
        except BaseException as error:
            # pytest would print values of the plugin, and fail at that.
            escaped = f"{abuse}: {describe_error(error)} was not contained"
        finally:
            REGISTRY.unregister("test-plugin")
        assert not escaped
        assert served.core.alive, abuse
