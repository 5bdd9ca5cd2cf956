"""Sentences with which kube-scheduler refuses a node; refusals of the predicates begin with them.

People and tools search for these words. Where kube-scheduler has no refusal of a node of the kind, as for
constraints that cannot be read, or for what is not supported here, a refusal has words of its own.
"""

from __future__ import annotations

from enum import StrEnum


class RefusalSentence(StrEnum):
    """Sentence of one refusal of kube-scheduler 1.36."""

    UNSCHEDULABLE = "node(s) were unschedulable"
    NODE_NAME = "node(s) didn't match the requested node name"
    TAINT = "node(s) had untolerated taint(s)"
    NODE_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
    PORTS = "node(s) didn't have free ports for the requested pod ports"
    DISK = "node(s) had no available disk"
    ONCE_POD = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
        " another pod"
    )
    VOLUME_COUNT = "node(s) exceed max volume count"
    VOLUME_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
    NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
    NO_STORAGE = "node(s) did not have enough free storage"
    VOLUME_ZONE = "node(s) had no available volume zone"
    SPREAD = "node(s) didn't match pod topology spread constraints"
    SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
    AFFINITY = "node(s) didn't match pod affinity rules"
    ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
    ANTI_AFFINITY_OF_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"

    def because(self, detail: str) -> str:
        """Return the refusal with what kube-scheduler does not say."""
        return f"{self}: {detail}"
