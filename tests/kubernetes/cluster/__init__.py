"""A real Kubernetes cluster for tests: etcd, API server, controller manager, and kwok as all kubelets.

```python
with Cluster() as cluster:
    cluster.kubectl.create(node("node-1", cpu="4", memory="8Gi"))
```

The programs are real and are built from their Go modules (`programs`). kwok plays kubelets and containers
(`stages.yaml`). `python -m tests.kubernetes.cluster` builds the programs and starts a cluster by hand.
"""

from __future__ import annotations

from tests.kubernetes.cluster.cluster import Cluster, ClusterError
from tests.kubernetes.cluster.kubectl import ApiFault, Kubectl, Obj
from tests.kubernetes.cluster.programs import PROGRAMS, BuildError, build, missing

__all__ = [
    "PROGRAMS",
    "ApiFault",
    "BuildError",
    "Cluster",
    "ClusterError",
    "Kubectl",
    "Obj",
    "build",
    "missing",
]
