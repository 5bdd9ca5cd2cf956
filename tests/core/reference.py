"""A slow and plain reference scheduler, which caches nothing and sorts all objects for every decision.

Tests report every message of the resource manager to `Reference` and ask one question: which asks could be
placed at this moment, in which order, and on which nodes? The optimizations of the real scheduler must not
change the answer. `compared_scheduler.py` compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import attrs

Amount = Mapping[str, int]
Check = Callable[["Ask", "Node"], bool]
NO_PRIORITY = -(2**31)
HIGHEST, LOWEST = 2**31 - 1, -(2**31) + 1
SECOND = 1_000_000_000


@attrs.define(eq=False)
class Node:
    id: str
    capacity: Amount
    occupied: Amount
    attributes: Mapping[str, str]
    schedulable: bool = True
    running: list[Allocation] = attrs.Factory(list)

    def available(self, name: str) -> int:
        used = sum(one.resource.get(name, 0) for one in self.running)
        return self.capacity.get(name, 0) - self.occupied.get(name, 0) - used

    def has_room(self, resource: Amount) -> bool:
        return all(self.available(name) >= amount for name, amount in resource.items() if amount)


@attrs.define(eq=False)
class Ask:
    key: str
    app: App
    resource: Amount
    pending: int
    priority: int
    tags: Mapping[str, str]
    created: int
    arrival: int


@attrs.define(eq=False)
class Allocation:
    uuid: str
    app: App
    ask: Ask | None
    """The ask of the allocation; None if the resource manager recovered it."""
    node: Node
    resource: Amount
    priority: int = 0


@attrs.define(eq=False)
class App:
    id: str
    queue: Queue
    submitted: int
    arrival: int
    tags: Mapping[str, str]
    user: str = ""
    groups: Sequence[str] = ()
    state: str = "New"
    since: int = 0
    turn: int = 0
    """Sequence number of state changes; of two timers due at once the older fires first."""
    asks: dict[str, Ask] = attrs.Factory(dict)
    running: list[Allocation] = attrs.Factory(list)
    counts_for_limits: bool = False
    """True from the first allocation on, until there are neither allocations nor pending asks."""

    @property
    def waiting(self) -> list[Ask]:
        return [ask for ask in self.asks.values() if ask.pending]

    @property
    def priority(self) -> int:
        return max((ask.priority for ask in self.waiting), default=NO_PRIORITY)

    @property
    def kept_priority(self) -> int:
        """Highest priority of the pending asks, else that of the last allocation."""
        return self.priority if self.waiting else self.running[-1].priority if self.running else 0

    def allocated(self) -> dict[str, int]:
        return total_of(one.resource for one in self.running)

    @property
    def group(self) -> str:
        """The group whose limits apply: the first limited group from the application's queue upwards."""
        for queue in self.queue.up():
            limited = [group for limit in queue.limits for group in limit.get("groups", ())]
            for group in limited:
                if group in self.groups:
                    return str(group)
            if "*" in limited:
                return "*"
        return ""


@attrs.define(eq=False)
class Queue:
    name: str
    parent: Queue | None
    leaf: bool = False
    max: Amount | None = None
    guaranteed: Amount = attrs.Factory(dict)
    properties: Mapping[str, str] = attrs.Factory(dict)
    managed: bool = True
    draining: bool = False
    template: Mapping[str, Any] | None = None
    max_apps: int = 0
    limits: Sequence[Mapping[str, Any]] = ()
    children: dict[str, Queue] = attrs.Factory(dict)
    apps: dict[str, App] = attrs.Factory(dict)

    @property
    def path(self) -> str:
        return f"{self.parent.path}.{self.name}" if self.parent else self.name

    def walk(self) -> Iterator[Queue]:
        yield self
        for child in self.children.values():
            yield from child.walk()

    def up(self) -> Iterator[Queue]:
        yield self
        if self.parent:
            yield from self.parent.up()

    def all_apps(self) -> list[App]:
        return [app for queue in self.walk() for app in queue.apps.values()]

    def allocated(self) -> dict[str, int]:
        return total_of(one.resource for app in self.all_apps() for one in app.running)

    def pending(self) -> dict[str, int]:
        return total_of(
            {name: amount * ask.pending for name, amount in ask.resource.items()}
            for app in self.all_apps()
            for ask in app.waiting
        )

    def waits(self) -> bool:
        return any(app.waiting for app in self.all_apps())

    def is_on(self, name: str) -> bool:
        return self.properties.get(name, "enabled") == "enabled"

    def raw_priority(self) -> int:
        if self.leaf:
            return max((app.priority for app in self.apps.values()), default=NO_PRIORITY)
        return max((child.published() for child in self.children.values()), default=NO_PRIORITY)

    def published(self) -> int:
        raw = self.raw_priority()
        if raw == NO_PRIORITY:
            return raw
        offset = int(self.properties.get("priority.offset", "0"))
        if self.properties.get("priority.policy") == "fence":
            return offset
        return max(LOWEST, min(HIGHEST, raw + offset))


