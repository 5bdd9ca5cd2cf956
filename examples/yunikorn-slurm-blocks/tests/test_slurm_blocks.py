"""Tests of the choice of blocks: single decisions on blocks with different numbers of free nodes."""

from __future__ import annotations

import json
from collections import Counter

from yunikorn_slurm_blocks import SlurmBlocks

from yunikorn_testing import (
    Cluster,
    GangPlacementPolicyContract,
    MakeScheduler,
    NodeSample,
    allocation,
    application,
    ask,
    gang,
    gang_part,
    node,
    topology,
)

TAG = "yunikorn.apache.org/gang-topology"
LEVELS = ["aggregate", "block"]
CONFIGURATION = json.dumps(
    {
        "partitions": [
            {
                "name": "default",
                "topology": LEVELS,
                "gangplacement": "slurm-blocks",
                "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "batch"}]}],
            }
        ]
    }
)


class TestSlurmBlocks(GangPlacementPolicyContract):
    """Contract test of gang placement policies."""

    policy = SlurmBlocks()


def hosts(**sizes: int) -> list[NodeSample]:
    """Return nodes with one core; `a_x=3` are three nodes in block x of aggregate a."""
    return [
        node(f"{aggregate}-{block}-{number}", {"aggregate": aggregate, "block": block}, vcore=1)
        for (aggregate, block), size in ((name.split("_"), size) for name, size in sizes.items())
        for number in range(size)
    ]


def submit(cluster: Cluster, name: str, size: int, wanted: object) -> None:
    """Submit a gang of whole nodes."""
    tags = {TAG: json.dumps(wanted)}
    app = application(name, "root.batch", tags=tags, gang="Atomic", gang_size={"vcore": size})
    cluster.submit(app, ask(f"{name}-m", size, task_group="nodes", vcore=1))
    cluster.run()


def blocks(cluster: Cluster, name: str) -> dict[str, int]:
    """Return the number of members by block."""
    return Counter(one.node.rpartition("-")[0] for one in cluster.running(name))


def test_block_that_fits_with_the_fewest_free_nodes_is_taken(scheduler: MakeScheduler) -> None:
    cluster = scheduler(CONFIGURATION, *hosts(a_x=4, a_y=2, b_x=3), plugins=[SlurmBlocks])
    submit(cluster, "job", 3, {"required": "block"})
    assert blocks(cluster, "job") == {"b-x": 3}


def test_smallest_level_that_fits_is_taken(scheduler: MakeScheduler) -> None:
    cluster = scheduler(CONFIGURATION, *hosts(a_x=2, a_y=2, b_x=3, b_y=3), plugins=[SlurmBlocks])
    wanted = {"preferred": ["block", "aggregate"]}
    for name, size in (("one-block", 3), ("one-aggregate", 4), ("all", 3)):
        submit(cluster, name, size, wanted)
    assert blocks(cluster, "one-block") == {"b-x": 3}
    assert blocks(cluster, "one-aggregate") == {"a-x": 2, "a-y": 2}
    assert blocks(cluster, "all") == {"b-y": 3}


def test_largest_blocks_first_where_none_fits(scheduler: MakeScheduler) -> None:
    cluster = scheduler(CONFIGURATION, *hosts(a_w=1, a_x=4, a_y=2, a_z=3), plugins=[SlurmBlocks])
    submit(cluster, "job", 6, {"required": "aggregate"})
    # Four of the largest, and the rest in the smallest block that fits.
    assert blocks(cluster, "job") == {"a-x": 4, "a-y": 2}


def test_segments_are_whole_in_their_blocks(scheduler: MakeScheduler) -> None:
    cluster = scheduler(CONFIGURATION, *hosts(a_x=3, a_y=3, a_z=2), plugins=[SlurmBlocks])
    submit(cluster, "job", 4, {"required": "aggregate", "slices": [{"size": 2, "level": "block"}]})
    assert all(count % 2 == 0 for count in blocks(cluster, "job").values())


def test_block_in_use_by_the_job_is_preferred() -> None:
    nodes = hosts(a_x=2, a_y=5)
    running = application("job")
    task = allocation(ask("first", app=running, vcore=1), nodes[-1])
    object.__setattr__(running, "allocations", {task.uuid: task})
    part = gang_part(2, "nodes", vcore=1)
    (aggregate,) = topology(nodes, LEVELS).inside("aggregate")
    x, y = aggregate.children
    policy = SlurmBlocks()
    assert policy.rank(gang(part, app=running), y) < policy.rank(gang(part, app=running), x)
    assert policy.rank(gang(part), x) < policy.rank(gang(part), y)
    assert policy.split(gang(part, app=running), part, 2, {x: 2, y: 5}) == {y: 2}
