"""Runs of a comparison, played by whatever executor there is: other processes, or other machines.

An order is a small value that can be sent anywhere where the same files are; whoever plays it reads the
workload itself. Results come back in the order of the orders, whatever ended first, so nothing depends on how
many are played at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import attrs

from yunikorn.errors import YunikornError
from yunikorn.registry import Registry
from yunikorn.reporting.decision_log import DecisionLog
from yunikorn.reporting.full_report import FullReport, study
from yunikorn.reporting.result_files import ResultFiles
from yunikorn.simulation.engine import Progress
from yunikorn.simulation.explain_requests import parse_questions
from yunikorn.simulation.recorder import Recorder, Recorders
from yunikorn.simulation.workload import RESTART, Workload

INTERRUPTED = "interrupted"


class Source(Protocol):
    """Where a workload comes from; a value that can be sent to another process."""

    def read(self) -> Workload:
        """The workload."""
        ...


@attrs.frozen
class Order:
    """One simulation to be played."""

    name: str
    """The variant's."""
    config: str
    """The text of queues.yaml."""
    source: Source
    seed: int | None = None
    until: int | None = None
    preempted: str = RESTART
    folder: Path | None = None
    """Where the files of this run go."""
    questions: tuple[str, ...] = ()
    """As `--explain` takes them."""


@attrs.frozen
class Played:
    """What came of an order: a result, or why there is none."""

    name: str
    seed: int | None
    result: FullReport | None
    decisions: bytes = b""
    """A packed `DecisionLog`."""
    error: str = ""


class RunFailed(YunikornError):
    """A run of a comparison could not be played to its end; the text says which and why."""


def play(order: Order) -> Played:
    """Play one order, here and now."""
    decision_log = DecisionLog()
    try:
        result = _play(order, decision_log)
    except YunikornError as error:
        # As text: what carries more than that does not always survive the way between processes.
        return Played(order.name, order.seed, None, error=str(error))
    return Played(order.name, order.seed, result, decision_log.pack())


def _play(order: Order, decision_log: DecisionLog) -> FullReport:
    workload = order.source.read()
    questions = parse_questions(order.questions, workload, order.until)

    def run(recorder: Recorder, files: ResultFiles | None) -> FullReport:
        with _calm() as going:
            return study(
                order.config,
                workload,
                Registry.load(),
                until=order.until,
                recorder=recorder,
                rows=files,
                watch=going,
                preempted=order.preempted,
                questions=questions,
            )

    if order.folder is None:
        return run(decision_log, None)
    with ResultFiles(order.folder, pictures=False, decisions=False) as files:
        result = run(Recorders(files, decision_log), files)
        if result.report.outcome == INTERRUPTED:
            raise RunFailed(INTERRUPTED)  # Before the files get their names: they are parts.
        files.write(result)
    return result


@contextmanager
def _calm() -> Iterator[Callable[[Progress], bool]]:
    """A watcher that ends the run after Ctrl-C, which the process that waits for it hears, too."""
    pressed: list[bool] = []
    if threading.current_thread() is not threading.main_thread() or not _is_worker():
        yield lambda progress: True
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(True))
    try:
        yield lambda progress: not pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _is_worker() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def begin_worker() -> None:
    """For processes that wait for orders: whoever waits for them decides when it is over, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    # Workers hold both ends of the pipe that brings orders: that it ends they would never hear.
    parent.join()
    os._exit(1)


class HereAndNow(Executor):
    """An executor without any other process: what is submitted is done at once."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        """Call it."""
        future: Future[object] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def play_all(
    orders: Iterable[Order], executor: Executor, told: Callable[[int, int], None] | None = None
) -> list[Played]:
    """Play all orders; raises `RunFailed` for the first that cannot be played.

    `told` hears how many of how many are done.
    """
    wanted = list(orders)
    futures = [executor.submit(play, order) for order in wanted]
    for done, _ in enumerate(as_completed(futures), 1):
        if told is not None:
            told(done, len(wanted))
    found = [future.result() for future in futures]
    failed = [f"{one.name}: {one.error}" for one in found if one.error]
    if failed:
        raise RunFailed("\n".join(dict.fromkeys(failed)))
    return found
