"""The JSON objects of YuniKorn 1.9, as a table: name, kind and presence of each field.

A line is `NAME KIND`. Fields are always present, unless the line ends in `?`: then they are absent while they
are "", 0, false, or empty. Two marks are for fields that differ here: `!` for one that is always present here
and absent while it is empty in 1.9, `+` for one of our own, which 1.9 does not have.

Kinds: `text`, `flag`, `integer`, `number`; `ns` and `ms` are Unix times, `duration` nanoseconds, and
`go-duration` a text such as `1m30s`; `amounts`, `percent` and `weights` are numbers by resource type,
`counts` by state, `usage` amounts by instance type; `texts` is a mapping of texts. Other kinds are objects of
this table. `[X]` is a list. `ORDERS` has the lists that are sorted; the order of others is not specified.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLE = """
Cluster
    startTime ns?
    rmBuildInformation [texts]?
    partition text
    clusterName text

Partition
    clusterId text
    name text
    capacity PartitionCapacity
    nodeSortingPolicy NodeSortingPolicy
    preemptionEnabled flag
    quotaPreemptionEnabled flag
    totalNodes integer!
    totalContainers integer!
    applications counts
    state text?
    lastStateTransitionTime ns?
    designApplications counts? +

PartitionCapacity
    capacity amounts?
    usedCapacity amounts?
    utilization percent?

NodeSortingPolicy
    type text?
    resourceWeights weights?

Queue
    queuename text
    status text?
    partition text
    pendingResource amounts?
    maxResource amounts?
    guaranteedResource amounts?
    allocatedResource amounts?
    preemptingResource amounts?
    headroom amounts?
    absUsedCapacity percent?
    isLeaf flag
    isManaged flag
    properties texts?
    parent text?
    template Template?
    children [Queue]?
    childNames [text]?
    maxRunningApps integer?
    runningApps integer?
    currentPriority integer
    allocatingAcceptedApps [text]?
    sortingPolicy text?
    prioritySorting flag
    preemptionEnabled flag
    isPreemptionFence flag
    preemptionDelay go-duration?
    isPriorityFence flag
    priorityOffset integer?
    quotaPreemptionDelay go-duration?
    unschedAskBackoff integer? +
    askBackoffDelay go-duration? +
    quotaPolicy text? +
    quotaReason text? +
    configuredMaxResource amounts? +

Template
    maxApplications integer?
    maxResource amounts?
    guaranteedResource amounts?
    properties texts?

Application
    applicationID text
    usedResource amounts?
    maxUsedResource amounts?
    pendingResource amounts?
    partition text
    queueName text
    submissionTime ns?
    finishedTime ns?
    requests [Ask]?
    allocations [Allocation]?
    applicationState text?
    user text?
    groups [text]?
    rejectedMessage text?
    stateLog [StateChange]?
    placeholderData [PlaceholderData]?
    hasReserved flag?
    reservations [text]?
    maxRequestPriority integer?
    startTime ms?
    resourceHistory ResourceHistory
    backoffDeadline rfc3339?
    awaited text? +
    designState text? +
    designStateLog [StateChange]? +

StateChange
    time ns?
    applicationState text?

PlaceholderData
    taskGroupName text?
    count integer?
    minResource amounts?
    replaced integer?
    timedout integer?

ResourceHistory
    resourceUsage usage?
    preemptedResource usage?
    placeholderResource usage?

Ask
    allocationKey text
    allocationTags texts?
    requestTime ns?
    resource amounts?
    priority text?
    requiredNodeId text?
    applicationId text?
    placeholder flag?
    taskGroupName text?
    allocationLog [LogEntry]?
    triggeredPreemption flag?
    originator flag?
    schedulingAttempted flag?
    triggeredScaleUp flag?
    pendingCount integer? +

LogEntry
    message text?
    lastOccurrence ns?
    count integer?

