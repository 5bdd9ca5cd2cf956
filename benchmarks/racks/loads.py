"""Loads of gangs and single tasks on blocks of racks."""

from __future__ import annotations

import json
import math
from typing import Any

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.resources import Resource
from yunikorn_lab.simulation.adjustments import SyntheticRacks
from yunikorn_lab.simulation.arrivals import Poisson
from yunikorn_lab.simulation.distributions import Constant, DrawnAmounts, Lognormal, WeightedChoice
from yunikorn_lab.simulation.generator import ApplicationPlan, Generated, TaskPlan
from yunikorn_lab.simulation.workload import Workload, WorkloadApplication, WorkloadNode

TAG = "yunikorn.apache.org/gang-topology"
RACK, RACKS, BLOCKS = 16, 4, 4
"""Nodes of a rack, racks of a block, and blocks."""
GPUS = 8
NODE = Resource(vcore=96_000, memory=1 << 40, gpu=GPUS)
MEMBER = NODE
"""A member of a gang has a whole node."""
MEDIAN, SIGMA = 3600 * SECOND, 0.7
"""Run times: lognormal."""
LOAD = 0.7
"""Part of the devices that the work needs on average."""
SIZES = (2, 4, 8, 16, 32, 64)
"""Members of gangs; the work of all sizes together grows with the root of the size."""
GANGS = 0.25
"""Part of the applications that are gangs."""
SMALL = (1, 2, 4, 8)
"""Devices of single tasks."""
FLEXIBLE = 0.5
"""Part of the gangs that take more domains after a time."""


def kinds() -> dict[str, tuple[float, tuple[int, ...], Any]]:
    """Return the kinds of gangs by prefix of their ids: part of all gangs, sizes and request."""
    in_rack, in_block = SIZES[:4], SIZES[4:]
    weight = {size: size**-0.5 for size in SIZES}
    part = sum(weight[size] for size in in_rack) / sum(weight.values())
    patient = {"required": "block", "preferred": [{"level": "rack", "for": "10m"}]}
    return {
        "rack-strict": (part * (1 - FLEXIBLE), in_rack, {"required": "rack"}),
        "rack-flexible": (part * FLEXIBLE, in_rack, patient),
        "block-strict": ((1 - part) * (1 - FLEXIBLE), in_block, {"required": "block"}),
        "block-flexible": (
            (1 - part) * FLEXIBLE,
            in_block,
            {"preferred": [{"level": "block", "for": "30m"}]},
        ),
    }


def rack_load(seed: int, applications: int, *, opposite: bool = False) -> Workload:
    """Return single tasks and gangs that arrive at random, on 256 nodes.

    Single tasks take nodes in the order of their names, which is that of the racks, or the `opposite` one.
    """
    count = RACK * RACKS * BLOCKS
    names = range(count)[::-1] if opposite else range(count)
    nodes = [WorkloadNode(f"n{number:03}", NODE) for number in names]
    runtime = DrawnAmounts(Lognormal(MEDIAN, SIGMA), MILLISECOND, SECOND, 40 * MEDIAN)
    mean_runtime = MEDIAN * math.exp(SIGMA**2 / 2)
    plans, work = [], 0.0
    shares: dict[str, tuple[float, tuple[int, ...], Any]] = {"single": (1 - GANGS, (1,), None)}
    shares |= {name: (part * GANGS, sizes, wanted) for name, (part, sizes, wanted) in kinds().items()}
    for name, (part, sizes, wanted) in shares.items():
        weights = [size**-0.5 for size in sizes]
        mean = sum(size * weight for size, weight in zip(sizes, weights, strict=True)) / sum(weights)
        work += part * (mean if wanted else sum(SMALL) / len(SMALL) / GPUS)
        members = DrawnAmounts(WeightedChoice(sizes, weights), 1, 1, max(sizes))
        amounts: Any = {kind: DrawnAmounts(Constant(amount), 1, 1, amount) for kind, amount in MEMBER.items()}
        if not wanted:
            parts = [
                Resource({kind: amount * gpus // GPUS for kind, amount in NODE.items()}) for gpus in SMALL
            ]
            amounts = WeightedChoice(parts, [1.0] * len(parts))
        pattern = WorkloadApplication(
            name,
            0,
            (),
            queue="root.default",
            user="user",
            tags={TAG: json.dumps(wanted)} if wanted else {},
            gang="Atomic" if wanted else "",
        )
        plans.append((part, pattern, TaskPlan("members", members, amounts, runtime)))
    gap = mean_runtime * work / (count * LOAD)
    made = [
        ApplicationPlan(pattern, Poisson(round(gap / part)), (task,), round(applications * part))
        for part, pattern, task in plans
    ]
    drawn = Workload("racks", "generated", nodes, Generated((), made, seed), seed=seed)
    return SyntheticRacks(RACK, RACKS).apply(drawn)


def configuration(policy: str, patience: str = "1000h") -> str:
    """Return the text of a configuration with a gang placement policy; JSON, as YAML is a superset.

    With the default `patience`, no gang waits long enough to get a domain that is kept free for it.
    """
    partition = {
        "name": "default",
        "topology": ["block", "rack"],
        "gangplacement": policy,
        "nodesortpolicy": {"type": "binpacking"},
        "periods": {"gangpatience": patience},
        "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}],
    }
    return json.dumps({"partitions": [partition]})
