"""Deletion of everything that a test made in the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.kubernetes.cluster.kubectl import KINDS, PATIENCE, ApiFault, Kubectl, Obj

_FIRST = (
    # Webhooks of a scheduler that has ended would refuse all that follows.
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    # Owners before what they make.
    "CronJob",
    "Deployment",
    "DaemonSet",
    "Job",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "Pod",
)
_MANY = 1500
"""Objects from which on a new store is faster than deletions."""
_NEVER = ("Binding", "Namespace")
_KINDS = (*_FIRST, *(kind for kind in KINDS if kind not in (*_FIRST, *_NEVER)))
_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_KEPT = ("default", "kubernetes", "kube-root-ca.crt")
_KEPT_PREFIXES = ("system:", "apiserver-", "kube-apiserver-")


class Reset:
    """Brings a cluster back to the objects that `remember` found."""

    def __init__(self, kubectl: Kubectl) -> None:
        """Create it for a cluster."""
        self._kubectl = kubectl
        self._known: set[tuple[str, str, str]] | None = None
        self._namespaces = frozenset(_SYSTEM_NAMESPACES)

    def remember(self) -> None:
        """Remember all objects that are in the cluster now; only the first call counts."""
        if self._known is None:
            self._known = self._all()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep, until the block ends, what exists now."""
        before = self._known, self._namespaces
        self._known = self._all()
        self._namespaces = frozenset(one["metadata"]["name"] for one in self._kubectl.list("Namespace"))
        try:
            yield
        finally:
            self._known, self._namespaces = before

    def _all(self) -> set[tuple[str, str, str]]:
        return {(kind, *_key(obj)) for kind in _KINDS for obj in self._kubectl.list(kind)}

    def is_large(self) -> bool:
        """Return True if so many objects have been made that deletions would take long."""
        if self._namespaces != set(_SYSTEM_NAMESPACES):
            return False
        return sum(self._kubectl.count(kind) for kind in ("Event", "Job", "Node", "Pod")) > _MANY

    def run(self) -> None:
        """Delete all other objects; raise `AssertionError` if some cannot be deleted."""
        deadline = time.monotonic() + 2 * PATIENCE
        pause = threading.Event()
        left = self._delete(force=False)
        while left:
            if time.monotonic() > deadline:
                raise AssertionError(f"the cluster cannot be reset, these remain: {left[:20]}")
            pause.wait(0.05)
            left = self._delete(force=True)

    def _delete(self, *, force: bool) -> list[tuple[str, str, str]]:
        """Delete what is too much, and return it: it may not be gone yet.

        With `force`, finalizers are dropped: controllers that drop them need time, and may be stopped.
        """
        left = []
        for kind in _KINDS:
            extra = [obj for obj in self._kubectl.list(kind) if self._is_extra(kind, obj)]
            left += [(kind, *_key(obj)) for obj in extra]
            self._delete_objects(kind, [obj for obj in extra if not obj["metadata"].get("deletionTimestamp")])
            if force or kind == "Pod":
                for obj in extra:
                    if obj["metadata"].get("finalizers"):
                        self._drop_finalizers(kind, obj)
        left += self._delete_namespaces(empty=not left)
        return left

    def _is_extra(self, kind: str, obj: Obj) -> bool:
        assert self._known is not None
        namespace, name = _key(obj)
        if (kind, namespace, name) in self._known:
            return False
        # What the control plane makes by itself, at any time.
        kept = name in _KEPT or name.startswith(_KEPT_PREFIXES)
        return not (kept and namespace in ("", *_SYSTEM_NAMESPACES)) and not (
            kind == "EndpointSlice" and name.startswith("kubernetes-")
        )

    def _delete_objects(self, kind: str, extra: list[Obj]) -> None:
        by_namespace: dict[str, list[str]] = {}
        for obj in extra:
            namespace, name = _key(obj)
            by_namespace.setdefault(namespace, []).append(name)
        assert self._known is not None
        mixed = {namespace for known, namespace, _ in self._known if known == kind}
        for namespace, names in by_namespace.items():
            if kind in ("Pod", "Event", "Node") or (len(names) > 10 and namespace not in mixed):
                _unless_gone(partial(self._kubectl.delete_all, kind, namespace, grace=0))
                continue
            for name in names:
                _unless_gone(partial(self._kubectl.delete, kind, name, namespace, grace=0))

    def _drop_finalizers(self, kind: str, obj: Obj) -> None:
        namespace, name = _key(obj)
        change = {"metadata": {"finalizers": None}}
        _unless_gone(lambda: self._kubectl.patch(kind, name, change, namespace))

    def _delete_namespaces(self, *, empty: bool) -> list[tuple[str, str, str]]:
        left = []
        for obj in self._kubectl.list("Namespace"):
            name = obj["metadata"]["name"]
            if name in self._namespaces:
                continue
            left.append(("Namespace", "", name))
            if not obj["metadata"].get("deletionTimestamp"):
                _unless_gone(partial(self._kubectl.delete, "Namespace", name))
            elif empty:
                # The namespace controller would find this out some seconds later.
                final = {**obj, "spec": {"finalizers": []}}
                _unless_gone(partial(self._kubectl.replace, final, "finalize"))
        return left


def _key(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _unless_gone(call: Callable[[], object]) -> None:
    """Call, and leave an object that is gone or was changed meanwhile to the next pass."""
    try:
        call()
    except ApiFault as fault:
        if fault.status not in (404, 409):
            raise
