"""Description of every metric family: name, type, labels, their values, and meaning.

The exposition, the documentation (docs/metrics.md) and the check of the dashboard are based on this table.
Families with `own=False` have names, types, labels and units of YuniKorn 1.9.
"""

from __future__ import annotations

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
OF_YUNIKORN = ("yunikorn_scheduler_", "yunikorn_queue_", "yunikorn_{queue}_", "promhttp_")
"""Beginnings of the names of families that YuniKorn 1.9 has."""


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

    @property
    def own(self) -> bool:
        """True for families that YuniKorn 1.9 lacks."""
        return not self.name.startswith(OF_YUNIKORN)

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


def _counter(name: str, text: str, *labels: str, values: str = "") -> Family:
    return Family(name, COUNTER, labels, text, values)


def _gauge(name: str, text: str, *labels: str, values: str = "") -> Family:
    return Family(name, GAUGE, labels, text, values)


def _histogram(name: str, text: str, *labels: str, values: str = "") -> Family:
    return Family(name, HISTOGRAM, labels, text, values)


ATTEMPTS = _counter(
    "yunikorn_scheduler_container_allocation_attempt_total",
    "Allocations made and ended; requests refused, and among them those that were wrong in themselves.",
    "state",
    values="allocated, released, rejected, error",
)
SUBMISSIONS = _counter(
    "yunikorn_scheduler_application_submission_total",
    "Applications placed in a queue, accepted, and rejected.",
    "result",
    values="new, accepted, rejected",
)
APPLICATIONS = _gauge(
    "yunikorn_scheduler_application_total",
    "Applications by state; completed and failed ones since the start.",
    "state",
    values="running, resuming, failing, completing, completed, failed",
)
NODES = _gauge(
    "yunikorn_scheduler_node",
    "Nodes by state; since the start, nodes that were refused (failed) or removed (decommissioned).",
    "state",
    values="active, draining, failed, decommissioned",
)
NODE_USAGE = _gauge(
    "yunikorn_scheduler_{resource}_node_usage_total",
    "Nodes by the allocated part of their capacity of this resource.",
    "range",
    values=", ".join(RANGES[:2]) + ", …, " + RANGES[-1],
)
LATENCY = _histogram(
    "yunikorn_scheduler_scheduling_latency_milliseconds",
    "Time of the decisions of one partition in a round, in seconds.",
)
CYCLE = _histogram(
    "yunikorn_scheduler_scheduling_cycle_milliseconds",
    "Time of a round of up to 256 decisions of all partitions, in seconds.",
)
SORTING = _histogram(
    "yunikorn_scheduler_node_sorting_latency_milliseconds",
    "Time to sort the members of a queue, in seconds, in one of 64 decisions.",
    "level",
    values="app, queue",
)
TRY_NODE = _histogram(
    "yunikorn_scheduler_trynode_latency_milliseconds",
    "Time of a search that found a node, in seconds, in one of 64 decisions.",
)
TRY_NODES = _histogram(
    "yunikorn_scheduler_trynode_evaluation_milliseconds",
    "Time of a search for a node, in seconds, in one of 64 decisions.",
)
PREEMPTION = _histogram(
    "yunikorn_scheduler_trypreemption_latency_milliseconds", "Time of a search for victims, in seconds."
)
QUEUE_APPS = _gauge(
    "yunikorn_queue_app",
    "Applications of a queue by state; completed, failed and rejected ones since the start.",
    "queue",
    "state",
    values=", ".join(APP_STATES),
)
QUEUE_ENDED = _counter(
    "yunikorn_queue_app_total",
    "Applications of a queue that have ended, also of queues that were removed.",
    "queue",
    "state",
    values=", ".join(ENDED_STATES),
)
QUEUE_RESOURCES = _gauge(
    "yunikorn_queue_resource",
    "Amounts of a queue by resource, and its maximum of running applications.",
    "queue",
    "resource",
    "state",
    values=", ".join((*RESOURCE_STATES, "maxRunningApps")),
)
QUEUE_CONTAINERS = _counter(
    "yunikorn_{queue}_queue_container",
    "Allocations of a queue made or reported, and ended.",
    "state",
    values="allocated, released",
)
SCRAPES = _counter(
    "promhttp_metric_handler_requests_total", "Scrapes by HTTP status code.", "code", values="200, 500, 503"
)
SCRAPING = _gauge("promhttp_metric_handler_requests_in_flight", "Scrapes that are being served.")
DECISION = _histogram(
    "yunikorn_decision_latency_seconds",
    "Time of a decision that made an allocation, in seconds, in one of 64 decisions.",
)
DECISIONS = _counter("yunikorn_decisions_total", "Allocations made by rounds of decisions.")
STEPS = _counter("yunikorn_core_steps_total", "Steps of the core's thread that had something to do.")
BUSY = _counter("yunikorn_core_busy_seconds_total", "Time of the steps of the core's thread, in seconds.")
INBOX = _gauge("yunikorn_inbox_entries", "Messages and calls that wait for the core.")
INBOX_CAPACITY = _gauge(
    "yunikorn_inbox_capacity_entries", "Number of entries in the inbox at which senders have to wait."
)
SESSIONS = _gauge("yunikorn_sessions", "Sessions of resource managers.", "state", values="running, paused")
REFUSALS = _counter(
    "yunikorn_refused_entries_total",
    "Entries of updates that were refused.",
    "kind",
    values=", ".join(REFUSED),
)
PLUGIN_TIME = _counter(
    "yunikorn_plugin_seconds_total",
    "Time of the core's thread in a plugin, in seconds, estimated from ten samples per second.",
    "plugin",
    "operation",
)
PLUGIN_CALLS = _counter(
    "yunikorn_plugin_calls_total", "Calls of a method of a plugin, with --stats.", "plugin", "kind", "method"
)
PLUGIN_CALL_TIME = _counter(
    "yunikorn_plugin_call_seconds_total",
    "Time of the calls of a method of a plugin, in seconds, estimated from samples, with --stats.",
    "plugin",
    "kind",
    "method",
)
PLUGIN_REFUSALS = _counter(
    "yunikorn_plugin_refusals_total",
    "Calls of a method of a plugin that refused, with --stats.",
    "plugin",
    "kind",
    "method",
)
PLUGIN_FAULTS = _counter(
    "yunikorn_plugin_faults_total", "Failures of a plugin that were contained.", "plugin", "operation"
)
SINK_WAITING = _gauge("yunikorn_sink_events_waiting", "Events that wait for an event sink.", "sink")
SINK_TAKEN = _counter("yunikorn_sink_events_taken_total", "Events that an event sink has taken.", "sink")
SINK_DROPPED = _counter(
    "yunikorn_sink_events_dropped_total", "Events that an event sink lost because it was too slow.", "sink"
)
WAITING_APPS = _gauge(
    "yunikorn_waiting_applications",
    "Applications that are not accepted yet, because the answer of a policy is awaited.",
    "policy",
)
POLICY_CALLS = _gauge("yunikorn_policy_calls_in_progress", "Calls of policies by worker threads.")
POLICY_CALLS_STUCK = _gauge(
    "yunikorn_policy_calls_stuck",
    "Calls of policies that were given up because they took too long, and have not returned.",
)
POLICY_CALLS_GIVEN_UP = _counter(
    "yunikorn_policy_calls_given_up_total", "Calls of policies that were given up."
)
EVENTS = _counter("yunikorn_events_total", "Events that the event store has received.")
EVENTS_STORED = _gauge("yunikorn_events_stored", "Events in the event store.")
EVENTS_CAPACITY = _gauge("yunikorn_events_capacity", "Number of events that the event store keeps.")
DECISIONS_STORED = _gauge("yunikorn_decisions_stored", "Decisions in the store of recent decisions.")
EVENT_STREAMS = _gauge("yunikorn_event_streams", "Streams of events in progress.")
EVENT_STREAMS_REFUSED = _counter(
    "yunikorn_event_streams_refused_total",
    "Streams of events that were refused, because there were too many.",
)
EVENTS_MISSED = _counter(
    "yunikorn_event_stream_missed_events_total",
    "Events that streams missed, because their clients were too slow.",
)
HISTORY_BACKLOG = _gauge(
    "yunikorn_history_backlog", "Events and rows that are not in the database of the history yet."
)
HISTORY_LOST = _counter(
    "yunikorn_history_lost_total",
    "Events and rows that the history lost, because its database was away for too long.",
)
HISTORY_COMMITTED = _gauge(
    "yunikorn_history_committed_seconds", "Unix time of the latest commit of the history."
)
HISTORY_AWAY = _gauge("yunikorn_history_away", "1 while the database of the history cannot be written.")
IDLE_SLICES = _gauge(
    "yunikorn_topology_idle_slices",
    "Gangs of so many whole nodes that idle nodes have room for, each in one domain of the level.",
    "level",
    "nodes",
    values="1, 2, 4, 8, … up to the nodes of the largest domain",
)
DOMAINS = _gauge(
    "yunikorn_topology_domains",
    "Domains of a level by state: all of their nodes are idle, or not.",
    "level",
    "state",
    values="idle, used",
)
BUILD = _gauge("yunikorn_build_info", "Version of the scheduler; always 1.", "version")

FAMILIES = tuple(one for one in vars().values() if isinstance(one, Family))
"""All families, in the order of the exposition; those of the process and of Python follow."""
