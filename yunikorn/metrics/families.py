"""Description of every metric family: name, type, labels, their values, and meaning.

The exposition, the documentation (docs/metrics.md) and the check of the dashboard are based on this table.
Families with `own=False` have names, types, labels and units of YuniKorn 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
"""Content type of the text of all families, as YuniKorn 1.9 spells it."""
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

RANGES = ("[0,10%]", *(f"({low}0%,{low + 1}0%]" for low in range(1, 10)))
"""Label values of the tenths of use of a node."""
APP_STATES = (
    "new",
    "accepted",
    "running",
    "rejected",
    "failing",
    "failed",
    "resuming",
    "completing",
    "completed",
)
"""Label values of the states of applications in a queue."""
ENDED_STATES = ("completed", "failed", "rejected")
RESOURCE_STATES = ("guaranteed", "max", "allocated", "pending", "preempting")
"""Label values of the amounts of a queue; beside them there is `maxRunningApps` of the resource `apps`."""
REFUSED = ("application", "ask", "node", "node update", "release")


@attrs.frozen
class Family:
    """A metric family."""

    name: str
    """Name; `{resource}` and `{queue}` stand for names that become part of the family's name."""
    kind: str
    """`counter`, `gauge` or `histogram`."""
    labels: tuple[str, ...]
    help: str
    values: str = ""
    """Values of the last label, for the documentation; empty if they are names."""
    own: bool = False
    """True for families that YuniKorn 1.9 lacks."""

    def named(self, name: str) -> str:
        """Return the name of the family with this resource or queue in it, as YuniKorn 1.9 spells it."""
        fixed = self.name.replace("{resource}", "{}").replace("{queue}", "{}")
        return fixed.format(metric_name(name))


def metric_name(name: str) -> str:
    """Return a name as part of a metric's name: each byte that is not permitted there becomes `_`.

    A leading digit gets `_` in front. Different names may become equal.
    """
    permitted = "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_:") else "_"
        for byte in name.encode("utf-8", "surrogatepass")
    )
    return f"_{permitted}" if permitted[:1].isdigit() else permitted


def _listed(values: Iterable[str]) -> str:
    return ", ".join(values)


