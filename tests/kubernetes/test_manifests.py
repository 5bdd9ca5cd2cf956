"""Manifests and the Helm chart in `deploy/`, applied to a real API server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import Kubectl, missing
from tests.kubernetes.cluster.kubectl import KINDS, Obj
from tests.kubernetes.cluster.programs import NOT_BUILT, PROGRAMS
from tests.kubernetes.deployment import DEPLOY, NAMESPACE, apply, manifests

CHART = DEPLOY / "helm" / "yunikorn"
KUBERNETES_VERSION = "1.36.0"


def rendered(*values: str, file: Path | None = None) -> list[Obj]:
    """Return the objects of the Helm chart with these values (`--set`), and those of a file."""
    if missing(["helm"]):
        pytest.skip(NOT_BUILT)
    settings = [part for value in values for part in ("--set", value)]
    command = [str(PROGRAMS["helm"].path), "template", "yunikorn", str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBERNETES_VERSION, *settings, *(["--values", str(file)] if file else [])]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [one for one in yaml.safe_load_all(run.stdout) if one]


def named(objects: Iterable[Obj]) -> dict[tuple[str, str], Obj]:
    """Return objects by kind and name."""
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def test_every_manifest_is_listed() -> None:
    listed = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text("utf-8"))["resources"]
    files = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")}
    assert set(listed) == files - {"kustomization.yaml"}


def test_api_server_accepts_every_manifest(kubectl: Kubectl) -> None:
    objects = manifests()
    apply(kubectl, objects)
    kubectl.wait(
        "Pod", lambda pods: [pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE] or None
    )
    for one in objects:
        assert kubectl.get(one["kind"], one["metadata"]["name"], NAMESPACE)


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("imagePullSecrets[0].name=registry", "scheduler.args={--stats,10m}", "scheduler.openRest=false"),
        ("admission.enabled=false", "scheduler.nodeSelector.pool=system", "image.tag=1.0"),
        ("scheduler.tolerations[0].operator=Exists", "scheduler.env[0].name=A,scheduler.env[0].value=b"),
        (
            "scheduler.volumes[0].name=v,scheduler.volumeMounts[0].name=v,scheduler.volumeMounts[0].mountPath=/v",
        ),
        ("yunikornDefaults.service\\.placeholderImage=pause:1",),
    ],
    ids=["defaults", "arguments", "without admission", "environment", "volumes", "settings"],
)
def test_api_server_accepts_the_chart(values: tuple[str, ...], kubectl: Kubectl) -> None:
    apply(
        kubectl,
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *rendered(*values)],
    )
    found = named(kubectl.list("Deployment", NAMESPACE))
    assert ("Deployment", "yunikorn-scheduler") in found
    assert (("Deployment", "yunikorn-admission-controller") in found) is (
        "admission.enabled=false" not in values
    )


def without_comfort(one: Any) -> Any:
    """Return an object without what the chart adds: its own labels, and the policy of pulling images."""
    if isinstance(one, list):
        return [without_comfort(part) for part in one]
    if not isinstance(one, dict):
        return one
    dropped = ("imagePullPolicy", "image", "chart", "release")
    return {key: without_comfort(value) for key, value in one.items() if key not in dropped}


def test_chart_and_manifests_agree() -> None:
    of_chart = named(rendered())
    of_files = named(one for one in manifests() if one["kind"] != "Namespace")
    # The chart owns the defaults, and leaves yunikorn-configs to operators.
    assert of_chart.pop(("ConfigMap", "yunikorn-defaults"))["data"].keys() == {"queues.yaml"}
    assert of_files.pop(("ConfigMap", "yunikorn-configs"))["data"].keys() == {"queues.yaml"}
    assert of_chart.keys() == of_files.keys()
    for key, one in of_files.items():
        expected = {**one, "metadata": {k: v for k, v in one["metadata"].items() if k != "namespace"}}
        assert without_comfort(of_chart[key]) == without_comfort(expected), key


def test_settings_of_the_chart_may_be_written_without_quotes(tmp_path: Path) -> None:
    values = {
        "service.placeholderRunAsUser": 1_000_690_000,
        "log.level": -1,
        "service.disableGangScheduling": True,
        "service.clusterId": None,
        "queues.yaml": {"partitions": [{"name": "default", "queues": [{"name": "root"}]}]},
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"yunikornDefaults": values}), "utf-8")
    data = named(rendered(file=file))["ConfigMap", "yunikorn-defaults"]["data"]
    assert yaml.safe_load(data.pop("queues.yaml")) == values["queues.yaml"]
    assert data == {
        "service.placeholderRunAsUser": "1000690000",
        "log.level": "-1",
        "service.disableGangScheduling": "true",
    }


def scheduler_pod(*values: str) -> Obj:
    found: Obj = named(rendered(*values))["Deployment", "yunikorn-scheduler"]["spec"]["template"]["spec"]
    return found


def test_a_volume_of_the_chart_switches_the_history_on() -> None:
    of_history = "scheduler.history.volume.persistentVolumeClaim.claimName=kept"
    other = (
        "scheduler.volumes[0].name=v,scheduler.volumeMounts[0].name=v,scheduler.volumeMounts[0].mountPath=/v"
    )
    pod = scheduler_pod(of_history, other)
    (container,) = pod["containers"]
    place = container["args"].index("--history")
    assert container["args"][place : place + 4] == [
        "--history",
        "/var/lib/yunikorn/history.db",
        "--history-keep",
        "400d",
    ]
    claim = {"name": "history", "persistentVolumeClaim": {"claimName": "kept"}}
    assert pod["volumes"] == [{"name": "v"}, claim]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "history", "mountPath": "/var/lib/yunikorn"}]
    assert container["volumeMounts"] == mounts
    assert pod["securityContext"]["fsGroup"] == 65532


def test_a_url_of_the_chart_needs_no_volume() -> None:
    pod = scheduler_pod("scheduler.history.url=postgresql://yunikorn@db/history")
    arguments = pod["containers"][0]["args"]
    assert arguments[arguments.index("--history") + 1] == "postgresql://yunikorn@db/history"
    assert "volumes" not in pod
    assert "--history" not in scheduler_pod()["containers"][0]["args"]


def test_pods_are_restricted() -> None:
    for one in manifests():
        if one["kind"] != "Deployment":
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            limits = container["securityContext"]
            assert limits["readOnlyRootFilesystem"] is True
            assert limits["allowPrivilegeEscalation"] is False
            assert limits["capabilities"] == {"drop": ["ALL"]}


def test_no_role_has_all_verbs_or_resources() -> None:
    for one in manifests():
        for rule in one.get("rules", ()):
            assert "*" not in {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}


def test_kinds_of_manifests_can_be_reset() -> None:
    assert {one["kind"] for one in manifests()} <= {*KINDS, "Namespace"}
