"""Configurations by which the API server calls the webhooks, named as in Apache YuniKorn 1.9."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from yunikorn_kubernetes.config_maps import NAMES
from yunikorn_kubernetes.shim_settings import is_dns_label

MUTATIONS = "yunikorn-admission-controller-mutations"
VALIDATIONS = "yunikorn-admission-controller-validations"
MUTATE_PODS = "admission-webhook.yunikorn.mutate-pods"
VALIDATE_CONFIG = "admission-webhook.yunikorn.validate-conf"
MUTATE_PATH, VALIDATE_PATH = "/mutate", "/validate-conf"
LABELS = {"app": "yunikorn"}
TIMEOUT = 10
"""Seconds for which the API server waits for an answer; without one the failure policy decides."""

LONGEST_HOST = 253
Json = dict[str, Any]


@attrs.frozen
class Reachable:
    """Address of the webhooks for the API server: a service, or a URL where the cluster has none."""

    service: str
    namespace: str
    url: str = ""
    """`https://HOST:PORT` of a controller outside of the cluster; empty for the service."""

    @property
    def hosts(self) -> list[str]:
        """Host names for the certificate."""
        if self.url:
            return [host_of(self.url)]
        return [f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}", self.service]

    def client(self, path: str, authorities: bytes) -> Json:
        """Return the member `clientConfig` of a webhook."""
        bundle = base64.b64encode(authorities).decode()
        if self.url:
            return {"url": f"{self.url}{path}", "caBundle": bundle}
        reference = {"name": self.service, "namespace": self.namespace, "path": path, "port": 443}
        return {"service": reference, "caBundle": bundle}


def host_of(url: str) -> str:
    """Return the host in a URL; empty if there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_host(text: str) -> bool:
    """Return True for an IP address or a host name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= LONGEST_HOST and all(map(is_dns_label, text.split(".")))
    return True


def mutations(reachable: Reachable, authorities: bytes) -> Json:
    """Return the configuration of the webhook that changes pods."""
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["", "apps", "batch"],
        "apiVersions": ["v1"],
        "resources": [
            "pods",
            "deployments",
            "replicasets",
            "replicationcontrollers",
            "statefulsets",
            "daemonsets",
            "jobs",
            "cronjobs",
        ],
        "scope": "*",
    }
    webhook = _webhook(MUTATE_PODS, reachable.client(MUTATE_PATH, authorities), rule)
    return _configuration("MutatingWebhookConfiguration", MUTATIONS, webhook)


def validations(reachable: Reachable, authorities: bytes, *, required: bool = False) -> Json:
    """Return the configuration of the webhook that checks ConfigMaps.

    With `required`, the API server refuses an update that could not be checked.
    """
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        "scope": "*",
    }
    webhook = _webhook(VALIDATE_CONFIG, reachable.client(VALIDATE_PATH, authorities), rule)
    # Other ConfigMaps are no business of the scheduler, there are many, and none of them may be refused while
    # the webhook is away. A name that the API server has yet to generate is missing here.
    webhook["matchConditions"] = [
        {
            "name": "config-maps-of-the-scheduler",
            "expression": f"has(object.metadata.name) && object.metadata.name in {json.dumps(NAMES)}",
        }
    ]
    webhook["failurePolicy"] = "Fail" if required else "Ignore"
    webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": reachable.namespace}}
    return _configuration("ValidatingWebhookConfiguration", VALIDATIONS, webhook)


def _webhook(name: str, client: Json, rule: Json) -> Json:
    return {
        "name": name,
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
        "admissionReviewVersions": ["v1"],
    }


def _configuration(kind: str, name: str, webhook: Json) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": LABELS},
        "webhooks": [webhook],
    }


def needs_repair(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if a configuration in the cluster differs in anything that was wanted.

    Members that the API server adds with their defaults do not count.
    """
    labels = (found.get("metadata") or {}).get("labels") or {}
    if any(labels.get(name) != value for name, value in wanted["metadata"]["labels"].items()):
        return True
    webhooks = found.get("webhooks") or []
    if len(webhooks) != len(wanted["webhooks"]):
        return True
    return any(
        one.get(name) != value
        for one, expected in zip(webhooks, wanted["webhooks"], strict=True)
        for name, value in expected.items()
    )
