"""Runs of a comparison, simulated by any executor: in this process, other processes or other machines.

An order is a small value that can be sent to any place with access to the same files; the receiving process
reads the workload. Results are returned in the order of the orders, so that they do not depend on the degree
of parallelism.
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
from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.registry import Registry
from yunikorn.reporting.decision_log import DecisionLog
from yunikorn.reporting.full_report import FullReport, study
from yunikorn.reporting.result_files import ResultFiles
from yunikorn.simulation.engine import Progress
from yunikorn.simulation.explain_requests import parse_questions
from yunikorn.simulation.recorder import Recorder, Recorders
from yunikorn.simulation.workload import RESTART, Workload

INTERRUPTED = "interrupted"


class Source(Protocol):
    """Source of a workload; a value that can be sent to another process."""

    def read(self) -> Workload:
        """Read the workload."""
        ...


@attrs.frozen
class Order:
    """A simulation to run."""

    name: str
    """Name of the variant."""
    config: str
    """Text of queues.yaml."""
    source: Source
    seed: int | None = None
    until: int | None = None
    preempted: str = RESTART
    folder: Path | None = None
    """Folder for the output files of this run; None for no files."""
    questions: tuple[str, ...] = ()
    """Questions in the notation of `--explain`."""
    home: Path = Path()
    """Folder from which the configuration may load plugins."""


@attrs.frozen
class Played:
    """The outcome of an order: a result or an error."""

    name: str
    seed: int | None
    result: FullReport | None
    decisions: bytes = b""
    """Compressed decisions of a `DecisionLog`."""
    error: str = ""


class RunFailed(YunikornError):
    """A run of a comparison that failed or was interrupted; the message names the run and the reason."""


def play(order: Order) -> Played:
    """Simulate one order in the current process."""
    decision_log = DecisionLog()
    try:
        result = _play(order, decision_log)
    except YunikornError as error:
        # As text, because some exceptions with further attributes cannot be pickled.
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
                Registry.load(only=chosen_plugins(os.environ)).trusting(order.home),
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
            raise RunFailed(INTERRUPTED)  # files stay .part files
        files.write(result)
    return result


@contextmanager
def _calm() -> Iterator[Callable[[Progress], bool]]:
    """Return a watcher that ends a worker's run after Ctrl-C, which the parent process also receives."""
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
    """Initialise a worker: ignore Ctrl-C, which the parent handles, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    # Workers hold both ends of their order pipe, so they never see an end of file when the parent exits.
    parent.join()
    os._exit(1)


class HereAndNow(Executor):
    """An executor that runs submitted calls immediately in the current process."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        """Call the function, and return a completed future."""
        future: Future[object] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def play_all(
    orders: Iterable[Order], executor: Executor, on_progress: Callable[[int, int], None] | None = None
) -> list[Played]:
    """Simulate all orders; raises `RunFailed` that lists all failed runs.

    `on_progress` is called with the numbers of completed and of all runs.
    """
    wanted = list(orders)
    futures = [executor.submit(play, order) for order in wanted]
    for done, _ in enumerate(as_completed(futures), 1):
        if on_progress is not None:
            on_progress(done, len(wanted))
    found = [future.result() for future in futures]
    failed = [f"{one.name}: {one.error}" for one in found if one.error]
    if failed:
        raise RunFailed("\n".join(dict.fromkeys(failed)))
    return found
