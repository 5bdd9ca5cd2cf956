"""Executor of runs on an existing Dask cluster, whose workers have the same version of this project."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

from yunikorn import __version__
from yunikorn.errors import UsageError
from yunikorn.text import listed
from yunikorn_commands.extras import importing_extra

CONNECT = 10
"""Time (seconds) in which the scheduler of Dask has to answer."""


class DaskExecutor(Executor):
    """Executor on the workers of a Dask scheduler; a context manager. A worker that dies loses no run."""

    def __init__(self, address: str) -> None:
        """Connect; raises `UsageError` without an answer, and for missing workers and other versions."""
        with importing_extra("dask", "for --dask"):
            import distributed
        client: Any = distributed.Client
        self._address = address
        try:
            self._client: Any = client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(
                f"--dask {address}: no Dask scheduler answers there: {str(error) or type(error).__name__}"
            ) from error
        try:
            self._check_workers()
            self._executor: Any = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close()
            raise

    def _check_workers(self) -> None:
        if not self._client.scheduler_info(n_workers=-1)["workers"]:
            raise UsageError(f"--dask {self._address}: the scheduler has no workers: start some")
        wanted = versions()
        found = self._everywhere("has no module of this project: install the same version there", versions)
        others = sorted(f"{worker} has {' and '.join(one)}" for worker, one in found.items() if one != wanted)
        if others:
            raise UsageError(
                f"--dask {self._address}: all workers need {' and '.join(wanted)}: {listed(others)}"
            )

    def check_files(self, files: Iterable[Path]) -> None:
        """Raise `UsageError` if a worker does not have these files at the same paths."""
        for file in files:
            there = self._everywhere("cannot look for files", has_file, str(file.resolve()))
            missing = sorted(worker for worker, found in there.items() if not found)
            if missing:
                raise UsageError(
                    f"--dask {self._address}: {file} is not at {file.resolve()} on {listed(missing)}: put it "
                    "there, or on a file system that all workers share"
                )

    def _everywhere(self, problem: str, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """Call a function on all workers; raises `UsageError` where it fails."""
        found: dict[str, Any] = self._client.run(function, *args, on_error="return")
        failed = [worker for worker, one in found.items() if isinstance(one, Exception)]
        if failed:
            raise UsageError(f"--dask {self._address}: {listed(sorted(failed))} {problem}")
        return found

    def spread(self, value: Any) -> Any:
        """Send a value to the cluster once, and return what stands for it in calls.

        It is the result of a call, which is repeated if the workers that have it die; scattered data is not.
        """
        return self._client.submit(same, value, pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call; its future raises `UsageError` where the cluster has no result."""
        future: Future[Any] = Future()

        def pass_on(done: Future[Any]) -> None:
            try:
                future.set_result(done.result())
            except Exception as error:
                future.set_exception(self._explained(error))

        self._executor.submit(fn, *args, **kwargs).add_done_callback(pass_on)
        return future

    def stop(self) -> None:
        """Cancel all calls; those that have not returned raise `CancelledError`."""
        self._executor.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the connection."""
        self._client.close()

    def _explained(self, error: Exception) -> UsageError:
        from distributed.scheduler import KilledWorker

        said = f"the call failed: {type(error).__name__}: {error}"
        if isinstance(error, KilledWorker):
            said = "several workers died with the same run: if memory was short, give them more"
        elif isinstance(error, (OSError, CancelledError)):
            said = "the connection was lost"
        return UsageError(f"--dask {self._address}: {said}")


def versions() -> tuple[str, str]:
    """Return the versions that have to be the same everywhere."""
    return f"yunikorn {__version__}", f"Python {'.'.join(platform.python_version_tuple()[:2])}"


def same(value: Any) -> Any:
    """Return the value."""
    return value


def has_file(path: str) -> bool:
    """Return True if this machine has the file or folder."""
    return Path(path).exists()
