"""`yunikorn admission` beside a real API server, with the rights of its service account in `deploy/`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Kubectl
from tests.kubernetes.cluster.kubectl import ApiFault, Obj
from tests.kubernetes.cluster.objects import job, pod
from tests.kubernetes.deployment import NAMESPACE, apply, kubeconfig_of, manifests

ACCOUNT = "yunikorn-admission-controller"
USER_INFO = "yunikorn.apache.org/user.info"
MUTATIONS = "yunikorn-admission-controller-mutations"
VALIDATIONS = "yunikorn-admission-controller-validations"
SECRET = "admission-controller-secrets"


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(cluster: Cluster, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run an admission controller that is ready."""
    kubeconfig = kubeconfig_of(cluster, ACCOUNT, folder)
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "yunikorn", "admission", "--kubeconfig", str(kubeconfig)]
    command += ["--namespace", NAMESPACE, "--listen", address, "--url", f"https://{address}", *arguments]
    log = folder / f"admission-{address}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "admission controller serves" in line, log.read_text()
        yield process
    finally:
        process.terminate()
        status = process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
    assert status == 0, log.read_text()


@pytest.fixture
def deployed(kubectl: Kubectl) -> Kubectl:
    """A cluster with the accounts and rights of the deployment, but without its pods."""
    apply(kubectl, [one for one in manifests() if one["kind"] not in ("Deployment", "ConfigMap")])
    return kubectl


def eventually(check: Any) -> Any:
    """Return the first result of `check` that is true; the API server reads configurations with a delay."""
    pause = threading.Event()
    for _ in range(300):
        if found := check():
            return found
        pause.wait(0.1)
    raise AssertionError("this did not happen")


def mutated(kubectl: Kubectl, namespace: str = "default") -> Obj:
    """Return a pod that was mutated, once the API server calls the webhook."""

    def attempt() -> Obj | None:
        name = f"probe-{len(kubectl.list('Pod', namespace))}"
        made = kubectl.create(pod(name, namespace, scheduler="default-scheduler"))
        return made if made["spec"]["schedulerName"] == "yunikorn" else None

    made: Obj = eventually(attempt)
    return made


def test_pods_and_workloads_are_prepared(cluster: Cluster, deployed: Kubectl, tmp_path: Path) -> None:
    with serving(cluster, tmp_path):
        made = mutated(deployed)
        assert made["metadata"]["labels"]["applicationId"] == "yunikorn-default-autogen"
        owner = json.loads(made["metadata"]["annotations"][USER_INFO])
        assert owner["groups"]
        assert made["metadata"]["annotations"]["yunikorn.apache.org/allow-preemption"] == "true"

        work = deployed.create(job("work", application="app-1"))
        template = work["spec"]["template"]["metadata"]
        assert json.loads(template["annotations"][USER_INFO]) == owner
        # The job controller makes the pods, for the owner of the job.
        pods = deployed.wait(
            "Pod",
            lambda found: (
                [one for one in found if one["metadata"]["labels"].get("job-name") == "work"] or None
            ),
        )
        assert json.loads(pods[0]["metadata"]["annotations"][USER_INFO]) == owner
        assert pods[0]["spec"]["schedulerName"] == "yunikorn"

        with pytest.raises(ApiFault, match="may not set the annotation"):
            deployed.create(pod("forged", annotations={USER_INFO: '{"user": "root"}'}))
        with pytest.raises(ApiFault, match="cannot be changed"):
            deployed.patch("Pod", made["metadata"]["name"], {"metadata": {"annotations": {USER_INFO: None}}})


def test_owner_in_a_template_is_that_of_who_sets_it(
    cluster: Cluster, deployed: Kubectl, tmp_path: Path
) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    with serving(cluster, tmp_path):
        mutated(deployed)
        made = deployed.create(web)
        owner = made["spec"]["template"]["metadata"]["annotations"]

        def set_owner(text: str | None) -> Obj:
            changed = {"spec": {"template": {"metadata": {"annotations": {USER_INFO: text}}}}}
            return deployed.patch("Deployment", "web", changed)

        with pytest.raises(ApiFault, match="may not set the annotation"):
            set_owner('{"user": "root"}')
        assert set_owner(None)["spec"]["template"]["metadata"]["annotations"] == owner
        assert (
            deployed.patch("Deployment", "web", {"spec": {"replicas": 2}})["spec"]["template"]
            == (made["spec"]["template"])
        )
        # The controllers of the cluster go on: there is one replica set, and it has its pods.
        pods = deployed.wait("Pod", lambda found: _of(found, "web", 2))
        assert {one["metadata"]["annotations"][USER_INFO] for one in pods} == {owner[USER_INFO]}
        assert len(deployed.list("ReplicaSet")) == 1


def _of(pods: Any, label: str, number: int) -> Any:
    found = [one for one in pods if one["metadata"]["labels"].get("app") == label]
    return found if len(found) == number else None


def test_namespaces_can_opt_out_and_in(cluster: Cluster, deployed: Kubectl, tmp_path: Path) -> None:
    with serving(cluster, tmp_path):
        mutated(deployed)
        name = "yunikorn.apache.org/namespace.enableYuniKorn"
        meta = {"name": "out", "annotations": {name: "false"}}
        deployed.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        # The pod follows its namespace at once, perhaps before the watch has reported the namespace.
        made = deployed.create(pod("p", "out", scheduler="default-scheduler"))
        assert made["spec"]["schedulerName"] == "default-scheduler"
        assert deployed.create(pod("p", "kube-system", scheduler="other"))["spec"]["schedulerName"] == "other"


