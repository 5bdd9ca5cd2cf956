"""Frames around pieces of YAML in the documentation, which turn each piece into a valid document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from yunikorn.config.load import check_config
from yunikorn.errors import YunikornError
from yunikorn.framework.registry import Registry
from yunikorn_lab.simulation.reader import read_workload

Tree = dict[str, Any]
WORKLOAD_KEYS = {"nodes", "applications", "generate", "failures", "events"}
NODES = [{"name": "worker", "count": 4, "resources": {"vcore": 8, "memory": "32Gi"}}]


def _queue(piece: Tree) -> Tree:
    return {"partitions": [{"queues": [{"name": "root", "queues": [{"name": "batch", **piece}]}]}]}


def _partition(piece: Tree) -> Tree:
    return {"partitions": [{"queues": [{"name": "root", "submitacl": "*"}], **piece}]}


def _rule(piece: Tree) -> Tree:
    return _partition({"placementrules": [{"name": "provided", **piece}]})


TASK = {"resources": {"vcore": 1}, "runtime": 60}


def _workload(piece: Tree) -> Tree:
    return {"nodes": NODES, "applications": [{"id": "app", "tasks": [TASK]}], **piece}


def _application(piece: Tree) -> Tree:
    return _workload({"applications": [{"id": "app", "tasks": [TASK], **piece}]})


CONFIGURATIONS = {"queue": _queue, "partition": _partition, "rule": _rule}
WORKLOADS = {"workload": _workload, "application": _application}


def is_configuration(text: str, part_of: str) -> bool:
    """Return True for a configuration or a piece of one; raises `ValueError` if it is no workload either."""
    if part_of:
        if part_of not in {**CONFIGURATIONS, **WORKLOADS}:
            raise ValueError(f"part of what? known: {', '.join({**CONFIGURATIONS, **WORKLOADS})}")
        return part_of in CONFIGURATIONS
    keys = set(yaml.safe_load(text))
    if "partitions" in keys:
        return True
    if not keys & WORKLOAD_KEYS:
        raise ValueError("neither a configuration nor a workload: say what it is a part of")
    return False


def whole(text: str, part_of: str) -> str:
    """Return the text, placed into the configuration or workload that `part_of` names."""
    around = {**CONFIGURATIONS, **WORKLOADS}.get(part_of)
    return text if around is None else yaml.safe_dump(around(yaml.safe_load(text)))


def faults_of_configuration(text: str, registry: Registry) -> list[str]:
    """Return errors and warnings of a configuration."""
    outcome = check_config(text, registry)
    return [str(problem) for problem in (*outcome.problems, *outcome.warnings)]


def faults_of_workload(text: str, folder: Path) -> list[str]:
    """Return the errors of a workload, read as a file of this folder."""
    file = folder / "shown.yaml"
    file.write_text(text, "utf-8")
    try:
        read_workload(file)
    except YunikornError as error:
        return [str(error)]
    finally:
        file.unlink()
    return []