Allocation
    allocationKey text
    allocationTags texts?
    requestTime ns?
    allocationTime ns?
    allocationDelay duration?
    resource amounts?
    priority text?
    nodeId text?
    applicationId text?
    placeholder flag?
    placeholderUsed flag?
    taskGroupName text?
    preempted flag?
    originator flag?

ForeignAllocation
    allocationKey text
    allocationTags texts?
    allocationTime ns?
    resource amounts?
    priority text?
    nodeId text?
    preemptable flag?

Node
    nodeID text
    hostName text?
    rackName text?
    attributes texts!
    capacity amounts?
    allocated amounts?
    occupied amounts?
    available amounts?
    utilized percent?
    allocations [Allocation]?
    foreignAllocations [ForeignAllocation]?
    schedulable flag
    isReserved flag
    reservations [text]?
    drainedBy [text]? +
    domains texts? +

NodeUtilization
    clusterId text
    partition text
    utilizations [TypeUtilization]!

TypeUtilization
    type text?
    utilization [Bucket]?

Bucket
    bucketName text?
    numOfNodes integer?
    nodeNames [text]?

UserUsage
    userName text
    groups texts?
    queues QueueUsage?

GroupUsage
    groupName text
    applications [text]?
    queues QueueUsage?

QueueUsage
    queuePath text
    resourceUsage amounts?
    runningApplications [text]?
    maxResources amounts?
    maxApplications integer?
    children [QueueUsage]?

Rule
    name text
    parameters texts?
    filter RuleFilter?
    parentRule Rule?

RuleFilter
    type text
    userList [text]?
    groupList [text]?
    userExp text?
    groupExp text?

AppHistory
    timestamp ns
    totalApplications text

ContainerHistory
    timestamp ns
    totalContainers text

Health
    Healthy flag
    HealthChecks [HealthCheck]?

HealthCheck
    Name text?
    Succeeded flag
    Description text?
    DiagnosisMessage text?

Validation
    allowed flag
    reason text?
    checksum text? +
    problems [ConfigProblem]? +

EventBatch
    InstanceUUID text
    LowestID integer
    HighestID integer
    EventRecords [EventRecord]

EventRecord
    type integer?
    objectID text?
    message text?
    timestampNano ns?
    eventChangeType integer?
    eventChangeDetail integer?
    referenceID text?
    resource EventResource
    rmID text? +
    partition text? +
    applicationID text? +
    queueName text? +
    nodeID text? +
    reason text? +
    designState text? +

EventResource
    resources EventAmounts?

Error
    status_code integer
    message text?
    description text?

Configuration
    Partitions [ConfigPartition]?
    Checksum text?
    Extra texts?
    DeadlockDetectionEnabled flag
    DeadlockTimeoutSeconds integer

ConfigPartition
    Name text
    Queues [ConfigQueue]
    PlacementRules [ConfigPlacementRule]?
    Limits [ConfigLimit]?
    Preemption ConfigPreemption
    NodeSortPolicy ConfigNodeSortPolicy
    UserGroupResolver ConfigUserGroupResolver

ConfigQueue
    Name text
    Parent flag?
    Resources ConfigResources
    MaxApplications integer?
    Properties texts?
    AdminACL text?
    SubmitACL text?
    ChildTemplate ConfigChildTemplate
    Queues [ConfigQueue]?
    Limits [ConfigLimit]?

ConfigResources
    Guaranteed texts?
    Max texts?

ConfigChildTemplate
    MaxApplications integer?
    Properties texts?
    Resources ConfigResources

ConfigLimit
    Limit text
    Users [text]?
    Groups [text]?
    MaxResources texts?
    MaxApplications integer?

ConfigPlacementRule
    Name text
    Create flag?
    Filter ConfigFilter
    Parent ConfigPlacementRule?
    Value text?

ConfigFilter
    Type text
    Users [text]?
    Groups [text]?

ConfigPreemption
    Enabled flag?
    QuotaPreemptionEnabled flag?