def test_settings_follow_the_config_map(cluster: Cluster, deployed: Kubectl, tmp_path: Path) -> None:
    with serving(cluster, tmp_path):
        mutated(deployed)
        data = {"admissionController.filtering.bypassNamespaces": "^default$"}
        meta = {"name": "yunikorn-configs", "namespace": NAMESPACE}
        deployed.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

        def left_alone() -> bool:
            name = f"later-{len(deployed.list('Pod'))}"
            made = deployed.create(pod(name, scheduler="default-scheduler"))
            return bool(made["spec"]["schedulerName"] == "default-scheduler")

        eventually(left_alone)


def test_config_maps_with_problems_are_refused(cluster: Cluster, deployed: Kubectl, tmp_path: Path) -> None:
    with serving(cluster, tmp_path):
        mutated(deployed)
        data = {"service.disableGangScheduling": "maybe", "kubernetes.qps": "many"}
        meta = {"name": "yunikorn-configs", "namespace": NAMESPACE}
        with pytest.raises(ApiFault) as refused:
            deployed.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        assert "service.disableGangScheduling" in str(refused.value)
        assert "kubernetes.qps" in str(refused.value)
        meta = {"name": "yunikorn-configs", "namespace": "default"}
        deployed.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def test_required_validation_holds_while_the_controller_is_away(
    cluster: Cluster, deployed: Kubectl, tmp_path: Path
) -> None:
    def config_map(name: str, namespace: str = NAMESPACE) -> Obj:
        meta = {"name": name, "namespace": namespace}
        data = {"admissionController.webHook.requireValidation": "true"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    deployed.create(config_map("yunikorn-configs"))
    with serving(cluster, tmp_path):
        mutated(deployed)
        deployed.create(config_map("another"))
        deployed.patch("ConfigMap", "yunikorn-configs", {"data": {"log.level": "INFO"}}, namespace=NAMESPACE)
    change = {"data": {"log.level": "WARN"}}

    def is_refused() -> bool:
        try:
            deployed.patch("ConfigMap", "yunikorn-configs", change, namespace=NAMESPACE)
        except ApiFault as fault:
            return "failed calling webhook" in str(fault)
        return False

    eventually(is_refused)
    deployed.patch("ConfigMap", "another", change, namespace=NAMESPACE)
    deployed.create(config_map("yunikorn-configs", "default"))
    unnamed = config_map("")
    unnamed["metadata"] = {"generateName": "yunikorn-configs", "namespace": NAMESPACE}
    deployed.create(unnamed)


def test_damage_is_repaired_at_the_start(cluster: Cluster, deployed: Kubectl, tmp_path: Path) -> None:
    with serving(cluster, tmp_path):
        mutated(deployed)
        authorities = deployed.get("Secret", SECRET, NAMESPACE)["data"]
    deployed.delete("ValidatingWebhookConfiguration", VALIDATIONS)
    deployed.patch(
        "MutatingWebhookConfiguration", MUTATIONS, {"metadata": {"labels": {"app": None, "mine": "yes"}}}
    )
    damaged = {**authorities, "cacert1.pem": "bm9uc2Vuc2U="}
    deployed.patch("Secret", SECRET, {"data": damaged}, namespace=NAMESPACE)
    with serving(cluster, tmp_path):
        mutated(deployed)
        assert deployed.get("ValidatingWebhookConfiguration", VALIDATIONS)["webhooks"]
        labels = deployed.get("MutatingWebhookConfiguration", MUTATIONS)["metadata"]["labels"]
        assert labels == {"app": "yunikorn", "mine": "yes"}
        now = deployed.get("Secret", SECRET, NAMESPACE)["data"]
        assert now["cacert1.pem"] not in (authorities["cacert1.pem"], damaged["cacert1.pem"])
        assert now["cacert2.pem"] == authorities["cacert2.pem"]


def test_the_rights_and_the_secret_of_apache_yunikorn_suffice(
    cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Its chart makes an empty secret, and gives no right to create secrets."""
    meta = {"name": SECRET, "namespace": NAMESPACE}
    objects = [one for one in manifests() if one["kind"] not in ("Deployment", "ConfigMap")]
    for one in objects:
        if one["kind"] == "Role":
            one["rules"] = [
                rule
                for rule in one["rules"]
                if (rule["resources"], rule["verbs"]) != (["secrets"], ["create"])
            ]
    apply(kubectl, [*objects, {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta}])
    with serving(cluster, tmp_path):
        mutated(kubectl)
        assert kubectl.get("Secret", SECRET, NAMESPACE)["data"]["cacert1.pem"]


def test_missing_rights_are_named(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    wanted = ("Namespace", "ServiceAccount")
    apply(kubectl, [one for one in manifests() if one["kind"] in wanted])
    kubeconfig = kubeconfig_of(cluster, ACCOUNT, tmp_path)
    command = [sys.executable, "-m", "yunikorn", "admission", "--kubeconfig", str(kubeconfig)]
    run = subprocess.run(
        [*command, "--namespace", NAMESPACE, "--listen", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 2
    for resource in ("namespaces", "priorityclasses", "configmaps"):
        assert f'cannot list resource "{resource}"' in run.stderr
    assert 'cannot create resource "secrets" in API group "" in the namespace "yunikorn"' in run.stderr
    assert f'cannot update resource "mutatingwebhookconfigurations" "{MUTATIONS}"' in run.stderr
    assert "admission-access.yaml" in run.stderr