ATTEMPTS = Family(
    "yunikorn_scheduler_container_allocation_attempt_total",
    COUNTER,
    ("state",),
    "Allocations made and ended; requests refused, and among them those that were wrong in themselves.",
    "allocated, released, rejected, error",
)
SUBMISSIONS = Family(
    "yunikorn_scheduler_application_submission_total",
    COUNTER,
    ("result",),
    "Applications placed in a queue, accepted, and rejected.",
    "new, accepted, rejected",
)
APPLICATIONS = Family(
    "yunikorn_scheduler_application_total",
    GAUGE,
    ("state",),
    "Applications by state; completed and failed ones since the start.",
    "running, resuming, failing, completing, completed, failed",
)
NODES = Family(
    "yunikorn_scheduler_node",
    GAUGE,
    ("state",),
    "Nodes by state; since the start, nodes that were refused (failed) or removed (decommissioned).",
    "active, draining, failed, decommissioned",
)
NODE_USAGE = Family(
    "yunikorn_scheduler_{resource}_node_usage_total",
    GAUGE,
    ("range",),
    "Nodes by the allocated part of their capacity of this resource.",
    _listed(RANGES[:2]) + ", …, " + RANGES[-1],
)
LATENCY = Family(
    "yunikorn_scheduler_scheduling_latency_milliseconds",
    HISTOGRAM,
    (),
    "Time of the decisions of one partition in a round, in seconds.",
)
CYCLE = Family(
    "yunikorn_scheduler_scheduling_cycle_milliseconds",
    HISTOGRAM,
    (),
    "Time of a round of up to 256 decisions of all partitions, in seconds.",
)
SORTING = Family(
    "yunikorn_scheduler_node_sorting_latency_milliseconds",
    HISTOGRAM,
    ("level",),
    "Time to sort the members of a queue, in seconds, in one of 64 decisions.",
    "app, queue",
)
TRY_NODE = Family(
    "yunikorn_scheduler_trynode_latency_milliseconds",
    HISTOGRAM,
    (),
    "Time of a search that found a node, in seconds, in one of 64 decisions.",
)
TRY_NODES = Family(
    "yunikorn_scheduler_trynode_evaluation_milliseconds",
    HISTOGRAM,
    (),
    "Time of a search for a node, in seconds, in one of 64 decisions.",
)
PREEMPTION = Family(
    "yunikorn_scheduler_trypreemption_latency_milliseconds",
    HISTOGRAM,
    (),
    "Time of a search for victims, in seconds.",
)
QUEUE_APPS = Family(
    "yunikorn_queue_app",
    GAUGE,
    ("queue", "state"),
    "Applications of a queue by state; completed, failed and rejected ones since the start.",
    _listed(APP_STATES),
)
QUEUE_ENDED = Family(
    "yunikorn_queue_app_total",
    COUNTER,
    ("queue", "state"),
    "Applications of a queue that have ended, also of queues that were removed.",
    _listed(ENDED_STATES),
)
QUEUE_RESOURCES = Family(
    "yunikorn_queue_resource",
    GAUGE,
    ("queue", "resource", "state"),
    "Amounts of a queue by resource, and its maximum of running applications.",
    _listed((*RESOURCE_STATES, "maxRunningApps")),
)
QUEUE_CONTAINERS = Family(
    "yunikorn_{queue}_queue_container",
    COUNTER,
    ("state",),
    "Allocations of a queue made or reported, and ended.",
    "allocated, released",
)
DECISION = Family(
    "yunikorn_decision_latency_seconds",
    HISTOGRAM,
    (),
    "Time of a decision that made an allocation, in seconds, in one of 64 decisions.",
    own=True,
)
DECISIONS = Family(
    "yunikorn_decisions_total", COUNTER, (), "Allocations made by rounds of decisions.", own=True
)
STEPS = Family(
    "yunikorn_core_steps_total", COUNTER, (), "Steps of the core's thread that had something to do.", own=True
)
BUSY = Family(
    "yunikorn_core_busy_seconds_total",
    COUNTER,
    (),
    "Time of the steps of the core's thread, in seconds.",
    own=True,
)
INBOX = Family("yunikorn_inbox_entries", GAUGE, (), "Messages and calls that wait for the core.", own=True)
INBOX_CAPACITY = Family(
    "yunikorn_inbox_capacity_entries",
    GAUGE,
    (),
    "Number of entries in the inbox at which senders have to wait.",
    own=True,
)
SESSIONS = Family(
    "yunikorn_sessions", GAUGE, ("state",), "Sessions of resource managers.", "running, paused", own=True
)
REFUSALS = Family(
    "yunikorn_refused_entries_total",
    COUNTER,
    ("kind",),
    "Entries of updates that were refused.",
    _listed(REFUSED),
    own=True,
)
PLUGIN_TIME = Family(
    "yunikorn_plugin_seconds_total",
    COUNTER,
    ("plugin", "operation"),
    "Time of the core's thread in a plugin, in seconds, estimated from ten samples per second.",
    own=True,
)
PLUGIN_CALLS = Family(
    "yunikorn_plugin_calls_total",
    COUNTER,
    ("plugin", "kind", "method"),
    "Calls of a method of a plugin, with --stats.",
    own=True,
)
PLUGIN_CALL_TIME = Family(
    "yunikorn_plugin_call_seconds_total",
    COUNTER,
    ("plugin", "kind", "method"),
    "Time of the calls of a method of a plugin, in seconds, estimated from samples, with --stats.",
    own=True,
)
PLUGIN_REFUSALS = Family(
    "yunikorn_plugin_refusals_total",
    COUNTER,
    ("plugin", "kind", "method"),
    "Calls of a method of a plugin that refused, with --stats.",
    own=True,
)
PLUGIN_FAULTS = Family(
    "yunikorn_plugin_faults_total",
    COUNTER,
    ("plugin", "operation"),
    "Failures of a plugin that were contained.",
    own=True,
)
SINK_WAITING = Family(
    "yunikorn_sink_events_waiting", GAUGE, ("sink",), "Events that wait for an event sink.", own=True
)
SINK_TAKEN = Family(
    "yunikorn_sink_events_taken_total", COUNTER, ("sink",), "Events that an event sink has taken.", own=True
)
SINK_DROPPED = Family(
    "yunikorn_sink_events_dropped_total",
    COUNTER,
    ("sink",),
    "Events that an event sink lost because it was too slow.",
    own=True,
)
WAITING_APPS = Family(
    "yunikorn_waiting_applications",
    GAUGE,
    ("policy",),
    "Applications that are not accepted yet, because the answer of a policy is awaited.",
    own=True,
)
POLICY_CALLS = Family(
    "yunikorn_policy_calls_in_progress", GAUGE, (), "Calls of policies by worker threads.", own=True
)
POLICY_CALLS_STUCK = Family(
    "yunikorn_policy_calls_stuck",
    GAUGE,
    (),
    "Calls of policies that were given up because they took too long, and have not returned.",
    own=True,
)
POLICY_CALLS_GIVEN_UP = Family(
    "yunikorn_policy_calls_given_up_total", COUNTER, (), "Calls of policies that were given up.", own=True
)
EVENTS = Family("yunikorn_events_total", COUNTER, (), "Events that the event store has received.", own=True)
EVENTS_STORED = Family("yunikorn_events_stored", GAUGE, (), "Events in the event store.", own=True)
EVENTS_CAPACITY = Family(
    "yunikorn_events_capacity", GAUGE, (), "Number of events that the event store keeps.", own=True
)
DECISIONS_STORED = Family(
    "yunikorn_decisions_stored", GAUGE, (), "Decisions in the store of recent decisions.", own=True
)
EVENT_STREAMS = Family("yunikorn_event_streams", GAUGE, (), "Streams of events in progress.", own=True)
EVENT_STREAMS_REFUSED = Family(
    "yunikorn_event_streams_refused_total",
    COUNTER,
    (),
    "Streams of events that were refused, because there were too many.",
    own=True,
)
EVENTS_MISSED = Family(
    "yunikorn_event_stream_missed_events_total",
    COUNTER,
    (),
    "Events that streams missed, because their clients were too slow.",
    own=True,
)
BUILD = Family("yunikorn_build_info", GAUGE, ("version",), "Version of the scheduler; always 1.", own=True)
SCRAPES = Family(
    "promhttp_metric_handler_requests_total",
    COUNTER,
    ("code",),
    "Scrapes by HTTP status code.",
    "200, 500, 503",
)
SCRAPING = Family("promhttp_metric_handler_requests_in_flight", GAUGE, (), "Scrapes that are being served.")

