"""Plugins and device allocator of kube-scheduler as a reference: `Reference` asks them.

The program is written in Go, links the plugins of the version of Kubernetes in `tests/kubernetes/go.mod`, and
is built with the test cluster. `README.md` describes its lines.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tests.kubernetes.cluster.kubectl import Obj
from tests.kubernetes.cluster.programs import PROGRAMS

PROGRAM = "reference"


class ReferenceError(Exception):
    """The reference cannot answer, because a plugin has failed or an object cannot be read."""


@dataclass(frozen=True)
class Refusal:
    """The answer of a plugin that does not accept a node."""

    plugin: str
    """Name as in kube-scheduler's configuration, such as `NodePorts`."""
    message: str
    stage: str
    """`PreFilter` if the plugin refuses the pod on all nodes, else `Filter`."""
    resolvable: bool
    """True if preemption on the node might help."""


Verdicts = Mapping[str, Sequence[Refusal]]
"""Refusals by node, the deciding one first; empty for a feasible node."""
Points = Mapping[str, Mapping[str, int]]
"""Points by node and scoring plugin, with the weights applied."""


class Reference:
    """A running reference; a context manager that starts and ends its process."""

    def __init__(self) -> None:
        """Create it; the program must have been built."""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reference:
        self._process = subprocess.Popen(
            [str(PROGRAMS[PROGRAM].path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        with self._process as process:
            # The program ends with its input.
            assert process.stdin is not None
            process.stdin.close()

    def ask(
        self, pod: Obj, cluster: Mapping[str, Sequence[Obj]] | None = None, *, phase: str = "allocate"
    ) -> Verdicts:
        """Return the verdicts of all plugins about a pod on each node.

        `cluster` has lists of objects by the keys of README.md (`nodes`, `pods`, `pvcs` and others), or is
        None for that of the previous call. `phase` is `allocate`, or `reserve` for the plugins that are asked
        about a reservation.

        Raise `ReferenceError` if a plugin fails otherwise than by refusing a node.
        """
        answer = self._answer({**(cluster or {}), "pod": pod, "phase": phase})
        nodes = answer.get("nodes") or {}
        return {node: [Refusal(**refusal) for refusal in refusals] for node, refusals in nodes.items()}

    def devices(self, asked: Obj) -> Mapping[str, Obj]:
        """Return the answer of kube-scheduler's device allocator by node, as README.md describes both.

        Raise `ReferenceError` if the allocator cannot be made.
        """
        found: Mapping[str, Obj] = self._answer({"devices": asked})["devices"]
        return found

    def selectors(self, expressions: Sequence[str], devices: Sequence[Obj]) -> Sequence[Obj]:
        """Return the answers of each selector on each device, as README.md describes them."""
        found: Sequence[Obj] = self._answer({"selectors": {"expressions": expressions, "devices": devices}})[
            "selectors"
        ]
        return found

    def score(self, pod: Obj, cluster: Mapping[str, Sequence[Obj]] | None = None) -> Points:
        """Return the weighted points of the scoring plugins for a pod, for each node that is compared.

        These are the nodes that node selector, required node affinity and tolerations admit. `cluster` and
        errors are those of `ask`.
        """
        points: Points = self._answer({**(cluster or {}), "pod": pod, "phase": "score"}).get("scores") or {}
        return points

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ReferenceError("the reference has ended, see its output")
        answer: dict[str, Any] = json.loads(line)
        if problem := answer.get("error"):
            raise ReferenceError(problem)
        return answer
