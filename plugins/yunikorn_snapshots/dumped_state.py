"""State dumps of Apache YuniKorn 1.6 to 1.9, as far as they decide: `GET /ws/v1/fullstatedump`.

Fields that nothing here needs, such as sums and logs, are skipped while a dump is decoded. A field of another
type is an error with its place, such as `$.applications[3].requests[0].resource`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from yunikorn.errors import printable
from yunikorn.resources import INT64_MAX, INT64_MIN
from yunikorn_snapshots.snapshot_errors import SnapshotError

OLDEST, NEWEST = (1, 6), (1, 9)
"""Versions of YuniKorn whose dumps are read."""
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,3})\.(\d{1,3})(?:\.\d+)?(?![\d.])")
Integer = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Amount = dict[str, Integer]
Tags = dict[str, str]


class DumpedRequest(Struct, frozen=True, rename="camel"):
    """A pending request, or an allocation if it has a node."""

    allocation_key: str
    allocation_tags: Tags = {}
    request_time: Integer = 0
    allocation_time: Integer = 0
    resource: Amount = {}
    priority: Annotated[str, Meta(pattern=r"^-?\d{1,10}$")] = "0"
    node_id: str = ""
    application_id: str = ""
    placeholder: bool = False
    task_group_name: str = ""
    preempted: bool = False
    originator: bool = False


class DumpedPlaceholders(Struct, frozen=True, rename="camel"):
    """Placeholders of a task group."""

    count: Integer = 0
    min_resource: Amount = {}


class DumpedApplication(Struct, frozen=True, rename="camel"):
    """An application, also one that has ended."""

    application_id: str = field(name="applicationID")
    partition: str
    queue_name: str
    submission_time: Integer = 0
    requests: list[DumpedRequest] = []
    allocations: list[DumpedRequest] = []
    state: str = field(name="applicationState", default="")
    user: str = ""
    groups: list[str] = []
    placeholder_data: list[DumpedPlaceholders] = []


class DumpedNode(Struct, frozen=True, rename="camel"):
    """A node with the allocations of others."""

    node_id: str = field(name="nodeID")
    schedulable: bool
    attributes: Tags = {}
    capacity: Amount = {}
    occupied: Amount = {}
    foreign_allocations: list[DumpedRequest] = []
    reservations: list[str] = []


class DumpedNodes(Struct, frozen=True, rename="camel"):
    """Nodes of a partition."""

    partition_name: str
    nodes_info: list[DumpedNode] = []


class DumpedQueue(Struct, frozen=True):
    """A queue with the queues below."""

    queuename: str
    status: str = ""
    children: list[DumpedQueue] = []


class DumpedCluster(Struct, frozen=True, rename="camel"):
    """Resource managers of a partition."""

    rm_build_information: list[Tags] = []


class DumpedConfiguration(Struct, frozen=True, rename="pascal"):
    """Configuration in use."""

    partitions: list[dict[str, Any]] = []


class DumpedState(Struct, frozen=True, rename="camel"):
    """A state dump."""

    timestamp: Integer
    config: DumpedConfiguration
    queues: list[DumpedQueue]
    applications: list[DumpedApplication] = []
    nodes: list[DumpedNodes] = []
    cluster_info: list[DumpedCluster] = []

    @property
    def resource_manager(self) -> str:
        """Id of the resource manager; `dump` if the dump does not say it."""
        found = (one.get("rmId", "") for info in self.cluster_info for one in info.rm_build_information)
        return next(filter(None, found), "dump")

    @property
    def versions(self) -> list[str]:
        """Versions that the resource managers say they were built from."""
        found = (
            one.get("buildVersion", "") for info in self.cluster_info for one in info.rm_build_information
        )
        return sorted(set(filter(None, found)))


def read_state_dump(content: bytes) -> DumpedState:
    """Return the content of a state dump; raises `SnapshotError` with the place of what is wrong."""
    try:
        state = msgspec.json.decode(content, type=DumpedState)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"it is no state dump of YuniKorn 1.6 to 1.9: {_brief(error)}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise SnapshotError(
            f"it is no complete JSON text: {_brief(error)}; `curl -L SERVER/ws/v1/fullstatedump` writes one"
        ) from error
    for said in state.versions:
        match = _VERSION.search(said)
        if match and not OLDEST <= (int(match[1]), int(match[2])) <= NEWEST:
            raise SnapshotError(
                f"clusterInfo: it is a dump of YuniKorn {printable(said)[:80]},"
                " and those of 1.6 to 1.9 are read"
            )
    return state


def _brief(error: Exception) -> str:
    return printable(str(error))[:300]
