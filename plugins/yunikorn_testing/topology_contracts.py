"""Contract tests of topology sources and of gang placement policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from yunikorn.api import GangPlacementPolicy, TopologySource
from yunikorn.containment import number_or_none
from yunikorn.framework.kinds import GANG_PLACEMENT, TOPOLOGY
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn.model.context import Timeouts
from yunikorn_testing.answers_contract import AnswersContract, Question, calling
from yunikorn_testing.cluster import Cluster
from yunikorn_testing.gang_samples import DomainSample, GangSample, gang, gang_part, topology
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import NodeSample, application, ask, busy_node, node
from yunikorn_testing.watched_samples import WatchedReading

LEVELS = ("block", "rack")
"""Levels of the sample topology, which are attributes of its nodes."""
WAITS = (0.0, 600.0)
"""Times of a request for a preferred level, in seconds."""
LONGEST = 1e9
"""Upper bound of times, in seconds."""
MOST_PLANS = 16
"""Largest number of plans that the core compares."""
USED: Mapping[str, int] = {"b1/r2": 4, "b2/r1": 8, "b2/r3": 1}
"""Virtual cores in use on two nodes of a rack."""
READ_ONLY_FROM = {"id", "attributes"}
"""Attributes of a node that its domains may depend on."""


class TopologySourceContract(AnswersContract):
    """Tests that a topology source must pass; set `source = Mine(...)`."""

    kind = TOPOLOGY
    subject = "source"
    source: ClassVar[TopologySource]

    def name_in(self, document: Yaml) -> None:
        """Add the source to the partition."""
        document["partitions"][0]["topology"] = [self.named("name")]

    def nodes(self) -> Sequence[NodeSample]:
        """Return nodes with different attributes; extend the list with nodes that the source places."""
        return [
            node("node-1", {"block": "b1", "rack": "r1", "zone": "a"}, vcore=4),
            node("b2-r1-n7.example.org", {"rack": "r1"}, gpu=8),
            node("bare"),
            node("ä ö", {"": "", "block": "/", "rack": " "}),
            busy_node(),
        ]

    def questions(self) -> Sequence[Question]:
        """Return a question for each node."""
        return [Question(f"path({one.id})", calling("path", one)) for one in self.nodes()]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is not a text for each level."""
        levels = self.fresh().levels
        fits = isinstance(answer, Sequence) and not isinstance(answer, str) and len(answer) == len(levels)
        if fits and all(isinstance(name, str) for name in answer):
            return ""
        return f"return a text for each of the levels {', '.join(levels)}, '' where the node lacks the level"

    def test_levels_have_names_of_their_own(self) -> None:
        """Check that there is a level, and that levels are distinct texts."""
        levels = self.fresh().levels
        fits = isinstance(levels, Sequence) and not isinstance(levels, str) and len(levels) > 0
        fits = fits and all(isinstance(level, str) and level for level in levels)
        fits = fits and len(set(levels)) == len(levels)
        assert fits, f"levels are {levels!r}: return a list with at least one name, without repetition"

    def test_path_depends_on_id_and_attributes_only(self) -> None:
        """Check that the source reads nothing of a node that changes without a new question."""
        found = sorted(name for view, name in self.read_by(self.fresh()).names if view == "Node")
        other = [name for name in found if name not in READ_ONLY_FROM]
        assert not other, (
            f"the source reads Node.{', Node.'.join(other)}: the scheduler asks only when a node joins or "
            "its attributes change, so use the id and the attributes"
        )


