"""One run of the benchmark: a cluster with nodes, then every kind of pods with every scheduler."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable

import attrs

from benchmarks.cluster.contenders import Contender, prepare
from benchmarks.cluster.kinds import Kind, node_objects, running_pods
from benchmarks.cluster.observer import Observer
from benchmarks.cluster.writers import create_all, create_at_rate, delete_pods
from benchmarks.failure import BenchmarkFailure
from benchmarks.machine import peak_megabytes
from benchmarks.quantiles import quantile
from benchmarks.service_process import cpu_seconds
from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.cluster import API_SERVER, ETCD, KUBELETS

FLAGS = ("--disable-admission-plugins=TaintNodesByCondition",)
"""Flags of the API server: new nodes have no taint that the controller manager would have to remove."""
FEW = 60.0
"""Seconds until the last pods of a steady rate are bound."""
COLUMNS = (
    "pods", "scheduler", "pods/s", "start to last bound", "cpu ms/pod", "API server, etcd cpu ms/pod",
    "latency p50", "p99", "cpu ms/pod at that rate", "peak MB",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class Plan:
    """Size of a run; see the options of the command."""

    kinds: tuple[Kind, ...]
    contenders: tuple[Contender, ...]
    nodes: int
    pods: int
    rate: float
    seconds: float
    running: int
    kubelets: bool
    limit: float

    @property
    def late(self) -> int:
        """Number of pods that arrive at a steady rate."""
        return int(self.rate * self.seconds)


@attrs.frozen
class Result:
    """Figures of one scheduler with one kind of pods."""

    kind: str
    scheduler: str
    pods_per_s: float
    """From the first pod bound to the last."""
    start_to_last_s: float
    """From the start of the process to the last pod of the backlog bound."""
    cpu_s: float
    """CPU seconds of the scheduler from its start to the last pod of the backlog bound."""
    server_cpu_s: float
    """CPU seconds of API server and etcd in that time."""
    latency_p50_s: float
    """From creation to binding at the steady rate."""
    latency_p99_s: float
    steady_cpu_s: float
    """CPU seconds of the scheduler at the steady rate."""
    peak_mb: float
    pods: int
    late: int

    def to_json(self) -> str:
        """Return one line of JSON."""
        fields = attrs.asdict(self)
        return json.dumps({name: _rounded(value) for name, value in fields.items()})

    def cells(self) -> list[str]:
        """Return the cells of a row, in the order of `COLUMNS`."""
        steady = ["", "", ""]
        if self.late:
            steady = [_milliseconds(self.latency_p50_s), _milliseconds(self.latency_p99_s)]
            steady.append(f"{1e3 * self.steady_cpu_s / self.late:.2f}")
        return [
            self.kind,
            self.scheduler,
            f"{self.pods_per_s:,.0f}",
            f"{self.start_to_last_s:.1f} s",
            f"{1e3 * self.cpu_s / self.pods:.2f}",
            f"{1e3 * self.server_cpu_s / self.pods:.2f}",
            *steady,
            f"{self.peak_mb:.0f}",
        ]


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def run(plan: Plan, echo: Callable[[str], object], *, as_json: bool = False) -> None:
    """Run a plan and print its results. Raises `BenchmarkFailure` at the end if a part has failed."""
    failures = 0
    if not as_json:
        echo(_line(COLUMNS))
        echo("|" + "|".join("---" for _ in COLUMNS) + "|")
    with Cluster(api_server_flags=FLAGS) as cluster:
        _fill(cluster, plan)
        for kind in plan.kinds:
            for contender in plan.contenders:
                try:
                    result = measure(cluster, plan, kind, contender)
                except BenchmarkFailure as failure:
                    failures += 1
                    echo(f"{kind.name} pods with {contender.name} failed: {failure}")
                else:
                    echo(result.to_json() if as_json else _line(result.cells()))
                delete_pods(cluster.kubectl, "group")
    if failures:
        raise BenchmarkFailure(f"{failures} of {len(plan.kinds) * len(plan.contenders)} parts failed")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fill(cluster: Cluster, plan: Plan) -> None:
    """Create nodes, running pods and the configuration."""
    cluster.kill(KUBELETS)
    create_all(cluster.kubectl, node_objects(plan.nodes))
    create_all(cluster.kubectl, running_pods(plan.running, plan.nodes))
    prepare(cluster)
    if plan.kubelets:
        cluster.start_part(KUBELETS)


def measure(cluster: Cluster, plan: Plan, kind: Kind, contender: Contender) -> Result:
    """Measure one scheduler with one kind of pods. Raises `BenchmarkFailure` for a wrong decision."""

    def servers() -> float:
        return sum(cpu_seconds(cluster.pid(name)) for name in (API_SERVER, ETCD))

    name = contender.scheduler_name
    with Observer(cluster) as observer:
        create_all(cluster.kubectl, kind.pods(name, 0, plan.pods))
        observer.wait_until_created(plan.pods, FEW)
        server, start = servers(), time.monotonic()
        with contender.started(cluster) as pid:
            _wait_until_bound(cluster, observer, plan.pods, plan.limit)
            server, cpu = servers() - server, cpu_seconds(pid)
            times = sorted(observer.bound.values())
            late = [*kind.pods(name, plan.pods, plan.late)]
            create_at_rate(cluster.kubectl, late, plan.rate)
            _wait_until_bound(cluster, observer, plan.pods + plan.late, FEW)
            steady_cpu, peak = cpu_seconds(pid) - cpu, peak_megabytes(pid)
        names = [obj["metadata"]["name"] for obj in late]
        latencies = [observer.bound[name] - observer.created[name] for name in names] or [0.0]
        kind.verify(observer.nodes, plan.nodes)
    return Result(
        kind.name,
        contender.name,
        (len(times) - 1) / max(times[-1] - times[0], 1e-9),
        times[-1] - start,
        cpu,
        server,
        quantile(latencies, 0.5),
        quantile(latencies, 0.99),
        steady_cpu,
        peak,
        plan.pods,
        plan.late,
    )


def _wait_until_bound(cluster: Cluster, observer: Observer, count: int, timeout: float) -> None:
    """Wait until so many pods are bound. Raises `BenchmarkFailure`, with what the API server knows."""
    try:
        observer.wait_until_bound(count, timeout)
    except BenchmarkFailure as failure:
        waiting = cluster.kubectl.list("Pod", "default", labels="group", fields="spec.nodeName=")
        raise BenchmarkFailure(
            f"{failure}; the API server has {len(waiting)} pods without a node{_reason(waiting)}"
        ) from None


def _reason(waiting: list[Obj]) -> str:
    """Return name and condition of the first pod that waits."""
    for pod in waiting:
        for condition in pod["status"].get("conditions", ()):
            said = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return f", such as {pod['metadata']['name']}: {said}"
        return f", such as {pod['metadata']['name']}, without a condition"
    return ""