def total_of(amounts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for amount in amounts:
        for name, value in amount.items():
            total[name] = total.get(name, 0) + value
    return total


def amount_of(texts: Mapping[str, str] | None) -> Amount | None:
    """Return the quantities of a configuration: milli-vcores such as `500m`, plain numbers for all else."""
    if texts is None:
        return None
    amount = {name: int(text.removesuffix("m")) for name, text in texts.items()}
    return amount if any(amount.values()) else None


class Reference:
    """One partition, described by its configuration and the messages of the resource manager."""

    def __init__(self, config: Mapping[str, Any], checks: Sequence[Check] = ()) -> None:
        self.now = 0
        self.checks = list(checks)
        self.arrivals = 0
        self.nodes: dict[str, Node] = {}
        self.apps: dict[str, App] = {}
        self.turns = 0
        self.cleanups: list[tuple[int, int, Queue]] = []
        """Times at which queues are removed if they are empty then."""
        self.root = Queue("root", None)
        self.configure(config)

    # -- configuration --------------------------------------------------------------------------------

    def configure(self, config: Mapping[str, Any]) -> None:
        self.node_sorts = {"": config.get("nodesortpolicy") or {"type": "fair"}}
        self.node_sorts |= {entry["name"]: entry for entry in config.get("nodesortpolicies", ())}
        self.creates = any(rule.get("create") for rule in config.get("placementrules", ()))
        self._configure(self.root, config["queues"][0])

    def _configure(self, queue: Queue, config: Mapping[str, Any]) -> None:
        above = dict(queue.parent.properties) if queue.parent else {}
        for own in ("priority.offset", "priority.policy", "queue.state"):
            above.pop(own, None)
        queue.properties = {**above, **config.get("properties", {})}
        self._size(queue, config)
        queue.draining, queue.managed = False, True
        queue.limits = config.get("limits", ())
        queue.leaf = not (config.get("parent") or config.get("queues")) and queue.parent is not None
        queue.template = config.get("childtemplate")
        if not queue.template and queue.parent and not queue.leaf:
            queue.template = queue.parent.template
        wanted = {child["name"]: child for child in config.get("queues", ())}
        for name, child in queue.children.items():
            if name not in wanted:
                self._leave_out(child)
        for name, child_config in wanted.items():
            child = queue.children.setdefault(name, Queue(name, queue))
            self._configure(child, child_config)

    @staticmethod
    def _size(queue: Queue, config: Mapping[str, Any]) -> None:
        resources = config.get("resources", {})
        queue.max = amount_of(resources.get("max"))
        queue.guaranteed = amount_of(resources.get("guaranteed")) or {}
        queue.max_apps = config.get("maxapplications", 0)

    def _leave_out(self, queue: Queue) -> None:
        """Drain a queue that the configuration no longer contains; a dynamic queue stays."""
        found = list(queue.walk())
        for gone in found:
            if queue.managed:
                gone.draining = gone.draining or gone.managed
            elif gone.parent and not gone.leaf:
                gone.template = gone.parent.template
        if queue.managed:
            for gone in reversed(found):
                self._check_empty(gone)

    def _create(self, path: str) -> Queue | None:
        """Create the leaf of this path and its missing parents; return None where that is not allowed."""
        names = path.split(".")[1:]
        above = self.root
        while names and names[0] in above.children:
            above = above.children[names.pop(0)]
        if above.leaf or above.draining or not names:
            return None
        for name in names:
            made = above.children[name] = Queue(name, above, managed=False, template=above.template)
            above = made
        above.leaf = True
        if above.template:
            self._size(above, above.template)
            above.properties = above.template.get("properties", {})
        return above

    def _check_empty(self, queue: Queue) -> None:
        if queue.parent and self._may_go(queue):
            self.cleanups.append((self.now + 10 * SECOND, self.turn(), queue))

    @staticmethod
    def _may_go(queue: Queue) -> bool:
        return not queue.apps and not queue.children and (queue.draining or not queue.managed)

    def _clean_up(self, queue: Queue) -> None:
        parent = queue.parent
        if parent and parent.children.get(queue.name) is queue and self._may_go(queue):
            del parent.children[queue.name]
            self._check_empty(parent)

    def queue(self, path: str) -> Queue | None:
        return next((queue for queue in self.root.walk() if queue.path == path), None)

    @property
    def cluster(self) -> dict[str, int]:
        return total_of(node.capacity for node in self.nodes.values())

    # -- messages of the resource manager ------------------------------------------------------------------

    def arrive(self) -> int:
        self.arrivals += 1
        return self.arrivals

    def turn(self) -> int:
        self.turns += 1
        return self.turns

    def move(self, app: App, state: str) -> None:
        app.state, app.since, app.turn = state, self.now, self.turn()

    def submit(
        self, app_id: str, path: str, tags: Mapping[str, str], user: str = "", groups: Sequence[str] = ()
    ) -> bool:
        """Submit an application; return True if it is accepted."""
        arrival = self.arrive()
        queue = self.queue(path)
        if app_id in self.apps:
            return False
        if queue is None and self.creates:
            queue = self._create(path)
        if queue is None or not queue.leaf or queue.draining:
            return False
        app = self.apps[app_id] = queue.apps[app_id] = App(
            app_id, queue, self.now, arrival, tags, user, groups
        )
        app.since = self.now
        return True

    def ask(
        self, app_id: str, key: str, count: int, priority: int, tags: Mapping[str, str], resource: Amount
    ) -> None:
        app = self.apps.get(app_id)
        if app is None:
            return
        ask = app.asks.get(key)
        if ask is None:
            created = int(tags["creationTime"]) * SECOND if "creationTime" in tags else self.now
            ask = app.asks[key] = Ask(key, app, resource, count, priority, tags, created, self.arrive())
            app.submitted = min(app.submitted, created)
        ask.resource, ask.pending, ask.priority, ask.tags = resource, count, priority, tags
        app.counts_for_limits &= bool(app.running or app.waiting)
        if app.state in ("New", "Completing"):
            self.move(app, "Accepted" if app.state == "New" else "Running")

    def release_asks(self, app_id: str, key: str) -> None:
        app = self.apps.get(app_id)
        if app is not None:
            for ask in list(app.asks.values()):
                if key in ("", ask.key):
                    del app.asks[ask.key]
            self._rest(app)

    def release(self, app_id: str, uuid: str) -> None:
        app = self.apps.get(app_id)
        if app is None:
            return
        for one in [one for one in app.running if one.uuid == uuid]:
            self._end(one)

    def _end(self, one: Allocation) -> None:
        app = one.app
        app.running.remove(one)
        one.node.running.remove(one)
        ask = one.ask
        running = [other.ask for other in app.running]
        if ask is not None and app.asks.get(ask.key) is ask and not ask.pending and ask not in running:
            # An ask is forgotten when all its replicas were placed and have ended.
            del app.asks[ask.key]
        self._rest(app)

    def _rest(self, app: App) -> None:
        app.counts_for_limits &= bool(app.running or app.waiting)
        if not app.running and not app.waiting and app.state in ("Accepted", "Starting", "Running"):
            self.move(app, "Completing")

    def remove_app(self, app_id: str) -> None:
        app = self.apps.pop(app_id, None)
        if app is not None:
            for one in list(app.running):
                one.node.running.remove(one)
            del app.queue.apps[app_id]
            self._check_empty(app.queue)

    def remove_node(self, node_id: str) -> None:
        for one in list(self.nodes.pop(node_id).running):
            self._end(one)

    def pass_time(self, seconds: int) -> None:
        end = self.now + seconds * SECOND
        after = {"Starting": 300 * SECOND, "Completing": 30 * SECOND}
        while True:
            timers: list[tuple[int, int, App | Queue]] = [
                (app.since + after[app.state], app.turn, app)
                for app in self.apps.values()
                if app.state in after
            ]
            timers += self.cleanups
            due = min((timer for timer in timers if timer[0] <= end), default=None)
            if due is None:
                break
            self.now, _, thing = due
            if isinstance(thing, Queue):
                self.cleanups.remove((due[0], due[1], thing))
                self._clean_up(thing)
            elif thing.state == "Starting":
                self.move(thing, "Running")
            else:
                self.remove_app(thing.id)
        self.now = end

    def place(self, ask: Ask, node: Node, uuid: str) -> None:
        """Apply a decision."""
        app = ask.app
        ask.pending -= 1
        self._book(Allocation(uuid, app, ask, node, ask.resource, ask.priority))

    def recover(self, app_id: str, node: Node, uuid: str, resource: Amount) -> None:
        """Add an allocation that the resource manager recovered."""
        app = self.apps.get(app_id)
        if app is not None:
            if app.state == "New":
                self.move(app, "Accepted")
            self._book(Allocation(uuid, app, None, node, resource))

    def _book(self, one: Allocation) -> None:
        app = one.app
        app.running.append(one)
        app.counts_for_limits = True
        one.node.running.append(one)
        if app.state != "Running":
            self.move(app, "Starting" if app.state == "Accepted" else "Running")

    # -- decisions ----------------------------------------------------------------------------------------

    def candidates(self) -> Iterator[tuple[Ask, Node]]:
        """Yield each ask that could be placed now, with each of its nodes, in the order of the policies."""
        yield from self._of_queue(self.root)

    def _of_queue(self, queue: Queue) -> Iterator[tuple[Ask, Node]]:
        if not queue.leaf:
            for child in self._children(queue):
                yield from self._of_queue(child)
            return
        for app in self._apps(queue):
            for ask in sorted(app.waiting, key=lambda ask: (-ask.priority, ask.created, ask.arrival)):
                node = next(self.nodes_for(ask), None)
                if node is not None:
                    yield ask, node

    def nodes_for(self, ask: Ask) -> Iterator[Node]:
        """Yield the nodes that could take `ask` now, in node order; none if a quota or limit is exceeded."""
        app = ask.app
        if not (
            self._may_start(app)
            and self._has_quota(app.queue, ask.resource)
            and self._has_tracker(app, ask.resource)
        ):
            return
        required = ask.tags.get("yunikorn.apache.org/requiredNode", "")
        for node in self._nodes(ask):
            if required and node.id != required:
                continue
            # An ask that requires a node is placed there even while the node is drained.
            if not node.schedulable and not required:
                continue
            if node.has_room(ask.resource) and all(check(ask, node) for check in self.checks):
                yield node

    def _has_quota(self, queue: Queue, resource: Amount) -> bool:
        for level in queue.up():
            quota = level.max if level.parent else self.cluster
            used = level.allocated()
            for name, amount in resource.items():
                if amount and quota and name in quota and used.get(name, 0) + amount > quota[name]:
                    return False
        return True

    # limits

    def _may_start(self, app: App) -> bool:
        if app.state not in ("New", "Accepted"):
            return True
        for level in app.queue.up():
            running = [other for other in level.all_apps() if other.state in ("Starting", "Running")]
            if 0 < level.max_apps <= len(running):
                return False
        return all(
            not 0 < limit.get("maxapplications", 0) <= sum(other.counts_for_limits for other in sharing)
            for limit, sharing in self._limits(app)
        )

    def _has_tracker(self, app: App, resource: Amount) -> bool:
        for limit, sharing in self._limits(app):
            most = amount_of(limit.get("maxresources")) or {}
            used = total_of(other.allocated() for other in sharing)
            for name, amount in resource.items():
                if amount and name in most and used.get(name, 0) + amount > most[name]:
                    return False
        return True

    @staticmethod
    def _limits(app: App) -> Iterator[tuple[Mapping[str, Any], list[App]]]:
        """Yield the limits that apply to an application, each with the applications that share the limit."""
        for level in app.queue.up():
            users = {name: limit for limit in reversed(level.limits) for name in limit.get("users", ())}
            groups = {name: limit for limit in reversed(level.limits) for name in limit.get("groups", ())}
            limit = users.get(app.user) or users.get("*")
            if limit:
                yield limit, [other for other in level.all_apps() if other.user == app.user]
            if app.group in groups:
                yield groups[app.group], [other for other in level.all_apps() if other.group == app.group]

    # queues

    def _children(self, parent: Queue) -> list[Queue]:
        children = [
            child
            for child in parent.children.values()
            if child.waits() and (child.draining or child.properties.get("queue.state") != "stopped")
        ]
        if parent.is_on("application.sort.priority"):
            return sorted(
                children,
                key=lambda queue: (-queue.published(), self._ratio(queue), -self._pending(queue), queue.name),
            )
        return sorted(children, key=lambda queue: (self._ratio(queue), -self._pending(queue), queue.name))

    def _fair_max(self, queue: Queue) -> Amount:
        if queue.parent is None:
            return self.cluster
        above = self._fair_max(queue.parent)
        return above if queue.max is None or not above else {**above, **queue.max}

    def _ratio(self, queue: Queue) -> Fraction:
        ratios = [Fraction(0)]
        for name, used in queue.allocated().items():
            for dues in (queue.guaranteed, self._fair_max(queue)):
                if name in dues:
                    ratios.append(Fraction(used, dues[name]) if dues[name] > 0 else Fraction(bool(used)))
                    break
        return max(ratios)

    def _pending(self, queue: Queue) -> float:
        # Each part is a float as in the policy; the sum is exact, and rounded once.
        total = self.cluster
        parts = [Fraction(amount / (total.get(name) or 1)) for name, amount in queue.pending().items()]
        return float(sum(parts))

    # applications

    def _apps(self, leaf: Queue) -> list[App]:
        policy = leaf.properties.get("application.sort.policy", "fifo")

        def key(app: App) -> tuple[Any, ...]:
            own: Any = self._shares(app) if policy == "fair" else app.submitted
            return (-app.priority if counts else 0, own, app.arrival)

        counts = leaf.is_on("application.sort.priority")
        apps = sorted(leaf.apps.values(), key=key)
        if policy == "stateaware":
            apps = self._stateaware(apps, counts)
        return [app for app in apps if app.waiting]

    @staticmethod
    def _stateaware(apps: list[App], priorities_count: bool) -> list[App]:
        def foremost(state: str) -> list[App]:
            found = [app for app in apps if app.state == state]
            return sorted(
                found,
                key=lambda app: (-app.kept_priority if priorities_count else 0, app.submitted, app.arrival),
            )[:1]

        chosen = foremost("Starting") or foremost("Accepted")
        return [app for app in apps if app.state not in ("Starting", "Accepted") or app in chosen]

    def _shares(self, app: App) -> list[Fraction]:
        shares = []
        for name, amount in app.allocated().items():
            whole = app.queue.guaranteed.get(name, self.cluster.get(name, 0))
            shares.append(Fraction(amount, whole or 1))
        return sorted(filter(None, shares), reverse=True)

    # nodes

    def _nodes(self, ask: Ask) -> list[Node]:
        chosen = ask.app.tags.get("yunikorn.apache.org/node-sort-policy", "")
        if chosen not in self.node_sorts:
            chosen = ""
        chosen = chosen or ask.app.queue.properties.get("node.sort.policy", "")
        policy = self.node_sorts.get(chosen, self.node_sorts[""])
        return sorted(self.nodes.values(), key=lambda node: (self._score(policy, node, ask), node.id))

    @staticmethod
    def _score(policy: Mapping[str, Any], node: Node, ask: Ask) -> Fraction:
        if policy["type"] == "snug":
            left = [node.available(name) - amount for name, amount in ask.resource.items() if amount]
            return Fraction(sum(left))
        weights = policy.get("resourceweights") or {"vcore": 1, "memory": 1}
        used = whole = Fraction(0)
        for name, weight in weights.items():
            if node.capacity.get(name) and weight:
                used += Fraction(weight) * (1 - Fraction(node.available(name), node.capacity[name]))
                whole += Fraction(weight)
        usage = used / whole if whole else Fraction(0)
        return 1 - usage if policy["type"] == "binpacking" else usage
