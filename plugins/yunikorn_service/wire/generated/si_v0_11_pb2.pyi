# Types of proto/si_v0_11.proto. Made by `python -m yunikorn_service.wire.compile_protos`.

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
STOPPED_BY_RM: int
TIMEOUT: int
PREEMPTED_BY_SCHEDULER: int
PLACEHOLDER_REPLACED: int
UNKNOWN_TERMINATION_TYPE: int
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

class UpdateRequest(Message):
    @property
    def asks(self) -> RepeatedCompositeFieldContainer[AllocationAsk]: ...
    @property
    def releases(self) -> AllocationReleasesRequest: ...
    @property
    def newSchedulableNodes(self) -> RepeatedCompositeFieldContainer[NewNodeInfo]: ...
    @property
    def updatedNodes(self) -> RepeatedCompositeFieldContainer[UpdateNodeInfo]: ...
    rmID: str
    @property
    def newApplications(self) -> RepeatedCompositeFieldContainer[AddApplicationRequest]: ...
    @property
    def removeApplications(self) -> RepeatedCompositeFieldContainer[RemoveApplicationRequest]: ...
    @property
    def allocations(self) -> RepeatedCompositeFieldContainer[Allocation]: ...
    def __init__(self, *, asks: Iterable[AllocationAsk] | None = ..., releases: AllocationReleasesRequest | None = ..., newSchedulableNodes: Iterable[NewNodeInfo] | None = ..., updatedNodes: Iterable[UpdateNodeInfo] | None = ..., rmID: str = ..., newApplications: Iterable[AddApplicationRequest] | None = ..., removeApplications: Iterable[RemoveApplicationRequest] | None = ..., allocations: Iterable[Allocation] | None = ...) -> None: ...

class UpdateResponse(Message):
    ActionFromScheduler: ClassVar[EnumTypeWrapper]
    NOACTION: ClassVar[int]
    RESYNC: ClassVar[int]
    action: int
    @property
    def newAllocations(self) -> RepeatedCompositeFieldContainer[Allocation]: ...
    @property
    def releasedAllocations(self) -> RepeatedCompositeFieldContainer[AllocationRelease]: ...
    @property
    def releasedAllocationAsks(self) -> RepeatedCompositeFieldContainer[AllocationAskRelease]: ...
    @property
    def rejectedAllocations(self) -> RepeatedCompositeFieldContainer[RejectedAllocationAsk]: ...
    @property
    def rejectedApplications(self) -> RepeatedCompositeFieldContainer[RejectedApplication]: ...
    @property
    def acceptedApplications(self) -> RepeatedCompositeFieldContainer[AcceptedApplication]: ...
    @property
    def updatedApplications(self) -> RepeatedCompositeFieldContainer[UpdatedApplication]: ...
    @property
    def rejectedNodes(self) -> RepeatedCompositeFieldContainer[RejectedNode]: ...
    @property
    def acceptedNodes(self) -> RepeatedCompositeFieldContainer[AcceptedNode]: ...
    @property
    def failedNodeUpdates(self) -> RepeatedCompositeFieldContainer[FailedNodeUpdate]: ...
    def __init__(self, *, action: int = ..., newAllocations: Iterable[Allocation] | None = ..., releasedAllocations: Iterable[AllocationRelease] | None = ..., releasedAllocationAsks: Iterable[AllocationAskRelease] | None = ..., rejectedAllocations: Iterable[RejectedAllocationAsk] | None = ..., rejectedApplications: Iterable[RejectedApplication] | None = ..., acceptedApplications: Iterable[AcceptedApplication] | None = ..., updatedApplications: Iterable[UpdatedApplication] | None = ..., rejectedNodes: Iterable[RejectedNode] | None = ..., acceptedNodes: Iterable[AcceptedNode] | None = ..., failedNodeUpdates: Iterable[FailedNodeUpdate] | None = ...) -> None: ...

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

class RejectedNode(Message):
    nodeID: str
    reason: str
    def __init__(self, *, nodeID: str = ..., reason: str = ...) -> None: ...

