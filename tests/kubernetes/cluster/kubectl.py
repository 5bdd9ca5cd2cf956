"""A small client of the API server for tests: plain JSON objects, independent of the client under test."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

Obj = dict[str, Any]
"""An object of the API, as its JSON."""
Objs = list[Obj]
T = TypeVar("T")

_UNKNOWN_YET = "no PriorityClass with name"
PATIENCE = 60.0
"""Seconds that a wait takes at most; far more than any needs, because test machines are busy."""
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


@dataclass(frozen=True)
class Kind:
    """Place of a kind of object in the API."""

    group_version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or of a collection; `namespace` may be empty for all namespaces."""
        root = "/api" if "/" not in self.group_version else "/apis"
        parts = [root, self.group_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace)]
        parts += [self.plural, quote(name), subresource]
        return "/".join(part for part in parts if part)


KINDS = {
    "Binding": Kind("v1", "bindings"),
    "ConfigMap": Kind("v1", "configmaps"),
    "Endpoints": Kind("v1", "endpoints"),
    "Event": Kind("v1", "events"),
    "LimitRange": Kind("v1", "limitranges"),
    "Namespace": Kind("v1", "namespaces", False),
    "Node": Kind("v1", "nodes", False),
    "PersistentVolume": Kind("v1", "persistentvolumes", False),
    "PersistentVolumeClaim": Kind("v1", "persistentvolumeclaims"),
    "Pod": Kind("v1", "pods"),
    "ReplicationController": Kind("v1", "replicationcontrollers"),
    "ResourceQuota": Kind("v1", "resourcequotas"),
    "Secret": Kind("v1", "secrets"),
    "Service": Kind("v1", "services"),
    "ServiceAccount": Kind("v1", "serviceaccounts"),
    "MutatingWebhookConfiguration": Kind(
        "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", False
    ),
    "CustomResourceDefinition": Kind("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "ValidatingWebhookConfiguration": Kind(
        "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", False
    ),
    "ControllerRevision": Kind("apps/v1", "controllerrevisions"),
    "DaemonSet": Kind("apps/v1", "daemonsets"),
    "Deployment": Kind("apps/v1", "deployments"),
    "ReplicaSet": Kind("apps/v1", "replicasets"),
    "StatefulSet": Kind("apps/v1", "statefulsets"),
    "CronJob": Kind("batch/v1", "cronjobs"),
    "Job": Kind("batch/v1", "jobs"),
    "Lease": Kind("coordination.k8s.io/v1", "leases"),
    "EndpointSlice": Kind("discovery.k8s.io/v1", "endpointslices"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "ClusterRole": Kind("rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": Kind("rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Role": Kind("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Kind("rbac.authorization.k8s.io/v1", "rolebindings"),
    "DeviceClass": Kind("resource.k8s.io/v1", "deviceclasses", False),
    "ResourceClaim": Kind("resource.k8s.io/v1", "resourceclaims"),
    "ResourceClaimTemplate": Kind("resource.k8s.io/v1", "resourceclaimtemplates"),
    "ResourceSlice": Kind("resource.k8s.io/v1", "resourceslices", False),
    "DeviceTaintRule": Kind("resource.k8s.io/v1beta2", "devicetaintrules", False),
    "PriorityClass": Kind("scheduling.k8s.io/v1", "priorityclasses", False),
    "Workload": Kind("scheduling.k8s.io/v1alpha2", "workloads"),
    "PodGroup": Kind("scheduling.k8s.io/v1alpha2", "podgroups"),
    "CSIDriver": Kind("storage.k8s.io/v1", "csidrivers", False),
    "CSINode": Kind("storage.k8s.io/v1", "csinodes", False),
    "CSIStorageCapacity": Kind("storage.k8s.io/v1", "csistoragecapacities"),
    "StorageClass": Kind("storage.k8s.io/v1", "storageclasses", False),
    "VolumeAttachment": Kind("storage.k8s.io/v1", "volumeattachments", False),
}
"""All kinds that tests use."""


class ApiFault(Exception):
    """An answer of the API server that is no success."""

    def __init__(self, status: int, reason: str, message: str, what: str) -> None:
        """Create it from the `Status` object; `what` names the call."""
        super().__init__(f"{what}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


Changes = list[tuple[str, Obj]]


class _Watch:
    """A stream of changes; a context manager that closes its connection."""

    def __init__(self, connection: http.client.HTTPSConnection, path: str, headers: dict[str, str]) -> None:
        self._connection = connection
        self._path = path
        self._headers = headers
        self._queue: queue.SimpleQueue[tuple[str, Obj] | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None

    def __enter__(self) -> _Watch:
        try:
            self._connection.request("GET", self._path, headers=self._headers)
            self._response = self._connection.getresponse()
            if self._response.status != 200:
                raise _fault(self._response.status, self._response.read(), f"watch {self._path}")
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            with suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
            self._reader.join()
        self._response.close()
        self._connection.close()

    def changes(self) -> Iterator[tuple[str, Obj]]:
        """Yield each change when it arrives, until the stream ends."""
        while line := self._response.readline():
            event = json.loads(line)
            yield event["type"], event["object"]

    def batches(self, deadline: float) -> Iterator[Changes]:
        """Yield lists of the changes since the last list, until the stream or the time ends.

        The condition of a wait may take longer than a change, and need not be asked after each of a thousand.
        """
        self._reader = threading.Thread(target=self._read, name="watch", daemon=True)
        self._reader.start()
        ended = False
        while not ended and (left := deadline - time.monotonic()) > 0:
            found: Changes = []
            with suppress(queue.Empty):
                change = self._queue.get(timeout=left)
                while change is not None:
                    found.append(change)
                    change = self._queue.get_nowait()
                ended = True
            yield found

    def _read(self) -> None:
        with suppress(OSError, ValueError, http.client.HTTPException):
            for change in self.changes():
                self._queue.put(change)
        self._queue.put(None)


class Kubectl:
    """Calls of one API server by one user. Usable by several threads at the same time."""

    def __init__(self, url: str, token: str, ca: Path) -> None:
        """Create it; nothing is sent yet."""
        self.url = url
        self.token = token
        self._ca = ca
        self._context: ssl.SSLContext | None = None
        self._idle: list[http.client.HTTPSConnection] = []
        self._others: list[Kubectl] = []

    # -- objects --------------------------------------------------------------------------------------

    def create(self, obj: Obj, **query: str) -> Obj:
        """Create an object, in the namespace of its metadata or in `default`; return what the server made.

        The server refuses pods of a new PriorityClass until its own watch has reported that; such pods are
        created once it has.
        """
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while True:
            try:
                return self.request("POST", _kind_of(obj).path(_namespace_of(obj)), obj, **query)
            except ApiFault as fault:
                if _UNKNOWN_YET not in str(fault) or time.monotonic() > deadline:
                    raise
            pause.wait(0.02)

    def create_all(self, objects: Sequence[Obj]) -> list[Obj]:
        """Create objects one after the other."""
        return [self.create(obj) for obj in objects]

    def get(self, kind: str, name: str, namespace: str = "default") -> Obj:
        """Return an object; raise `ApiFault` with status 404 if there is none."""
        return self.request("GET", KINDS[kind].path(namespace, name))

    def find(self, kind: str, name: str, namespace: str = "default") -> Obj | None:
        """Return an object, or None."""
        try:
            return self.get(kind, name, namespace)
        except ApiFault as fault:
            if fault.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Obj]:
        """Return the objects of a kind, of all namespaces by default, that match the selectors."""
        return self._list(kind, namespace, labels, fields)[0]

    def count(self, kind: str) -> int:
        """Return the number of objects of a kind in all namespaces, without reading them."""
        answer = self.request("GET", KINDS[kind].path(), limit="1")
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def replace(self, obj: Obj, subresource: str = "") -> Obj:
        """Replace an object; its resourceVersion, if present, must be the current one."""
        path = _kind_of(obj).path(_namespace_of(obj), obj["metadata"]["name"], subresource)
        return self.request("PUT", path, obj)

    def patch(
        self,
        kind: str,
        name: str,
        change: Any,
        namespace: str = "default",
        *,
        subresource: str = "",
        style: str = "merge",
    ) -> Obj:
        """Change an object by a patch; `style` is `merge`, `strategic` or `json`."""
        path = KINDS[kind].path(namespace, name, subresource)
        return self.request("PATCH", path, change, content_type=PATCHES[style])

    def delete(self, kind: str, name: str, namespace: str = "default", *, grace: int | None = None) -> Obj:
        """Delete an object with what it owns; `grace` is in seconds, 0 removes a pod at once."""
        return self.request("DELETE", KINDS[kind].path(namespace, name), _deletion(grace))

    def delete_all(
        self, kind: str, namespace: str = "", *, labels: str = "", grace: int | None = None
    ) -> None:
        """Delete all objects of a kind in one namespace, or of a kind without namespaces."""
        query = {"labelSelector": labels} if labels else {}
        self.request("DELETE", KINDS[kind].path(namespace), _deletion(grace), **query)

    def bind(self, pod: Obj, node: str) -> None:
        """Bind a pod to a node, as a scheduler does."""
        meta = pod["metadata"]
        self.request(
            "POST",
            KINDS["Pod"].path(meta["namespace"], meta["name"], "binding"),
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            },
        )

    def service_account_token(self, name: str, namespace: str = "default") -> str:
        """Return a new token of a service account, valid for an hour."""
        path = KINDS["ServiceAccount"].path(namespace, name, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.request("POST", path, body)["status"]["token"])

    def as_user(self, token: str) -> Kubectl:
        """Return a client of the same server with another token."""
        self._others.append(Kubectl(self.url, token, self._ca))
        return self._others[-1]

    def close(self) -> None:
        """Close the idle connections, also those of other users; later calls open new ones."""
        for other in self._others:
            other.close()
        while self._idle:
            self._idle.pop().close()

    # -- waits ----------------------------------------------------------------------------------------

    def wait(
        self,
        kind: str,
        condition: Callable[[Objs], T | None],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        timeout: float = PATIENCE,
    ) -> T:
        """Watch the objects of a kind until the condition of all of them returns something true; return that.

        The condition is asked at once, then whenever there are changes. A server that is away is waited for.
        Raise `AssertionError` with the latest objects after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        seen: dict[tuple[str, str], Obj] = {}
        pause = threading.Event()
        while (left := deadline - time.monotonic()) > 0:
            try:
                items, version = self._list(kind, namespace, labels, fields)
                seen = {_key(obj): obj for obj in items}
                if found := condition(list(seen.values())):
                    return found
                with self._open_watch(kind, namespace, version, labels, fields, left) as watch:
                    for changes in watch.batches(deadline):
                        for event, obj in changes:
                            if event == "DELETED":
                                seen.pop(_key(obj), None)
                            elif event in ("ADDED", "MODIFIED"):
                                seen[_key(obj)] = obj
                        if found := condition(list(seen.values())):
                            return found
                        if any(event == "ERROR" for event, _ in changes):
                            break
            except (OSError, http.client.HTTPException):
                pause.wait(0.1)
            except ApiFault as fault:
                if fault.status not in (410, 429, 500, 503):
                    raise
                pause.wait(0.1)
        raise AssertionError(f"after {timeout:g} s the {kind}s are: {[_brief(obj) for obj in seen.values()]}")

    def wait_for(
        self,
        kind: str,
        name: str,
        condition: Callable[[Obj], T | None],
        namespace: str = "default",
        *,
        timeout: float = PATIENCE,
    ) -> T:
        """Wait until an object exists and its condition returns something true; return that."""
        namespace = namespace if KINDS[kind].namespaced else ""
        return self.wait(
            kind,
            lambda items: next((found for obj in items if (found := condition(obj))), None),
            namespace,
            fields=f"metadata.name={name}",
            timeout=timeout,
        )

    def wait_gone(
        self, kind: str, name: str, namespace: str = "default", *, timeout: float = PATIENCE
    ) -> None:
        """Wait until no object of this name exists."""
        namespace = namespace if KINDS[kind].namespaced else ""
        self.wait(kind, lambda items: not items, namespace, fields=f"metadata.name={name}", timeout=timeout)

    def watch(
        self,
        kind: str,
        namespace: str = "",
        version: str = "",
        *,
        labels: str = "",
        fields: str = "",
        timeout: float = PATIENCE,
    ) -> Iterator[tuple[str, Obj]]:
        """Yield changes since a resourceVersion, as type and object, for `timeout` seconds at most."""
        with self._open_watch(kind, namespace, version, labels, fields, timeout) as watch:
            yield from watch.changes()

    def _open_watch(
        self, kind: str, namespace: str, version: str, labels: str, fields: str, timeout: float
    ) -> _Watch:
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(timeout) + 1),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        path = (
            f"{KINDS[kind].path(namespace)}?{urlencode({key: text for key, text in query.items() if text})}"
        )
        return _Watch(self._connect(timeout + 1), path, self._headers())

    # -- requests -------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> Obj:
        """Send a request and return the JSON of its answer; raise `ApiFault` if it is no success."""
        status, answer = self.call(method, path, body, content_type=content_type, **query)
        if status >= 300:
            raise _fault(status, answer, f"{method} {path}")
        return json.loads(answer) if answer.startswith(b"{") else {}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> tuple[int, bytes]:
        """Send a request and return status and body of its answer, whatever they are."""
        if query:
            path = f"{path}?{urlencode(query)}"
        payload = None if body is None else json.dumps(body)
        headers = {**self._headers(), "Content-Type": content_type}
        while True:
            kept = self._take()
            connection = kept or self._connect(PATIENCE)
            try:
                connection.request(method, path, payload, headers)
                response = connection.getresponse()
                answer = response.status, response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                # The server closes idle connections; only a failure of a new one means that it is away.
                if kept is None:
                    raise
            else:
                self._idle.append(connection)
                return answer

    def _take(self) -> http.client.HTTPSConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        address = urlsplit(self.url)
        assert address.hostname is not None
        if self._context is None:
            self._context = ssl.create_default_context(cafile=str(self._ca))
        return http.client.HTTPSConnection(
            address.hostname, address.port, timeout=timeout, context=self._context
        )

    def _list(self, kind: str, namespace: str, labels: str, fields: str) -> tuple[Objs, str]:
        query = {"labelSelector": labels, "fieldSelector": fields}
        path = KINDS[kind].path(namespace)
        answer = self.request("GET", path, **{key: text for key, text in query.items() if text})
        # Items of a list do not name their kind.
        named = {"apiVersion": KINDS[kind].group_version, "kind": kind}
        return [{**named, **obj} for obj in answer["items"]], answer["metadata"]["resourceVersion"]


def _kind_of(obj: Obj) -> Kind:
    kind = KINDS[obj["kind"]]
    assert obj["apiVersion"] == kind.group_version, f"{obj['kind']} is served in {kind.group_version}"
    return kind


def _namespace_of(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _key(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"].get("name", "")


def _deletion(grace: int | None) -> Obj:
    options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options


def _fault(status: int, answer: bytes, what: str) -> ApiFault:
    try:
        told = json.loads(answer)
        return ApiFault(status, told.get("reason", ""), told.get("message", ""), what)
    except (ValueError, AttributeError):
        return ApiFault(status, "", answer.decode("utf-8", "replace").strip(), what)


def _brief(obj: Obj) -> Obj:
    """Return the part of an object that tells most in a failed test."""
    meta, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
    found = {
        "name": "/".join(part for part in _key(obj) if part),
        "node": spec.get("nodeName"),
        "phase": status.get("phase"),
        "deleted": meta.get("deletionTimestamp"),
        "conditions": [
            f"{one.get('type')}={one.get('status')} {one.get('message', '')}".strip()
            for one in status.get("conditions") or []
        ],
    }
    return {key: value for key, value in found.items() if value}