class GangPlacementPolicyContract(AnswersContract):
    """Tests that a gang placement policy must pass; set `policy = Mine(...)`.

    Override `gangs` and `nodes` with cases that matter to the policy.
    """

    kind = GANG_PLACEMENT
    flags = ("per_application",)
    policy: ClassVar[GangPlacementPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy and a topology to the partition."""
        document["partitions"][0]["topology"] = list(LEVELS)
        document["partitions"][0]["gangplacement"] = self.named("name")

    # -- samples --------------------------------------------------------------------------------------

    def gangs(self) -> Sequence[GangSample]:
        """Return gangs of different size, with one kind of members and with several."""
        tagged = application("tagged", user="ann@example.org", groups=(), tags={"team": "physics"})
        return [
            gang(gang_part(2, vcore=1)),
            gang(gang_part(16, "workers", vcore=2, memory="2Gi"), app=application("large", user="bob")),
            gang(gang_part(4, "workers", vcore=2), gang_part(1, "driver", vcore=4), app=tagged),
            gang(gang_part(6, resource={"gpu": 1, "licence": 0}), app=application("rare")),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        """Return the nodes of two blocks with idle, busy and full racks, and nodes without a level."""
        return _nodes()

    def _ranked(self, root: DomainSample) -> list[tuple[GangSample, DomainSample]]:
        """Return the gangs, each with the domains with room for all of its parts."""
        domains = [
            found for level in ("", *LEVELS) for found in root.inside(level) if found.name or not level
        ]
        return [
            (one, domain)
            for one in self.gangs()
            for domain in domains
            if all(domain.room(part) >= part.count for part in one.parts)
        ]

    # -- questions ------------------------------------------------------------------------------------

    def questions(self) -> Sequence[Question]:
        """Return a question for each method and sample."""
        return self._questions(*FAULTS)

    def _questions(self, *methods: str) -> list[Question]:
        return [each for method in methods for each in getattr(self, f"_{method}")()]

    def _rank(self) -> list[Question]:
        return self._of_domains("rank")

    def _refuses(self) -> list[Question]:
        return self._of_domains("refuses")

    def _of_domains(self, method: str) -> list[Question]:
        return [
            Question(
                f"{method}({_label(one)}, {domain.name or 'the whole tree'})",
                calling(method, one, domain),
                FAULTS[method],
            )
            for one, domain in self._ranked(topology(self.nodes(), LEVELS))
        ]

    def _split(self) -> list[Question]:
        found = []
        for one, domain in self._ranked(topology(self.nodes(), LEVELS)):
            for part in one.parts:
                room = [(child, child.room(part)) for child in domain.children if child.room(part)]
                children, counts = tuple(child for child, _ in room), [most for _, most in room]
                for count in {1, part.count, sum(counts) + 1} if room else ():
                    text = f"split({_label(one)}, {part.task_group or 'members'}, {count}, {counts})"
                    put = partial(_put_split, one, part, count, children, counts)
                    wanted = min(count, sum(counts))
                    names = dict(zip((child.name for child in children), counts, strict=True))
                    found.append(Question(text, put, partial(_fault_of_split, wanted, names)))
        return found

    def _score(self) -> list[Question]:
        nodes = tuple(self.nodes())
        return [
            Question(f"score({_label(one)})", calling("score", one, nodes[: one.size]), FAULTS["score"])
            for one in self.gangs()
        ]

    def _gives_up_after(self) -> list[Question]:
        return [
            Question(
                f"gives_up_after({_label(one)}, {level}, {wait})",
                calling("gives_up_after", one, level, wait),
                FAULTS["gives_up_after"],
            )
            for one in self.gangs()
            for level in LEVELS
            for wait in WAITS
        ]

    # -- tests ----------------------------------------------------------------------------------------

    def test_ranks_have_one_length(self) -> None:
        """Check that `rank` returns tuples of one length for all domains, or only single numbers."""
        policy = self.fresh()
        lengths: dict[int, str] = {}
        for question in self._questions("rank"):
            answer = question.put(policy)
            lengths.setdefault(len(answer) if isinstance(answer, tuple) else 1, question.text)
        assert len(lengths) < 2, (
            f"ranks have different lengths: {lengths}; return tuples of one length, so that each number is "
            "compared with its like"
        )

    def test_rank_depends_only_on_what_it_is_asked_again_for(self) -> None:
        """Check that ranks and refusals of a domain do not depend on other blocks."""
        policy = self.fresh()
        for method, used in ((method, used) for method in ("rank", "refuses") for used in (USED, {})):
            before = self._by_domain(method, policy, _nodes(used))
            after = self._by_domain(method, policy, _nodes(used, busy="b2"))
            for asked, answer in before.items():
                assert after.get(asked, answer) == answer, (
                    f"{method}({asked}) is {answer!r}, and {after[asked]!r} when nodes of another block are "
                    "in use; the answer may depend on the domain, those below, and the one directly above, "
                    "if that has a name"
                )

    def _by_domain(self, method: str, policy: Any, nodes: Sequence[NodeSample]) -> dict[str, Any]:
        return {
            f"{_label(one)}, {domain.name}": getattr(policy, method)(one, domain)
            for one, domain in self._ranked(topology(nodes, LEVELS))
            if domain.name.startswith("b1")
        }

    def test_answers_that_depend_on_the_application_are_declared(self) -> None:
        """Check that `per_application` is true if `rank` or `refuses` read the application."""
        policy = self.fresh()
        reading = WatchedReading()
        for question in self._questions("rank", "refuses"):
            reading.watch_call(question.put)(policy)
        assert policy.per_application or ("PlacedGang", "app") not in reading.names, (
            "rank or refuses reads PlacedGang.app, and per_application is False, so that answers are shared "
            "by gangs of other applications: set per_application = True"
        )

    def test_score_is_asked_for(self) -> None:
        """Check `compares`, without which no score is asked for."""
        compares: Any = self.fresh().compares
        fits = type(compares) is int and 1 <= compares <= MOST_PLANS
        assert fits, f"compares is {compares!r}: return a whole number from 1 to {MOST_PLANS}"
        assert compares > 1 or type(self.policy).score is GangPlacementPolicy.score, (
            "compares is 1, so that score is never called: return the number of plans to compare"
        )

    # -- in a cluster ---------------------------------------------------------------------------------

    def play(self, *, reload: int, reservations: bool = True) -> Cluster:
        """Run a fixed workload of gangs in a cluster with the policy, with this number of reloads at once."""
        cluster = self.cluster(None if reservations else Timeouts(reservation=None))
        try:
            _first_gangs(cluster)
            for number in range(reload):
                cluster.reload(self.configuration(also=f"new-{number}"))
            _more_gangs(cluster)
        finally:
            cluster.close()
        return cluster


def _nodes(used: Mapping[str, int] = USED, busy: str = "") -> list[NodeSample]:
    """Return the nodes of two blocks, and others that lack levels; all of the block `busy` are in use."""
    found = [node("spare", vcore=8), node("loose", {"block": "b1"}, vcore=8, gpu=1)]
    for block in ("b1", "b2"):
        for rack in ("r1", "r2", "r3"):
            for number in range(3):
                cores = 3 if block == busy else used.get(f"{block}/{rack}", 0) * (number < 2)
                found.append(
                    node(
                        f"{block}-{rack}-{number}",
                        {"block": block, "rack": rack},
                        allocated={"vcore": cores} if cores else {},
                        vcore=8,
                        memory="32Gi",
                        gpu=2,
                    )
                )
    return found


def _label(one: GangSample) -> str:
    return f"gang {one.app.id} of {one.size}"


def _put_split(
    one: GangSample,
    part: Any,
    count: int,
    children: Sequence[DomainSample],
    counts: Sequence[int],
    policy: GangPlacementPolicy,
) -> Any:
    """Return the shares by the name of the domain, or the answer itself if it is no mapping."""
    answer: Any = policy.split(one, part, count, dict(zip(children, counts, strict=True)))
    if not isinstance(answer, Mapping):
        return answer
    return {getattr(domain, "name", domain): share for domain, share in answer.items()}


def _fault_of_split(wanted: int, room: Mapping[str, int], answer: Any) -> str:
    if not isinstance(answer, Mapping):
        return "return a mapping from domains to numbers of units"
    unknown = [name for name in answer if name not in room]
    if unknown:
        return f"{unknown[0]!r} is not in room: use the domains that room has as keys"
    odd = [name for name, share in answer.items() if type(share) is not int or not 0 <= share <= room[name]]
    if odd:
        return f"{odd[0]} has room for {room[odd[0]]}: return whole numbers from 0 to that"
    given = sum(answer.values())
    return "" if given == wanted else f"{given} units are given in total: give {wanted}"


def _is_number(value: object) -> bool:
    return number_or_none(value) is not None


def _fault_of_rank(rank: Any) -> str:
    numbers = rank if type(rank) is tuple else (rank,)
    fits = 0 < len(numbers) <= 16 and all(map(_is_number, numbers))
    return "" if fits else "return a number, or a tuple of 1 to 16 numbers"


def _fault_of_refusal(why: Any) -> str:
    fits = why is None or (isinstance(why, str) and why != "")
    return "" if fits else "return None if the gang may be placed there, or a reason"


def _fault_of_score(score: Any) -> str:
    return "" if _is_number(score) else "return a number"


def _fault_of_wait(wait: Any) -> str:
    fits = _is_number(wait) and 0 <= wait < LONGEST
    return "" if fits else "return a number of seconds of 0 or more"


FAULTS: Mapping[str, Any] = {
    "rank": _fault_of_rank,
    "refuses": _fault_of_refusal,
    "split": None,
    "score": _fault_of_score,
    "gives_up_after": _fault_of_wait,
}
"""Methods of the policy, each with a function that returns why an answer is invalid; None for `split`."""


def _submit(cluster: Cluster, app_id: str, count: int, wanted: Any, vcore: int = 2, queue: str = "") -> None:
    app = application(
        app_id,
        queue or "root.default",
        user=app_id,
        tags={GANG_TOPOLOGY_TAG: wanted if isinstance(wanted, str) else json.dumps(wanted)},
        gang="Atomic",
        gang_size={"vcore": count * vcore},
    )
    cluster.submit(app, ask(f"{app_id}-m", count, task_group="workers", vcore=vcore))


def _first_gangs(cluster: Cluster) -> None:
    """Submit gangs of several sizes with requirements, and tasks without."""
    cluster.add(*(one for one in _nodes() if one.id != "b2-r3-2"))
    cluster.submit(application("plain", "root.other"), ask("plain-t", 3, vcore=3))
    _submit(cluster, "rack", 6, "rack")
    _submit(cluster, "slices", 12, {"required": "block", "slices": [{"size": 4, "level": "rack"}]})
    cluster.run()
    _submit(cluster, "patient", 20, {"preferred": [{"level": "block", "for": "10m"}]}, queue="root.other")
    _submit(cluster, "near", 8, {"required": "block", "preferred": ["rack"]}, queue="root.other")
    _submit(cluster, "huge", 99, "block")
    cluster.run()


def _more_gangs(cluster: Cluster) -> None:
    """End some gangs, change nodes, and submit more."""
    cluster.advance(1200)
    cluster.run()
    cluster.finish("slices")
    cluster.remove("b1-r1-0")
    cluster.add(node("b2-r3-2", {"block": "b2", "rack": "r3"}, vcore=8))
    for number in range(3):
        _submit(cluster, f"late-{number}", 4 + 3 * number, "rack", vcore=1)
    two = application("two", tags={GANG_TOPOLOGY_TAG: "block"}, gang="Atomic", gang_size={"vcore": 12})
    large = ask("two-l", 2, task_group="large", vcore=4)
    cluster.submit(two, ask("two-s", 4, task_group="small", vcore=1), large)
    cluster.run()