ConfigNodeSortPolicy
    Type text
    ResourceWeights weights?

ConfigUserGroupResolver
    type text?

StateDump
    timestamp ns?
    partitions [Partition]?
    applications [Application]?
    appHistory [AppHistory]?
    nodes [PartitionNodes]?
    clusterInfo [Cluster]?
    containerHistory [ContainerHistory]?
    queues [Queue]?
    rmDiagnostics texts?
    logLevel text?
    config Configuration?
    placementRules [PartitionRules]?
    eventStreams [OpenEventStream]?

PartitionNodes
    partitionName text
    nodesInfo [Node]?

PartitionRules
    partition text?
    rules [Rule]?

OpenEventStream
    Name text
    CreatedAt rfc3339
"""

ROUTES: Mapping[str, str] = {
    "/ws/v1/clusters": "[Cluster]",
    "/ws/v1/config": "Configuration",
    "/ws/v1/history/apps": "[AppHistory]",
    "/ws/v1/history/containers": "[ContainerHistory]",
    "/ws/v1/partitions": "[Partition]",
    "/ws/v1/partition/{partition}/placementrules": "[Rule]",
    "/ws/v1/partition/{partition}/queues": "Queue",
    "/ws/v1/partition/{partition}/queue/{queue}": "Queue",
    "/ws/v1/partition/{partition}/queue/{queue}?subtree": "Queue",
    "/ws/v1/partition/{partition}/nodes": "[Node]",
    "/ws/v1/partition/{partition}/node/{node}": "Node",
    "/ws/v1/partition/{partition}/queue/{queue}/applications": "[Application]",
    "/ws/v1/partition/{partition}/queue/{queue}/applications/active": "[Application]",
    "/ws/v1/partition/{partition}/queue/{queue}/application/{application}": "Application",
    "/ws/v1/partition/{partition}/application/{application}": "Application",
    "/ws/v1/partition/{partition}/applications/active": "[Application]",
    "/ws/v1/partition/{partition}/applications/rejected": "[Application]",
    "/ws/v1/partition/{partition}/applications/completed": "[Application]",
    "/ws/v1/partition/{partition}/usage/users": "[UserUsage]",
    "/ws/v1/partition/{partition}/usage/user/{user}": "UserUsage",
    "/ws/v1/partition/{partition}/usage/groups": "[GroupUsage]",
    "/ws/v1/partition/{partition}/usage/group/{group}": "GroupUsage",
    "/ws/v1/events/batch": "EventBatch",
    "/ws/v1/scheduler/healthcheck": "Health",
    "/ws/v1/scheduler/node-utilizations": "[NodeUtilization]",
    "/debug/fullstatedump": "StateDump",
}
"""Routes of 1.9 that answer with JSON to a GET request."""
OTHER_ROUTES: Mapping[str, tuple[str, str]] = {
    "/ws/v1/metrics": ("GET", "metrics of Prometheus"),
    "/ws/v1/validate-conf": ("POST", "Validation"),
    "/ws/v1/events/stream": ("GET", "an EventRecord in each line, after a line with the InstanceUUID"),
    "/ws/v1/stack": ("GET", "redirect to /debug/stack"),
    "/ws/v1/fullstatedump": ("GET", "redirect to /debug/fullstatedump"),
    "/debug/stack": ("GET", "text"),
    "/debug/pprof/": ("GET", "text"),
    **{
        f"/debug/pprof/{name}": ("GET", "a profile, or 501")
        for name in (
            "heap threadcreate goroutine allocs block mutex cmdline profile symbol trace".split()  # noqa: SIM905
        )
    },
}
"""The other routes of 1.9, with their methods."""
ORDERS: Mapping[str, str] = {
    "TypeUtilization.utilization": "bucketName",
    "Application.stateLog": "time",
    "EventBatch.EventRecords": "timestampNano",
}
"""Lists that are sorted, and the field by which they are."""
