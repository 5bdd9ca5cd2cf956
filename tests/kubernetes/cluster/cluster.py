"""One test cluster: its processes, its files, and its reset between tests."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kubernetes.cluster.kubectl import PATIENCE, ApiFault, Kubectl
from tests.kubernetes.cluster.processes import Ports, Processes
from tests.kubernetes.cluster.programs import PROGRAMS
from tests.kubernetes.cluster.reset import Reset

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLERS = "kube-controller-manager"
KUBELETS = "kwok"
SCHEDULER = "kube-scheduler"
PARTS = (ETCD, API_SERVER, CONTROLLERS, KUBELETS)
"""The processes of a cluster, in the order of their start. `kube-scheduler` is none of them."""
NODE_LEASES = "kube-node-lease"
"""Namespace of the leases of nodes, which name the process that plays their kubelets."""
GATES = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
    "WorkloadWithJob",
    "DRAWorkloadResourceClaims",
    "DRADeviceTaintRules",
)
"""Feature gates of Kubernetes 1.36 that are off by default, for PodGroups and taints of devices."""
GROUPS = "--runtime-config=scheduling.k8s.io/v1alpha2=true,resource.k8s.io/v1beta2=true"
FEATURES = "--feature-gates=" + ",".join(f"{name}=true" for name in GATES)
STAGES = Path(__file__).parent / "stages.yaml"


class ClusterError(Exception):
    """The cluster cannot start; the message ends with the log of the process that failed."""


class Cluster:
    """A cluster of its own data, ports and credentials; a context manager that starts and stops it.

    Attributes:
        folder: Data, credentials and logs.
        url: Address of the API server.
        token: Bearer token of an administrator (`system:masters`).
        ca: Certificates that a client of `url` trusts, a PEM file.
        kubeconfig: File for `kubectl` and all clients, with the administrator's token.
        kubectl: A client with that token.
    """

    def __init__(
        self, folder: Path | None = None, *, api_server_flags: Sequence[str] = (), pod_groups: bool = True
    ) -> None:
        """Create a cluster that is not started yet.

        The data is below `folder`, whose logs remain after `stop`. The default is a temporary folder, which
        `stop` removes.
        `api_server_flags` are appended to those of the API server. Without `pod_groups`, the cluster has the
        features that are on by default, and no PodGroups; it cannot be `reset`.
        """
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="yunikorn-cluster-")) if folder is None else folder
        self.logs = self.folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        features = [FEATURES] if pod_groups else []
        groups = [GROUPS] if pod_groups else []
        self._flags = [*features, *groups, *api_server_flags]
        self._features = features
        self._restarted = False
        """True if the API server has been restarted and its clients have not."""
        self._ports = Ports()
        self._etcd, self._peer, port = (self._ports.reserve() for _ in range(3))
        self._processes = Processes(self.logs)
        self.url = f"https://127.0.0.1:{port}"
        self._port = port
        self.token = secrets.token_urlsafe(32)
        self._certificates = self.folder / "certificates"
        self.ca = self._certificates / "apiserver.crt"
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubectl = Kubectl(self.url, self.token, self.ca)
        self._reset = Reset(self.kubectl)

    # -- life -----------------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all processes that do not run, and wait until the cluster takes pods.

        Raise `ClusterError` if a process ends or is not ready in time.
        """
        (self.folder / "tokens").write_text(f'{self.token},admin,admin,"system:masters"\n', "utf-8")
        if not self.alive(ETCD):
            self.start_part(ETCD)
        if not self.alive(API_SERVER):
            self.start_api_server()
            self._restarted = self.alive(CONTROLLERS)
        for name in (CONTROLLERS, KUBELETS):
            if not self.alive(name):
                self.start_part(name)
        # Pods are refused until the controller manager has made this account.
        self._until(
            CONTROLLERS, lambda: self.kubectl.find("ServiceAccount", "default", "default") is not None
        )
        if self._features:
            # A cluster without PodGroups is for one test.
            self._reset.remember()

    def stop(self) -> None:
        """Kill all processes; remove the data, but not the logs of a folder that the caller named."""
        self.kubectl.close()
        self._processes.close()
        self._ports.close()
        shutil.rmtree(self.folder if self._temporary else self.folder / "etcd", ignore_errors=True)

    def reset(self) -> None:
        """Delete all objects that were not there after the start, and start again what was stopped.

        Where a test left very many objects, the cluster begins with an empty store, in the time of a start.
        """
        self.kill(SCHEDULER)
        for name in PARTS:
            self.thaw(name)
        if self._restarted:
            # After several lost connections, these would try again only every half a minute.
            self.kill(CONTROLLERS)
            self.kill(KUBELETS)
        self.start()
        self._restarted = False
        if self._reset.is_large():
            self._begin_again()
        else:
            self._reset.run()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Let `reset` keep, until the block ends, what exists now: several tests use it."""
        with self._reset.keeping():
            yield

    def _begin_again(self) -> None:
        for name in reversed(PARTS):
            self.kill(name)
        shutil.rmtree(self.folder / "etcd")
        self._reset = Reset(self.kubectl)
        self.start()
        self._restarted = False

    # -- parts ----------------------------------------------------------------------------------------

    def alive(self, name: str) -> bool:
        """Return True if a process runs."""
        return self._processes.alive(name)

    def pid(self, name: str) -> int:
        """Return the process id of a part, for measurements."""
        return self._processes.pid(name)

    def start_part(self, name: str, *flags: str) -> None:
        """Start a process that does not run, with further flags; wait until it is ready.

        Only etcd and the API server report that they are ready.
        """
        arguments = [*self._arguments(name), *flags]
        if name == KUBELETS:
            # A new kwok would play no kubelet before the leases of a former one have expired.
            self.kubectl.delete_all("Lease", NODE_LEASES)
        self._processes.start(name, PROGRAMS[name].path, arguments)
        if name == ETCD:
            self._until(ETCD, self._etcd_is_healthy)
        elif name == API_SERVER:
            self._until(API_SERVER, lambda: self.kubectl.call("GET", "/readyz")[0] == 200)

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL; `start_part`, `start` and `reset` start it again on the same data."""
        self._processes.stop(name, signal.SIGKILL)

    def freeze(self, name: str) -> None:
        """Stop a process as it is: it answers nothing, and its connections remain open, until `thaw`."""
        self._processes.freeze(name)

    def thaw(self, name: str) -> None:
        """Let a frozen process continue; others do anyway."""
        self._processes.thaw(name)

    def start_api_server(self) -> None:
        """Start the API server, wait until it is ready, and write the kubeconfig."""
        self.start_part(API_SERVER)
        self._write_kubeconfig()
        self._restarted = True

    def stop_api_server(self) -> None:
        """Stop the API server; then connections are refused.

        It would wait a minute for its clients to end their requests, so it is killed after 2 seconds.
        """
        self._processes.stop(API_SERVER, timeout=2)

    def restart_api_server(self, *, kill: bool = False) -> None:
        """Stop or kill the API server, start it with an empty watch cache, and wait until it is ready."""
        if kill:
            self.kill(API_SERVER)
        else:
            self.stop_api_server()
        self.start_api_server()

    def start_scheduler(self, *flags: str) -> None:
        """Start kube-scheduler, for comparisons, with its rate limit raised; `reset` ends it."""
        self.start_part(SCHEDULER, *flags)

    def compact(self) -> int:
        """Drop all history from etcd and return the revision up to which it is gone.

        The API server answers from its own cache as long as it can. After `restart_api_server` as well, a
        watch from an older resourceVersion gets an ERROR event with code 410.
        """
        key = base64.b64encode(b"/").decode()
        revision = int(self._ask_etcd("/v3/kv/range", {"key": key})["header"]["revision"])
        self._ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def expire_watches(self) -> int:
        """Make all earlier resourceVersions too old for a watch; return the revision up to which they are."""
        revision = self.compact()
        self.restart_api_server()
        return revision

    # -- details --------------------------------------------------------------------------------------

    def _arguments(self, name: str) -> list[str]:
        here = f"http://127.0.0.1:{self._etcd}"
        peers = f"http://127.0.0.1:{self._peer}"
        key = self._certificates / "apiserver.key"
        return {
            ETCD: [
                "--name=test",
                f"--data-dir={self.folder / 'etcd'}",
                "--unsafe-no-fsync",
                "--socket-reuse-port",
                f"--listen-client-urls={here}",
                f"--advertise-client-urls={here}",
                f"--listen-peer-urls={peers}",
                f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=test={peers}",
                f"--quota-backend-bytes={4 << 30}",
                "--log-level=warn",
            ],
            API_SERVER: [
                f"--etcd-servers={here}",
                # Only tests compact.
                "--etcd-compaction-interval=0",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self._port}",
                "--permit-port-sharing",
                # The server makes its certificate here; the key also signs the tokens of service accounts.
                f"--cert-dir={self._certificates}",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--token-auth-file={self.folder / 'tokens'}",
                "--authorization-mode=RBAC",
                # As in OpenShift: owners that block their deletion need a right of their own.
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--delete-collection-workers=8",
                "--profiling=false",
                *self._flags,
            ],
            CONTROLLERS: [
                f"--kubeconfig={self.kubeconfig}",
                f"--service-account-private-key-file={key}",
                f"--root-ca-file={self.ca}",
                # As in real clusters: admission controllers know the controllers by their accounts.
                "--use-service-account-credentials",
                "--leader-elect=false",
                "--secure-port=0",
                # No metrics for the first, no kubelets that would read the annotations of the second.
                "--controllers=*,-horizontal-pod-autoscaler-controller,-ttl-controller",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                "--concurrent-gc-syncs=5",
                "--pvclaimbinder-sync-period=2s",
                # Nodes of a busy machine, or of a test without API server, are not lost.
                "--node-monitor-grace-period=10m",
                *self._features,
            ],
            KUBELETS: [
                f"--kubeconfig={self.kubeconfig}",
                f"--config={STAGES}",
                "--manage-all-nodes",
                "--node-lease-duration-seconds=200",
                "--node-ip=10.0.0.1",
                "--v=WARN",
            ],
            SCHEDULER: [
                f"--kubeconfig={self.kubeconfig}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=5000",
                "--kube-api-burst=5000",
            ],
        }[name]

    def _write_kubeconfig(self) -> None:
        # JSON is YAML.
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}
            ],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        self.kubeconfig.write_text(json.dumps(content, indent=1) + "\n", "utf-8")

    def _until(self, name: str, ready: Callable[[], bool]) -> None:
        """Ask until a process is ready; refused connections and unfinished answers mean not yet."""
        deadline = time.monotonic() + PATIENCE
        pause = threading.Event()
        while time.monotonic() < deadline:
            try:
                if ready():
                    return
            except (OSError, ApiFault):
                pass
            if not self.alive(name):
                raise ClusterError(f"{name} has ended:\n{self._processes.end_of_log(name)}")
            pause.wait(0.05)
        raise ClusterError(f"{name} is not ready after {PATIENCE:g} s:\n{self._processes.end_of_log(name)}")

    def _etcd_is_healthy(self) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._etcd}/health", timeout=5) as answer:
            return bool(json.load(answer)["health"] == "true")

    def _ask_etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd}{path}", data=json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return dict(json.load(answer))
