# Types of proto/si_current.proto. Made by `python -m yunikorn_service.wire.compile_protos`.

from collections.abc import Iterable, Mapping
from typing import ClassVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from yunikorn_service.wire.generated import si_secret_pb2 as si_secret_pb2

DESCRIPTOR: FileDescriptor
TerminationType: EnumTypeWrapper
UNKNOWN_TERMINATION_TYPE: int
STOPPED_BY_RM: int
TIMEOUT: int
PREEMPTED_BY_SCHEDULER: int
PLACEHOLDER_REPLACED: int
SCHEDULING_FAILED_ON_RM: int
PreemptionMode: EnumTypeWrapper
END: int
REQUEUE: int
SUSPEND: int

class RegisterResourceManagerRequest(Message):
    rmID: str
    version: str
    policyGroup: str
    @property
    def buildInfo(self) -> ScalarMap[str, str]: ...
    config: str
    @property
    def extraConfig(self) -> ScalarMap[str, str]: ...
    @property
    def preemptionModes(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, rmID: str = ..., version: str = ..., policyGroup: str = ..., buildInfo: Mapping[str, str] | None = ..., config: str = ..., extraConfig: Mapping[str, str] | None = ..., preemptionModes: Iterable[int] | None = ...) -> None: ...

class RegisterResourceManagerResponse(Message):
    def __init__(self) -> None: ...

class UpdateConfigurationRequest(Message):
    rmID: str
    policyGroup: str
    config: str
    @property
    def extraConfig(self) -> ScalarMap[str, str]: ...
    def __init__(self, *, rmID: str = ..., policyGroup: str = ..., config: str = ..., extraConfig: Mapping[str, str] | None = ...) -> None: ...

class AllocationRequest(Message):
    @property
    def releases(self) -> AllocationReleasesRequest: ...
    rmID: str
    @property
    def allocations(self) -> RepeatedCompositeFieldContainer[Allocation]: ...
    def __init__(self, *, releases: AllocationReleasesRequest | None = ..., rmID: str = ..., allocations: Iterable[Allocation] | None = ...) -> None: ...

class AllocationResponse(Message):
    @property
    def new(self) -> RepeatedCompositeFieldContainer[Allocation]: ...
    @property
    def released(self) -> RepeatedCompositeFieldContainer[AllocationRelease]: ...
    @property
    def rejectedAllocations(self) -> RepeatedCompositeFieldContainer[RejectedAllocation]: ...
    def __init__(self, *, new: Iterable[Allocation] | None = ..., released: Iterable[AllocationRelease] | None = ..., rejectedAllocations: Iterable[RejectedAllocation] | None = ...) -> None: ...

class Allocation(Message):
    allocationKey: str
    @property
    def allocationTags(self) -> ScalarMap[str, str]: ...
    @property
    def resourcePerAlloc(self) -> Resource: ...
    priority: int
    nodeID: str
    applicationID: str
    partitionName: str
    taskGroupName: str
    placeholder: bool
    originator: bool
    @property
    def preemptionPolicy(self) -> PreemptionPolicy: ...
    def __init__(self, *, allocationKey: str = ..., allocationTags: Mapping[str, str] | None = ..., resourcePerAlloc: Resource | None = ..., priority: int = ..., nodeID: str = ..., applicationID: str = ..., partitionName: str = ..., taskGroupName: str = ..., placeholder: bool = ..., originator: bool = ..., preemptionPolicy: PreemptionPolicy | None = ...) -> None: ...

class PreemptionPolicy(Message):
    allowPreemptSelf: bool
    allowPreemptOther: bool
    def __init__(self, *, allowPreemptSelf: bool = ..., allowPreemptOther: bool = ...) -> None: ...

class Resource(Message):
    @property
    def resources(self) -> MessageMap[str, Quantity]: ...
    def __init__(self, *, resources: Mapping[str, Quantity] | None = ...) -> None: ...

class Quantity(Message):
    value: int
    def __init__(self, *, value: int = ...) -> None: ...

class AllocationReleasesRequest(Message):
    @property
    def allocationsToRelease(self) -> RepeatedCompositeFieldContainer[AllocationRelease]: ...
    def __init__(self, *, allocationsToRelease: Iterable[AllocationRelease] | None = ...) -> None: ...

class AllocationRelease(Message):
    partitionName: str
    applicationID: str
    terminationType: int
    message: str
    allocationKey: str
    preemptionMode: int
    def __init__(self, *, partitionName: str = ..., applicationID: str = ..., terminationType: int = ..., message: str = ..., allocationKey: str = ..., preemptionMode: int = ...) -> None: ...