class AcceptedNode(Message):
    nodeID: str
    def __init__(self, *, nodeID: str = ...) -> None: ...

class RejectedAllocationAsk(Message):
    allocationKey: str
    applicationID: str
    reason: str
    def __init__(self, *, allocationKey: str = ..., applicationID: str = ..., reason: str = ...) -> None: ...

class FailedNodeUpdate(Message):
    nodeID: str
    reason: str
    def __init__(self, *, nodeID: str = ..., reason: str = ...) -> None: ...

class Priority(Message):
    priorityValue: int
    priorityClassName: str
    def __init__(self, *, priorityValue: int = ..., priorityClassName: str = ...) -> None: ...

class Resource(Message):
    @property
    def resources(self) -> MessageMap[str, Quantity]: ...
    def __init__(self, *, resources: Mapping[str, Quantity] | None = ...) -> None: ...

class Quantity(Message):
    value: int
    def __init__(self, *, value: int = ...) -> None: ...

class PreemptionPolicy(Message):
    allowPreemptSelf: bool
    allowPreemptOther: bool
    def __init__(self, *, allowPreemptSelf: bool = ..., allowPreemptOther: bool = ...) -> None: ...

class AllocationAsk(Message):
    allocationKey: str
    applicationID: str
    partitionName: str
    @property
    def resourceAsk(self) -> Resource: ...
    maxAllocations: int
    @property
    def priority(self) -> Priority: ...
    executionTimeoutMilliSeconds: int
    @property
    def tags(self) -> ScalarMap[str, str]: ...
    taskGroupName: str
    placeholder: bool
    originator: bool
    @property
    def preemptionPolicy(self) -> PreemptionPolicy: ...
    def __init__(self, *, allocationKey: str = ..., applicationID: str = ..., partitionName: str = ..., resourceAsk: Resource | None = ..., maxAllocations: int = ..., priority: Priority | None = ..., executionTimeoutMilliSeconds: int = ..., tags: Mapping[str, str] | None = ..., taskGroupName: str = ..., placeholder: bool = ..., originator: bool = ..., preemptionPolicy: PreemptionPolicy | None = ...) -> None: ...

class Allocation(Message):
    allocationKey: str
    @property
    def allocationTags(self) -> ScalarMap[str, str]: ...
    UUID: str
    @property
    def resourcePerAlloc(self) -> Resource: ...
    @property
    def priority(self) -> Priority: ...
    queueName: str
    nodeID: str
    applicationID: str
    partitionName: str
    taskGroupName: str
    placeholder: bool
    originator: bool
    @property
    def preemptionPolicy(self) -> PreemptionPolicy: ...
    def __init__(self, *, allocationKey: str = ..., allocationTags: Mapping[str, str] | None = ..., UUID: str = ..., resourcePerAlloc: Resource | None = ..., priority: Priority | None = ..., queueName: str = ..., nodeID: str = ..., applicationID: str = ..., partitionName: str = ..., taskGroupName: str = ..., placeholder: bool = ..., originator: bool = ..., preemptionPolicy: PreemptionPolicy | None = ...) -> None: ...

class AllocationReleasesRequest(Message):
    @property
    def allocationsToRelease(self) -> RepeatedCompositeFieldContainer[AllocationRelease]: ...
    @property
    def allocationAsksToRelease(self) -> RepeatedCompositeFieldContainer[AllocationAskRelease]: ...
    def __init__(self, *, allocationsToRelease: Iterable[AllocationRelease] | None = ..., allocationAsksToRelease: Iterable[AllocationAskRelease] | None = ...) -> None: ...

class AllocationRelease(Message):
    partitionName: str
    applicationID: str
    UUID: str
    terminationType: int
    message: str
    allocationKey: str
    preemptionMode: int
    def __init__(self, *, partitionName: str = ..., applicationID: str = ..., UUID: str = ..., terminationType: int = ..., message: str = ..., allocationKey: str = ..., preemptionMode: int = ...) -> None: ...

