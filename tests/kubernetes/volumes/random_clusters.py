"""Random clusters with volumes of all kinds, as objects of the API."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

Obj = dict[str, Any]
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
SOURCES: Sequence[Obj] = (
    {"csi": {"driver": "disk.csi", "volumeHandle": "h"}},
    {"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}},
    {"local": {"path": "/disk"}},
)


class RandomCluster:
    """Objects of one cluster: `cluster` for the reference, and pods that are asked about."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.nodes = [self._node(name) for name in ("n1", "n2", "n3")]
        self.classes = self._classes()
        self.claims: list[Obj] = []
        self.bound: list[str] = []
        """Names of claims that are bound to existing volumes."""
        self.volumes = [self._volume(f"v{number}", 2 * number + 3) for number in range(6)]
        for number in range(6):
            self._claim(f"c{number}")
        self.asked = [self._asked(f"asked{number}") for number in range(4)]
        self.running = [self._running(f"running{number}") for number in range(4)]
        self.cluster: dict[str, list[Obj]] = {
            "nodes": self.nodes,
            "pods": self.running,
            "pvs": self.volumes,
            "pvcs": self.claims,
            "storageclasses": self.classes,
            "csinodes": self._csi_nodes(),
            "csidrivers": self._drivers(),
            "csistoragecapacities": self._capacities(),
            "volumeattachments": self._attachments(),
        }

    def _chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _node(self, name: str) -> Obj:
        labels = {HOST: name}
        for label, values in (
            (ZONE, "ab"),
            (OLD_ZONE, "ab"),
            (REGION, "r"),
            (EBS_ZONE, "ab"),
            ("rack", "12"),
        ):
            if self._chance(60):
                labels[label] = self._random.choice(values)
        status = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
        return {"metadata": {"name": name, "labels": labels}, "status": status}

    def _classes(self) -> list[Obj]:
        found = []
        for name, provisioner, mode in (
            ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("fast", "disk.csi", "WaitForFirstConsumer"),
            ("ebs", "kubernetes.io/aws-ebs", "WaitForFirstConsumer"),
            ("now", "disk.csi", "Immediate"),
        ):
            made: Obj = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
            if self._chance(40):
                values = self._random.choice([["a"], ["a", "b"], ["c"]])
                made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
            if not self._chance(5):
                found.append(made)
        return found

    def _requirement(self) -> Obj:
        return self._random.choice(
            [
                {"key": ZONE, "operator": "In", "values": [self._random.choice("ab")]},
                {"key": HOST, "operator": "In", "values": [self._random.choice(["n1", "n2", "n3"])]},
                {"key": HOST, "operator": "In", "values": ["n1", "n2"]},
                {"key": "rack", "operator": "Exists"},
                {"key": "rack", "operator": "Gt", "values": ["1"]},
                {"key": OLD_ZONE, "operator": "NotIn", "values": ["a"]},
                {"key": OLD_ZONE, "operator": "In", "values": ["b"]},
            ]
        )

    def _volume(self, name: str, gigabytes: int) -> Obj:
        spec: Obj = {
            "capacity": {"storage": f"{gigabytes}Gi"},
            "accessModes": self._random.sample(MODES, self._random.randint(1, 3)),
            "storageClassName": self._random.choice(["local", "local", "fast", "ebs"]),
            **self._random.choice(SOURCES),
        }
        if "csi" in spec:
            spec["csi"] = {"driver": "disk.csi", "volumeHandle": f"handle-{name}"}
        if "awsElasticBlockStore" in spec:
            spec["awsElasticBlockStore"] = {"volumeID": f"aws://eu-1a/vol-{name}"}
        if self._chance(70):
            terms = [
                {"matchExpressions": [self._requirement() for _ in range(self._random.randint(1, 2))]}
                for _ in range(self._random.choice([1, 1, 1, 2]))
            ]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        if self._chance(10):
            spec["volumeMode"] = "Block"
        if self._chance(10):
            spec["volumeAttributesClassName"] = "gold"
        labels = {}
        for label, values in ((ZONE, ("a", "b", "a__b")), (OLD_ZONE, ("a", "b")), ("disk", ("ssd", "hdd"))):
            if self._chance(25):
                labels[label] = self._random.choice(values)
        phase = "Available" if self._chance(90) else "Released"
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": phase}}

    def _claim(self, name: str, owner: str = "") -> None:
        """Add a claim in one of its many states."""
        spec: Obj = {
            "accessModes": [self._random.choice(MODES)],
            "resources": {"requests": {"storage": f"{self._random.choice([2, 5, 8, 11])}Gi"}},
        }
        if not self._chance(5):
            spec["storageClassName"] = self._random.choice(["local", "local", "fast", "fast", "ebs", "now"])
        meta: Obj = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {}}
        made: Obj = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        if owner:
            reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}
            meta["ownerReferences"] = [reference]
        if self._chance(45):
            self._bind(made)
        elif self._chance(15):
            meta["annotations"]["volume.kubernetes.io/selected-node"] = self._random.choice(["n1", "n2"])
        elif self._chance(20):
            self._reserve(made)
        if self._chance(15):
            spec["selector"] = {"matchLabels": {"disk": self._random.choice(["ssd", "hdd"])}}
        if self._chance(8):
            spec["volumeMode"] = "Block"
        if self._chance(8):
            spec["volumeAttributesClassName"] = "gold"
        if self._chance(3):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.claims.append(made)

    def _free(self) -> Obj | None:
        free = [one for one in self.volumes if "claimRef" not in one["spec"]]
        return self._random.choice(free) if free else None

    def _reference(self, claim: Obj, volume: Obj, *, uid: bool = True) -> None:
        meta = claim["metadata"]
        volume["spec"]["claimRef"] = {
            "namespace": meta["namespace"],
            "name": meta["name"],
            **({"uid": meta["uid"]} if uid else {}),
        }

    def _bind(self, claim: Obj) -> None:
        volume = self._free()
        if volume is None or self._chance(5):
            claim["spec"]["volumeName"] = "gone"
            claim["status"]["phase"] = self._random.choice(["Lost", "Pending"])
        else:
            claim["spec"]["volumeName"] = volume["metadata"]["name"]
            claim["status"]["phase"] = "Bound"
            volume["status"]["phase"] = "Bound"
            self._reference(claim, volume)
            self.bound.append(claim["metadata"]["name"])
        if not self._chance(10):
            claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"

    def _reserve(self, claim: Obj) -> None:
        volume = self._free()
        if volume is not None:
            self._reference(claim, volume, uid=self._chance(60))

    def _inline(self) -> Obj:
        read_only = self._chance(50)
        return self._random.choice(
            [
                {"gcePersistentDisk": {"pdName": self._random.choice("pq"), "readOnly": read_only}},
                {
                    "awsElasticBlockStore": {
                        "volumeID": f"vol-{self._random.choice('pq')}",
                        "readOnly": read_only,
                    }
                },
                {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0, "readOnly": read_only}},
                {
                    "rbd": {
                        "monitors": self._random.sample(["m1", "m2", "m3"], 2),
                        "image": "i",
                        "pool": self._random.choice(["rbd", "other"]),
                        "readOnly": read_only,
                    }
                },
                {"emptyDir": {}},
            ]
        )

    def _pod(self, name: str, volumes: Sequence[Obj], **spec: Any) -> Obj:
        volumes = [{"name": f"w{number}", **one} for number, one in enumerate(volumes)]
        containers = [{"name": "c", "image": "i"}]
        meta = {"name": name, "namespace": "default", "uid": name}
        return {"metadata": meta, "spec": {"containers": containers, "volumes": volumes, **spec}}

    def _asked(self, name: str) -> Obj:
        names = self._random.sample(range(6), self._random.choice([1, 1, 1, 2, 2, 3]))
        volumes = [_use(f"c{number}") for number in names]
        if self._chance(3):
            volumes.append(_use("missing"))
        if self._chance(35):
            volumes.append(self._inline())
        if self._chance(20):
            if not self._chance(5):
                self._claim(f"{name}-w{len(volumes)}", owner=name if not self._chance(5) else "another")
            volumes.append({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
        return self._pod(name, volumes)

    def _running(self, name: str) -> Obj:
        volumes = [self._inline() for _ in range(self._random.choice([0, 0, 1, 2]))]
        if self.bound:
            volumes += [_use(self._random.choice(self.bound)) for _ in range(self._random.choice([0, 1, 2]))]
        return self._pod(name, volumes, nodeName=self._random.choice(["n1", "n2", "n3"]))

    def _csi_nodes(self) -> list[Obj]:
        found = []
        for node in ("n1", "n2", "n3"):
            drivers = []
            for driver in ("disk.csi", "ebs.csi.aws.com"):
                if self._chance(60):
                    made: Obj = {"name": driver, "nodeID": node}
                    if self._chance(80):
                        made["allocatable"] = {"count": self._random.randint(0, 3)}
                    drivers.append(made)
            meta: Obj = {"name": node, "annotations": {}}
            if self._chance(50):
                marks = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
                meta["annotations"] = marks
            if not self._chance(15):
                found.append({"metadata": meta, "spec": {"drivers": drivers}})
        return found

    def _drivers(self) -> list[Obj]:
        if self._chance(30):
            return []
        return [{"metadata": {"name": "disk.csi"}, "spec": {"storageCapacity": self._chance(70)}}]

    def _capacities(self) -> list[Obj]:
        found = []
        for number in range(self._random.randint(0, 4)):
            made: Obj = {
                "metadata": {"name": f"k{number}", "namespace": "kube-system"},
                "storageClassName": self._random.choice(["fast", "fast", "local"]),
                "capacity": f"{self._random.choice([1, 5, 20])}Gi",
            }
            if self._chance(30):
                made["maximumVolumeSize"] = f"{self._random.choice([1, 5, 20])}Gi"
            if not self._chance(10):
                made["nodeTopology"] = self._random.choice(
                    [
                        {"matchLabels": {HOST: self._random.choice(["n1", "n2"])}},
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]},
                        {
                            "matchLabels": {ZONE: "b"},
                            "matchExpressions": [{"key": "rack", "operator": "Exists"}],
                        },
                        {},
                    ]
                )
            found.append(made)
        return found

    def _attachments(self) -> list[Obj]:
        return [
            {
                "metadata": {"name": f"a{number}"},
                "spec": {
                    "attacher": "disk.csi",
                    "nodeName": self._random.choice(["n1", "n2", "n3"]),
                    "source": {"persistentVolumeName": f"v{self._random.randrange(7)}"},
                },
            }
            for number in range(self._random.randint(0, 3))
        ]


def _use(claim: str) -> Obj:
    return {"persistentVolumeClaim": {"claimName": claim}}
