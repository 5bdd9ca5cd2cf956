"""Restarts in a cluster: the time from the start of a process to its first binding.

Every start finds the same running pods, and a few that wait. The process before it has ended in order, and
has given its lease back, as in a rollout. Python finds its compiled files, as those of an installation: the
first start, which makes them, does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import attrs
import click

from benchmarks.cluster.kinds import node_objects, running_pods
from benchmarks.cluster.observer import Observer
from benchmarks.cluster.run import FLAGS
from benchmarks.cluster.writers import create_all, delete_pods
from benchmarks.failure import BenchmarkFailure
from benchmarks.machine import yardstick
from benchmarks.quantiles import quantile
from benchmarks.service_process import cpu_seconds
from tests.kubernetes.cluster import Cluster, missing
from tests.kubernetes.cluster.cluster import API_SERVER, ETCD, KUBELETS, PARTS
from tests.kubernetes.cluster.objects import pod
from tests.kubernetes.scheduler_process import AT_WORK, SchedulerProcess, environment

WAITING = 10
"""Pods that wait at each start."""
LABELS = "group=waiting"
LONGEST = 120.0
"""Seconds until the pods are bound."""
COLUMNS = (
    "start",
    "first binding",
    "all bound",
    "cpu until then",
    "API server, etcd cpu",
    "yardstick",
    "load",
)


@attrs.frozen
class Restart:
    """Figures of one start."""

    number: int
    first_s: float
    """From the start of the process to the first binding, as a watch of another process reports it."""
    last_s: float
    """From the start of the process to the last binding of the pods that wait."""
    cpu_s: float
    """CPU seconds of the process until the last binding."""
    server_cpu_s: float
    """CPU seconds of API server and etcd in that time."""
    yardstick: float
    """Speed of this machine immediately before, in million iterations per second."""
    load: float
    """Processes that wanted to run in the minute before; more than the cores make all times longer."""

    def to_json(self) -> str:
        """Return one line of JSON."""
        fields = {name: round(value, 3) for name, value in attrs.asdict(self).items()}
        return json.dumps(fields)

    def cells(self) -> list[str]:
        """Return the cells of a row, in the order of `COLUMNS`."""
        seconds = (self.first_s, self.last_s, self.cpu_s, self.server_cpu_s)
        return [
            str(self.number),
            *(f"{one:.2f} s" for one in seconds),
            f"{self.yardstick:.1f}",
            f"{self.load:.1f}",
        ]


def run(nodes: int, pods: int, starts: int, echo: Callable[[str], object], *, as_json: bool = False) -> None:
    """Start a scheduler several times, and print the figures of each start, then the medians."""
    with Cluster(api_server_flags=FLAGS) as cluster, TemporaryDirectory() as compiled:
        fill(cluster, nodes, pods)
        measure(cluster, 0, compiled)
        results = []
        if not as_json:
            echo(_line(COLUMNS))
            echo("|" + "|".join("---" for _ in COLUMNS) + "|")
        for number in range(1, starts + 1):
            results.append(measure(cluster, number, compiled))
            echo(results[-1].to_json() if as_json else _line(results[-1].cells()))
    if not as_json:
        first, cpu = (quantile([getattr(one, name) for one in results], 0.5) for name in ("first_s", "cpu_s"))
        echo(f"median of {starts} starts with {nodes} nodes and {pods} running pods:")
        echo(f"first binding after {first:.2f} s, with {cpu:.2f} s of processor time")


def fill(cluster: Cluster, nodes: int, pods: int) -> None:
    """Create nodes and running pods, which no kubelet changes any more."""
    cluster.kill(KUBELETS)
    create_all(cluster.kubectl, node_objects(nodes))
    create_all(cluster.kubectl, running_pods(pods, nodes))


def measure(cluster: Cluster, number: int, compiled: str) -> Restart:
    """Measure one start, with compiled files in the folder `compiled`.

    Raises `BenchmarkFailure` if pods are not bound.
    """

    def servers() -> float:
        return sum(cpu_seconds(cluster.pid(name)) for name in (API_SERVER, ETCD))

    waiting = [
        pod(
            f"waiting-{number}-{one}", application=f"waiting-{number}", labels={"group": "waiting"}, cpu="10m"
        )
        for one in range(WAITING)
    ]
    speed, load = yardstick(), os.getloadavg()[0]
    with Observer(cluster) as observer:
        create_all(cluster.kubectl, waiting)
        observer.wait_until_created(WAITING, LONGEST)
        server, start = servers(), time.monotonic()
        with _scheduler(cluster, compiled) as process:
            observer.wait_until_bound(WAITING, LONGEST)
            cpu, server = cpu_seconds(process.pid), servers() - server
        times = sorted(observer.bound.values())
    delete_pods(cluster.kubectl, LABELS)
    return Restart(number, times[0] - start, times[-1] - start, cpu, server, speed, load)


@contextmanager
def _scheduler(cluster: Cluster, compiled: str) -> Iterator[SchedulerProcess]:
    """Run a scheduler as in a deployment, with a lease and with REST, and end it in order."""

    def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
        variables = {**environment(), "PYTHONPYCACHEPREFIX": compiled}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "yunikorn", *arguments]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=variables, text=True
        )

    rest = ("--rest", "127.0.0.1:0")
    with SchedulerProcess(cluster, *rest, leader_election=True, start=start) as process:
        yield process
        process.wait_for(AT_WORK)
        if status := process.stop():
            raise BenchmarkFailure(f"the scheduler has ended with {status}:\n{process.log}")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--nodes", type=click.IntRange(min=1), default=100, show_default=True, help="Nodes.")
@click.option("--pods", type=click.IntRange(min=1), default=1_000, show_default=True, help="Running pods.")
@click.option("--starts", type=click.IntRange(min=1), default=5, show_default=True, help="Starts to measure.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of the table.")
def main(nodes: int, pods: int, starts: int, as_json: bool) -> None:
    """Measure the time from the start of `yunikorn kubernetes` to its first binding.

    The programs of the cluster must have been built by `python -m tests.kubernetes.cluster build`.
    """
    if absent := missing(PARTS):
        raise click.ClickException(
            f"not built: {', '.join(absent)}; build them by: python -m tests.kubernetes.cluster build"
        )
    try:
        run(nodes, pods, starts, click.echo, as_json=as_json)
    except BenchmarkFailure as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
