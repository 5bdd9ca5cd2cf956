"""Public API for plugin authors: base classes, read-only views of the scheduler's objects, and `hookimpl`.

A plugin is an ordinary class with a `name`. Its typed attributes are its options. Write the class with
`attrs.frozen` (attrs is a dependency of this package), and the configuration is checked against the types
of the attributes. The scheduler passes its objects to a plugin as the read-only views below; a plugin must
not modify them.

A refusal is a normal answer: a plugin returns the reason as text. An exception is a bug in the plugin: the
scheduler reports it with the plugin's name, distribution and version, and continues without that answer.

Units: `vcore` in milli-vcores, `memory` in bytes, times in nanoseconds since 1970 unless stated otherwise.
"""

from yunikorn.api.base import Context, Plugin, RunTime, Wait, dotless, hookimpl
from yunikorn.api.command_line import Command
from yunikorn.api.doors import Door, RunningCore, Service
from yunikorn.api.event_sinks import EventSink
from yunikorn.api.gang_placement import (
    GangPart,
    GangPlacementPolicy,
    PlacedGang,
    TopologyDomain,
    TopologySource,
)
from yunikorn.api.node_choice import Predicate, Where
from yunikorn.api.permit_policy import PermitPolicy
from yunikorn.api.preemption_policy import PreemptionCause, PreemptionPolicy, VictimUnit
from yunikorn.api.quota_policy import Quota, QuotaPolicy
from yunikorn.api.reservation_policy import ReservationPolicy
from yunikorn.api.run_time_estimator import RunTimeEstimator
from yunikorn.api.sort_policies import AppSortPolicy, NodeSortPolicy, QueueSortPolicy
from yunikorn.api.submission import (
    AdmissionPolicy,
    AskSubmission,
    PlacementRule,
    QueueTree,
    Refused,
    Submission,
    SubmitPolicy,
    UserGroupResolver,
)
from yunikorn.api.views import (
    Allocation,
    Application,
    Ask,
    AskClass,
    Event,
    Node,
    PastService,
    Queue,
    ResourceManager,
    Task,
    UsageView,
)
from yunikorn.quantities import parse_quantity
from yunikorn.resources import Resource

__all__ = [
    "AdmissionPolicy",
    "Allocation",
    "AppSortPolicy",
    "Application",
    "Ask",
    "AskClass",
    "AskSubmission",
    "Command",
    "Context",
    "Door",
    "Event",
    "EventSink",
    "GangPart",
    "GangPlacementPolicy",
    "Node",
    "NodeSortPolicy",
    "PastService",
    "PermitPolicy",
    "PlacedGang",
    "PlacementRule",
    "Plugin",
    "Predicate",
    "PreemptionCause",
    "PreemptionPolicy",
    "Queue",
    "QueueSortPolicy",
    "QueueTree",
    "Quota",
    "QuotaPolicy",
    "Refused",
    "ReservationPolicy",
    "Resource",
    "ResourceManager",
    "RunTime",
    "RunTimeEstimator",
    "RunningCore",
    "Service",
    "Submission",
    "SubmitPolicy",
    "Task",
    "TopologyDomain",
    "TopologySource",
    "UsageView",
    "UserGroupResolver",
    "VictimUnit",
    "Wait",
    "Where",
    "dotless",
    "hookimpl",
    "parse_quantity",
]
