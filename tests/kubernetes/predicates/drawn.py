"""Random nodes and pods as objects of the Kubernetes API, with few labels so that they often have to do with
each other, and what the predicates read of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from msgspec import convert

from yunikorn_kubernetes import names
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.translation.asks import pod_tags
from yunikorn_kubernetes.translation.compact_json import compact_json
from yunikorn_kubernetes.translation.node_images import NodeWithImages
from yunikorn_kubernetes.translation.translated_nodes import node_attributes
from yunikorn_testing import AskSample, NodeSample, ask, node

Obj = dict[str, Any]

ZONE, HOSTNAME = names.LABEL_ZONE, names.LABEL_HOSTNAME
TOPOLOGY = (ZONE, HOSTNAME, "rack")
NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "one": {"kubernetes.io/metadata.name": "one", "team": "a"},
    "two": {"kubernetes.io/metadata.name": "two", "team": "b"},
    "three": {"kubernetes.io/metadata.name": "three"},
}
HAS_TEAM = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IMAGES = ("web", "registry.example/db:1", "registry.example/cache@sha256:0a", "model:latest")
MEGABYTE = 1 << 20
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Draw:
    """Draws objects; equal seeds give equal objects."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def often(self, share: float) -> bool:
        """Return True with a probability."""
        return self.random.random() < share

    def some(self, values: list[Any], most: int) -> list[Any]:
        """Return one value or more, without repetition."""
        return self.random.sample(values, self.random.randint(1, min(most, len(values))))

    # -- nodes --------------------------------------------------------------------------------------

    def node(self, name: str) -> Obj:
        """Return a node."""
        labels = {}
        for key, share, values in (
            (HOSTNAME, 0.95, [name]),
            (ZONE, 0.9, ["a", "b", "c"]),
            ("rack", 0.7, ["r1", "r2", "r3", "r4"]),
            ("disk", 0.6, ["ssd", "hdd"]),
            ("cpus", 0.5, ["4", "8", "16", "many"]),
        ):
            if self.often(share):
                labels[key] = self.random.choice(values)
        taints = [
            {"key": key, "value": self.random.choice(("x", "y")), "effect": self.random.choice(EFFECTS)}
            for key in ("gpu", "old")
            if self.often(0.25)
        ]
        spec: Obj = {"taints": taints} if taints else {}
        if self.often(0.08):
            spec["unschedulable"] = True
        return {
            "metadata": {"name": name, "uid": f"node-{name}", "labels": labels},
            "spec": spec,
            "status": {"allocatable": {"cpu": "16", "memory": "16Gi", "pods": "100"}},
        }

    def with_images(self, found: Obj) -> Obj:
        """Give a node images."""
        present = [image for image in IMAGES if self.often(0.5)]
        found["status"]["images"] = [
            {"names": [_full(image), f"{image}@other"], "sizeBytes": self.random.randint(1, 2000) * MEGABYTE}
            for image in present
        ]
        return found

    # -- pods ---------------------------------------------------------------------------------------

    def pod(self, name: str, *wanted: str) -> Obj:
        """Return a pod with some kinds of constraints: `node`, `name`, `taints` and so on."""
        labels = {}
        for key, share, values in (
            ("app", 0.9, ["web", "db", "cache"]),
            ("tier", 0.5, ["x", "y"]),
            ("version", 0.6, ["1", "2"]),
        ):
            if self.often(share):
                labels[key] = self.random.choice(values)
        spec: Obj = {"containers": [{"name": "main"}]}
        for kind in wanted:
            getattr(self, f"_{kind}")(spec)
        namespace = self.random.choice(list(NAMESPACES))
        return {
            "metadata": {"name": name, "namespace": namespace, "uid": f"pod-{name}", "labels": labels},
            "spec": spec,
        }

    def _taints(self, spec: Obj) -> None:
        tolerations = []
        for key in self.some(["gpu", "old", "node.kubernetes.io/unschedulable", ""], 3):
            one: Obj = {"operator": "Exists"}
            if key:
                one["key"] = key
                if self.often(0.5):
                    one |= {"operator": "Equal", "value": self.random.choice(("x", "y", ""))}
                    if self.often(0.3):
                        del one["operator"]
            if self.often(0.5) or not key:
                one["effect"] = self.random.choice(EFFECTS)
            tolerations.append(one)
        spec["tolerations"] = tolerations

    def _node(self, spec: Obj) -> None:
        if self.often(0.4):
            spec["nodeSelector"] = self.random.choice(
                [{"disk": "ssd"}, {ZONE: "a"}, {"disk": "hdd", ZONE: "b"}, {"rack": "r1"}]
            )
        if self.often(0.7):
            terms = [self._node_term() for _ in range(self.random.randint(1, 3))]
            spec.setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}

    def _node_term(self) -> Obj:
        term: Obj = {}
        if self.often(0.85):
            term["matchExpressions"] = [self._node_requirement() for _ in range(self.random.randint(1, 2))]
        if self.often(0.12):
            operator = self.random.choice(("In", "NotIn"))
            named = f"n{self.random.randint(0, 7)}"
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [named]}]
        return term

    def _node_requirement(self) -> Obj:
        operator = self.random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            value = self.random.choice(("4", "8", "10", "007"))
            return {"key": "cpus", "operator": operator, "values": [value]}
        key, values = self.random.choice(
            [("disk", ["ssd", "hdd", "nvme"]), (ZONE, ["a", "b", "c"]), ("rack", ["r1", "r2", "r3"])]
        )
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": self.some(values, 2)}

    def _name(self, spec: Obj) -> None:
        spec["nodeName"] = f"n{self.random.randint(0, 7)}"

    def _ports(self, spec: Obj) -> None:
        ports: list[Obj] = []
        for number in self.some([80, 81, 443], 2):
            port: Obj = {"containerPort": number, "hostPort": number}
            if self.often(0.4):
                port["hostIP"] = self.random.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0"))
            port["protocol"] = self.random.choice(("TCP", "TCP", "UDP"))
            ports.append(port)
        spec["containers"][0]["ports"] = ports

    def _selector(self) -> Obj | None:
        """Return a selector of pods; None for the one that selects nothing."""
        if self.often(0.05):
            return None
        selector: Obj = {}
        if self.often(0.7):
            selector["matchLabels"] = {"app": self.random.choice(("web", "db", "cache"))}
        if self.often(0.35):
            operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            one: Obj = {"key": self.random.choice(("tier", "version")), "operator": operator}
            if operator in ("In", "NotIn"):
                one["values"] = self.some(["x", "y", "1", "2"], 3)
            selector["matchExpressions"] = [one]
        return selector

    def _spread(self, spec: Obj) -> None:
        found = []
        for key in self.some(list(TOPOLOGY), 2):
            one: Obj = {"topologyKey": key, "maxSkew": self.random.choice((1, 1, 2))}
            one["whenUnsatisfiable"] = "DoNotSchedule" if self.often(0.9) else "ScheduleAnyway"
            selector = self._selector()
            if selector is not None:
                one["labelSelector"] = selector
            if one["whenUnsatisfiable"] == "DoNotSchedule" and self.often(0.4):
                one["minDomains"] = self.random.choice((1, 2, 3, 4))
            if selector is not None and self.often(0.25):
                one["matchLabelKeys"] = self.some(["version", "tier"], 1)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self.often(0.3):
                    one[policy] = self.random.choice(("Honor", "Ignore"))
            found.append(one)
        spec["topologySpreadConstraints"] = found

    def _affinity(self, spec: Obj) -> None:
        affinity = spec.setdefault("affinity", {})
        if self.often(0.5):
            affinity["podAffinity"] = {REQUIRED: [self._term() for _ in range(self.random.randint(1, 2))]}
        if self.often(0.6):
            affinity["podAntiAffinity"] = {REQUIRED: [self._term() for _ in range(self.random.randint(1, 2))]}

    # -- preferences --------------------------------------------------------------------------------

    def _soft_taints(self, spec: Obj) -> None:
        self._taints(spec)

    def _soft_node(self, spec: Obj) -> None:
        terms = [
            {"weight": self.random.choice((1, 10, 100)), "preference": self._node_term()}
            for _ in range(self.random.randint(1, 3))
        ]
        spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})[PREFERRED] = terms

    def _soft_spread(self, spec: Obj) -> None:
        self._spread(spec)
        for one in spec["topologySpreadConstraints"]:
            one["whenUnsatisfiable"] = "ScheduleAnyway" if self.often(0.9) else "DoNotSchedule"
            if one["whenUnsatisfiable"] == "ScheduleAnyway":
                one.pop("minDomains", None)

    def _soft_affinity(self, spec: Obj) -> None:
        affinity = spec.setdefault("affinity", {})
        for kind in self.some(["podAffinity", "podAntiAffinity"], 2):
            affinity.setdefault(kind, {})[PREFERRED] = [
                {"weight": self.random.choice((1, 7, 50, 100)), "podAffinityTerm": self._term()}
                for _ in range(self.random.randint(1, 2))
            ]

    def _images(self, spec: Obj) -> None:
        spec["containers"] = [
            {"name": f"c{number}", "image": self.random.choice(IMAGES)}
            for number in range(self.random.randint(1, 3))
        ]
        if self.often(0.3):
            spec["initContainers"] = [{"name": "init", "image": self.random.choice(IMAGES)}]
        if self.often(0.2):
            spec["volumes"] = [{"name": "files", "image": {"reference": self.random.choice(IMAGES)}}]

    def _term(self) -> Obj:
        term: Obj = {"topologyKey": self.random.choice(TOPOLOGY)}
        selector = self._selector()
        if selector is not None:
            term["labelSelector"] = selector
        if self.often(0.25):
            term["namespaces"] = self.some(list(NAMESPACES), 2)
        if self.often(0.2):
            term["namespaceSelector"] = self.random.choice(
                [
                    {},
                    {"matchLabels": {"team": "a"}},
                    {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                ]
            )
        return term


def _full(image: str) -> str:
    return image if ":" in image else f"{image}:latest"


# -- what the predicates read ------------------------------------------------------------------------------


def host_of(found: Obj) -> NodeSample:
    """Return a node as predicates see it."""
    return node(found["metadata"]["name"], node_attributes(convert(found, NodeWithImages)))


def ask_of(found: Obj) -> AskSample:
    """Return a pod as predicates see it."""
    meta = found["metadata"]
    labels = compact_json(NAMESPACES[meta["namespace"]])
    tags = pod_tags(convert(found, Pod), namespace_labels=labels, images=True)
    if "nodeName" in found["spec"]:
        tags[names.TAG_REQUIRED_NODE] = found["spec"]["nodeName"]
    return ask(meta["name"], vcore=1, tags=tags)
