"""Runs of a comparison, simulated by any executor: in this process, other processes or other machines.

An order is a small value that can be sent to any place with access to the same files; the receiving process
reads the workload. Results are returned in the order of the orders, so that they do not depend on the degree
of parallelism.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs

from yunikorn.errors import UsageError, YunikornError
from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.plugin_code import NO_CODE, CodeSource
from yunikorn.framework.registry import Registry
from yunikorn_commands.interrupts import Interrupts
from yunikorn_lab.reporting.decision_log import DecisionLog
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.order_reason import OrderQuestion, find_order_reason
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.reporting.result_files import ResultFiles
from yunikorn_lab.reporting.saved_run import InputPlaces, read_decisions, read_result
from yunikorn_lab.simulation.engine import Progress
from yunikorn_lab.simulation.explain_requests import parse_questions
from yunikorn_lab.simulation.recorder import Recorder, Recorders
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import RESTART, Workload

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
    code: CodeSource = NO_CODE
    """Plugins that the configuration may load."""
    provenance: Provenance | None = None
    order_question: OrderQuestion | None = None
    """Question that the run is repeated for, in place of a result."""
    targets: tuple[tuple[str, int], ...] = ()
    """Queues and their wait targets (ns)."""
    force: bool = False
    """Write to the folder even if it has files of others."""
    places: InputPlaces | None = None
    """Places of the inputs, which the folder names."""


@attrs.frozen
class Played:
    """The outcome of an order: a result or an error."""

    name: str
    seed: int | None
    result: FullReport | None
    decisions: bytes = b""
    """Compressed decisions of a `DecisionLog`."""
    error: str = ""
    reason: str = ""
    """Answer to the `order_question`."""

    @property
    def is_interrupted(self) -> bool:
        """True if the run was ended before its end."""
        return self.error == INTERRUPTED


class RunFailed(YunikornError):
    """A run of a comparison that failed or was interrupted; the message names the run and the reason."""


class NothingFinished(RunFailed):
    """A comparison that was interrupted before its first run had ended."""


def play(order: Order, watch: Callable[[Progress], bool] | None = None) -> Played:
    """Simulate one order in the current process, until `watch` or a signal ends it."""
    decision_log = DecisionLog()
    try:
        if order.order_question is not None:
            return Played(order.name, order.seed, None, reason=_reason(order, order.order_question))
        result, decisions = _play(order, decision_log, watch or _watch)
    except YunikornError as error:
        # As text, because some exceptions with further attributes cannot be pickled.
        return Played(order.name, order.seed, None, error=str(error))
    return Played(order.name, order.seed, result, decisions)


def _reason(order: Order, question: OrderQuestion) -> str:
    registry = Registry.load(only=chosen_plugins(os.environ)).permitting(order.code)
    workload = order.source.read()
    run = partial(simulate, order.config, workload, registry, preempted=order.preempted)
    return find_order_reason(question, run, watch=_watch)


def finished(order: Order) -> Played | None:
    """Return the result that the folder of an order has from an equal run; None if there is none."""
    if order.folder is None or order.provenance is None:
        return None
    try:
        result = read_result(order.folder)
        if result.provenance != order.provenance or result.report.outcome == INTERRUPTED:
            return None
        return Played(order.name, order.seed, result, read_decisions(order.folder))
    except UsageError:
        return None  # the run is repeated, which replaces the files


def _play(
    order: Order, decision_log: DecisionLog, watch: Callable[[Progress], bool]
) -> tuple[FullReport, bytes]:
    workload = order.source.read()
    questions = parse_questions(order.questions, workload, order.until)

    def run(recorder: Recorder, files: ResultFiles | None) -> FullReport:
        result = study(
            order.config,
            workload,
            Registry.load(only=chosen_plugins(os.environ)).permitting(order.code),
            until=order.until,
            recorder=recorder,
            rows=files,
            watch=watch,
            preempted=order.preempted,
            questions=questions,
            targets=dict(order.targets),
        )
        if result.report.outcome == INTERRUPTED:
            raise RunFailed(INTERRUPTED)  # files stay .part files
        return attrs.evolve(result, provenance=order.provenance)

    if order.folder is None:
        return run(decision_log, None), decision_log.pack()
    with ResultFiles(
        order.folder, pictures=False, decisions=False, force=order.force, places=order.places
    ) as files:
        result = run(Recorders(files, decision_log), files)
        decisions = decision_log.pack()
        files.write_log(decisions)
        files.write(result)
    return result, decisions


def _watch(progress: Progress) -> bool:
    """Return False after a signal to this process; workers are ended by their parent."""
    handler = signal.getsignal(signal.SIGINT)
    return not (isinstance(handler, Interrupts) and handler.number)


def play_all(
    orders: Iterable[Order],
    executor: Executor,
    on_progress: Callable[[int, int], None] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[Played]:
    """Simulate all orders; raises `RunFailed` that lists all failed runs.

    `on_progress` is called with the numbers of completed and of all runs. After `is_stopped` returns True,
    the runs that have not ended have the error `INTERRUPTED`.
    """
    wanted = list(orders)
    futures: list[Future[Played]] = []
    for order in wanted:
        if is_stopped():
            break
        futures.append(executor.submit(play, order))
    for done, _ in enumerate(as_completed(futures), 1):
        if on_progress is not None:
            on_progress(done, len(wanted))
    found = [_outcome(order, future, is_stopped) for order, future in zip(wanted, futures, strict=False)]
    found += [_interrupted(order) for order in wanted[len(found) :]]
    failed = [
        f"{one.name}: {one.error}" for one in found if one.error and not (one.is_interrupted and is_stopped())
    ]
    if failed:
        raise RunFailed("\n".join(dict.fromkeys(failed)))
    return found


def _outcome(order: Order, future: Future[Played], is_stopped: Callable[[], bool]) -> Played:
    try:
        return future.result()
    except (BrokenExecutor, CancelledError):
        if not is_stopped():
            raise
        return _interrupted(order)


def _interrupted(order: Order) -> Played:
    return Played(order.name, order.seed, None, error=INTERRUPTED)