class AllocationAskRelease(Message):
    partitionName: str
    applicationID: str
    allocationkey: str
    terminationType: int
    message: str
    def __init__(self, *, partitionName: str = ..., applicationID: str = ..., allocationkey: str = ..., terminationType: int = ..., message: str = ...) -> None: ...

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

class NewNodeInfo(Message):
    nodeID: str
    @property
    def attributes(self) -> ScalarMap[str, str]: ...
    @property
    def schedulableResource(self) -> Resource: ...
    @property
    def occupiedResource(self) -> Resource: ...
    @property
    def existingAllocations(self) -> RepeatedCompositeFieldContainer[Allocation]: ...
    drained: bool
    def __init__(self, *, nodeID: str = ..., attributes: Mapping[str, str] | None = ..., schedulableResource: Resource | None = ..., occupiedResource: Resource | None = ..., existingAllocations: Iterable[Allocation] | None = ..., drained: bool = ...) -> None: ...

class UpdateNodeInfo(Message):
    ActionFromRM: ClassVar[EnumTypeWrapper]
    UPDATE: ClassVar[int]
    DRAIN_NODE: ClassVar[int]
    DECOMISSION: ClassVar[int]
    DRAIN_TO_SCHEDULABLE: ClassVar[int]
    UNKNOWN_ACTION_FROM_RM: ClassVar[int]
    nodeID: str
    @property
    def attributes(self) -> ScalarMap[str, str]: ...
    @property
    def schedulableResource(self) -> Resource: ...
    @property
    def occupiedResource(self) -> Resource: ...
    action: int
    def __init__(self, *, nodeID: str = ..., attributes: Mapping[str, str] | None = ..., schedulableResource: Resource | None = ..., occupiedResource: Resource | None = ..., action: int = ...) -> None: ...

class PredicatesArgs(Message):
    allocationKey: str
    nodeID: str
    allocate: bool
    applicationID: str
    def __init__(self, *, allocationKey: str = ..., nodeID: str = ..., allocate: bool = ..., applicationID: str = ...) -> None: ...

class ReSyncSchedulerCacheArgs(Message):
    @property
    def assumedAllocations(self) -> RepeatedCompositeFieldContainer[AssumedAllocation]: ...
    @property
    def forgetAllocations(self) -> RepeatedCompositeFieldContainer[ForgotAllocation]: ...
    def __init__(self, *, assumedAllocations: Iterable[AssumedAllocation] | None = ..., forgetAllocations: Iterable[ForgotAllocation] | None = ...) -> None: ...

class AssumedAllocation(Message):
    allocationKey: str
    nodeID: str
    def __init__(self, *, allocationKey: str = ..., nodeID: str = ...) -> None: ...

class ForgotAllocation(Message):
    allocationKey: str
    def __init__(self, *, allocationKey: str = ...) -> None: ...

class UpdateContainerSchedulingStateRequest(Message):
    SchedulingState: ClassVar[EnumTypeWrapper]
    SKIPPED: ClassVar[int]
    SCHEDULED: ClassVar[int]
    RESERVED: ClassVar[int]
    FAILED: ClassVar[int]
    applicartionID: str
    allocationKey: str
    state: int
    reason: str
    def __init__(self, *, applicartionID: str = ..., allocationKey: str = ..., state: int = ..., reason: str = ...) -> None: ...

class UpdateConfigurationRequest(Message):
    configs: str
    def __init__(self, *, configs: str = ...) -> None: ...

class UpdateConfigurationResponse(Message):
    success: bool
    oldConfig: str
    reason: str
    def __init__(self, *, success: bool = ..., oldConfig: str = ..., reason: str = ...) -> None: ...

class EventRecord(Message):
    Type: ClassVar[EnumTypeWrapper]
    REQUEST: ClassVar[int]
    APP: ClassVar[int]
    NODE: ClassVar[int]
    QUEUE: ClassVar[int]
    USERGROUP: ClassVar[int]
    type: int
    objectID: str
    groupID: str
    reason: str
    message: str
    timestampNano: int
    def __init__(self, *, type: int = ..., objectID: str = ..., groupID: str = ..., reason: str = ..., message: str = ..., timestampNano: int = ...) -> None: ...