FAMILIES = (
    ATTEMPTS,
    SUBMISSIONS,
    APPLICATIONS,
    NODES,
    NODE_USAGE,
    LATENCY,
    CYCLE,
    SORTING,
    TRY_NODE,
    TRY_NODES,
    PREEMPTION,
    QUEUE_APPS,
    QUEUE_ENDED,
    QUEUE_RESOURCES,
    QUEUE_CONTAINERS,
    SCRAPES,
    SCRAPING,
    DECISION,
    DECISIONS,
    STEPS,
    BUSY,
    INBOX,
    INBOX_CAPACITY,
    SESSIONS,
    REFUSALS,
    PLUGIN_TIME,
    PLUGIN_CALLS,
    PLUGIN_CALL_TIME,
    PLUGIN_REFUSALS,
    PLUGIN_FAULTS,
    SINK_WAITING,
    SINK_TAKEN,
    SINK_DROPPED,
    WAITING_APPS,
    POLICY_CALLS,
    POLICY_CALLS_STUCK,
    POLICY_CALLS_GIVEN_UP,
    EVENTS,
    EVENTS_STORED,
    EVENTS_CAPACITY,
    DECISIONS_STORED,
    EVENT_STREAMS,
    EVENT_STREAMS_REFUSED,
    EVENTS_MISSED,
    BUILD,
)
"""All families, in the order of the exposition; those of the process and of Python follow."""