class RejectedAllocation(Message):
    allocationKey: str
    applicationID: str
    reason: str
    def __init__(self, *, allocationKey: str = ..., applicationID: str = ..., reason: str = ...) -> None: ...

class ApplicationRequest(Message):
    @property
    def new(self) -> RepeatedCompositeFieldContainer[AddApplicationRequest]: ...
    @property
    def remove(self) -> RepeatedCompositeFieldContainer[RemoveApplicationRequest]: ...
    rmID: str
    def __init__(self, *, new: Iterable[AddApplicationRequest] | None = ..., remove: Iterable[RemoveApplicationRequest] | None = ..., rmID: str = ...) -> None: ...

class ApplicationResponse(Message):
    @property
    def rejected(self) -> RepeatedCompositeFieldContainer[RejectedApplication]: ...
    @property
    def accepted(self) -> RepeatedCompositeFieldContainer[AcceptedApplication]: ...
    @property
    def updated(self) -> RepeatedCompositeFieldContainer[UpdatedApplication]: ...
    def __init__(self, *, rejected: Iterable[RejectedApplication] | None = ..., accepted: Iterable[AcceptedApplication] | None = ..., updated: Iterable[UpdatedApplication] | None = ...) -> None: ...

class AddApplicationRequest(Message):
    applicationID: str
    queueName: str
    partitionName: str
    @property
    def ugi(self) -> UserGroupInformation: ...
    @property
    def tags(self) -> ScalarMap[str, str]: ...
    executionTimeoutMilliSeconds: int
    @property
    def placeholderAsk(self) -> Resource: ...
    gangSchedulingStyle: str
    def __init__(self, *, applicationID: str = ..., queueName: str = ..., partitionName: str = ..., ugi: UserGroupInformation | None = ..., tags: Mapping[str, str] | None = ..., executionTimeoutMilliSeconds: int = ..., placeholderAsk: Resource | None = ..., gangSchedulingStyle: str = ...) -> None: ...

class RemoveApplicationRequest(Message):
    applicationID: str
    partitionName: str
    def __init__(self, *, applicationID: str = ..., partitionName: str = ...) -> None: ...

class UserGroupInformation(Message):
    user: str
    @property
    def groups(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(self, *, user: str = ..., groups: Iterable[str] | None = ...) -> None: ...

class UpdatedApplication(Message):
    applicationID: str
    state: str
    stateTransitionTimestamp: int
    message: str
    def __init__(self, *, applicationID: str = ..., state: str = ..., stateTransitionTimestamp: int = ..., message: str = ...) -> None: ...

class RejectedApplication(Message):
    applicationID: str
    reason: str
    def __init__(self, *, applicationID: str = ..., reason: str = ...) -> None: ...

class AcceptedApplication(Message):
    applicationID: str
    def __init__(self, *, applicationID: str = ...) -> None: ...

class NodeRequest(Message):
    @property
    def nodes(self) -> RepeatedCompositeFieldContainer[NodeInfo]: ...
    rmID: str
    def __init__(self, *, nodes: Iterable[NodeInfo] | None = ..., rmID: str = ...) -> None: ...

class NodeResponse(Message):
    @property
    def rejected(self) -> RepeatedCompositeFieldContainer[RejectedNode]: ...
    @property
    def accepted(self) -> RepeatedCompositeFieldContainer[AcceptedNode]: ...
    def __init__(self, *, rejected: Iterable[RejectedNode] | None = ..., accepted: Iterable[AcceptedNode] | None = ...) -> None: ...

class NodeInfo(Message):
    ActionFromRM: ClassVar[EnumTypeWrapper]
    UNKNOWN_ACTION_FROM_RM: ClassVar[int]
    CREATE: ClassVar[int]
    UPDATE: ClassVar[int]
    DRAIN_NODE: ClassVar[int]
    DECOMISSION: ClassVar[int]
    DRAIN_TO_SCHEDULABLE: ClassVar[int]
    CREATE_DRAIN: ClassVar[int]
    nodeID: str
    action: int
    @property
    def attributes(self) -> ScalarMap[str, str]: ...
    @property
    def schedulableResource(self) -> Resource: ...
    def __init__(self, *, nodeID: str = ..., action: int = ..., attributes: Mapping[str, str] | None = ..., schedulableResource: Resource | None = ...) -> None: ...

class RejectedNode(Message):
    nodeID: str
    reason: str
    def __init__(self, *, nodeID: str = ..., reason: str = ...) -> None: ...

class AcceptedNode(Message):
    nodeID: str
    def __init__(self, *, nodeID: str = ...) -> None: ...
