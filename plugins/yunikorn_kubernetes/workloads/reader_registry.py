"""The workload readers of a process: the default ones, and those of installed packages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import metadata

from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED
from yunikorn.framework.installed import chosen_plugins
from yunikorn_kubernetes.workloads.job_readers import JobReader, JobSetReader
from yunikorn_kubernetes.workloads.serving_readers import LeaderWorkerSetReader, RayClusterReader
from yunikorn_kubernetes.workloads.training_readers import (
    JAXJobReader,
    MPIJobReader,
    PaddleJobReader,
    PyTorchJobReader,
    TFJobReader,
    XGBoostJobReader,
)
from yunikorn_kubernetes.workloads.workload_reader import WorkloadReader, WorkloadReaders

_log = logging.getLogger("yunikorn.kubernetes.workloads")

ENTRY_POINTS = "yunikorn.workload_readers"
"""Group of entry points by which packages offer readers."""
DEFAULT_READERS: tuple[type[WorkloadReader], ...] = (
    JobReader,
    JobSetReader,
    LeaderWorkerSetReader,
    RayClusterReader,
    PyTorchJobReader,
    TFJobReader,
    MPIJobReader,
    XGBoostJobReader,
    PaddleJobReader,
    JAXJobReader,
)


def load_readers(environment: Mapping[str, str]) -> WorkloadReaders:
    """Return the default readers and those of installed packages that `YUNIKORN_PLUGINS` does not leave out.

    A reader that cannot be used is logged and left out: its kind is not recognised then.
    """
    only = chosen_plugins(environment)
    found: list[WorkloadReader] = [reader() for reader in DEFAULT_READERS]
    for entry in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda one: (one.name, one.value)):
        source = entry.dist.name if entry.dist else ""
        if only is not None and entry.name not in only and source not in only:
            continue
        reader = made_reader(entry.load, f"workload reader {entry.name} of {source or entry.value}")
        if reader is not None:
            found.append(reader)
    return WorkloadReaders(found)


def made_reader(load: Callable[[], object], label: str) -> WorkloadReader | None:
    """Return a reader of the class that `load` returns; log why that is not possible, and return None."""
    try:
        cls = load()
        if not (isinstance(cls, type) and issubclass(cls, WorkloadReader)):
            raise TypeError("it is no subclass of WorkloadReader")
        for name in ("group", "kind", "plural"):
            if not isinstance(getattr(cls, name, None), str):
                raise TypeError(f"its attribute {name} is no text")
        return cls()
    except CONTAINED as error:
        _log.error("%s is left out: %s", label, describe_error(error))
        return None
