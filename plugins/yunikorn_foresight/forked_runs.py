"""Runs in forked processes, which have what this process has, such as a restored scheduler.

A run uses up the scheduler that it continues, so that each one needs its own: that of its process.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from yunikorn.errors import YunikornError

Found = TypeVar("Found")


class ForkedRunError(YunikornError):
    """A run that failed in its process, with the message of its error."""


def run_forked(runs: Sequence[Callable[[], Found]]) -> list[Found]:
    """Return what each function returns, which runs in a process of its own beside the others.

    Raises `ForkedRunError` for the first one that fails; then the others are ended.
    """
    context = multiprocessing.get_context("fork")
    processes: list[Any] = []
    receivers: list[Connection] = []
    try:
        for run in runs:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_answer, args=(run, sender), daemon=True)
            process.start()
            sender.close()
            processes.append(process)
            receivers.append(receiver)
        return [_received(receiver) for receiver in receivers]
    finally:
        for process, receiver in zip(processes, receivers, strict=True):
            receiver.close()
            process.terminate()
            process.join()


def _answer(run: Callable[[], object], sender: Connection) -> None:
    gc.freeze()  # what the parent has is no garbage: collections need not look through it
    try:
        sender.send((True, run()))
    except YunikornError as error:
        sender.send((False, str(error)))
    sender.close()


def _received(receiver: Connection) -> Any:
    try:
        is_fine, found = receiver.recv()
    except EOFError:
        raise ForkedRunError("a process that simulates ended before its result") from None
    if not is_fine:
        raise ForkedRunError(found)
    return found
