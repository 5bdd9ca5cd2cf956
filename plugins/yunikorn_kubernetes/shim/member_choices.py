"""Choices of the pods of a group that start together, where more exist than have to.

The core decides about one choice at a time. If no nodes have room for it, others may still fit, so they are
tried one after the other: a choice without one pod of the first, or one that begins with other pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from itertools import chain, combinations, islice

from yunikorn.resources import Resource, Tally
from yunikorn_kubernetes.objects import Pod

MOST_CHOICES = 16
"""Maximum number of choices that are tried.

Of 561 random groups of up to 8 pods that fit, 512 do with the first choice and 560 with one of 16.
"""
MOST_ORDERS = 256
"""Maximum number of orders of which choices are taken; of many kinds of pods, most pairs are left out."""


def easiest_first(
    pods: list[Pod], size: Callable[[Pod], Resource], number: Callable[[Pod], int]
) -> list[Pod]:
    """Return pods by number, then those with few conditions on nodes and other pods, then small ones."""
    sizes = {pod.metadata.uid: size(pod) for pod in pods}
    most: Tally = {}
    for one in sizes.values():
        most.update({name: max(amount, most.get(name, 1)) for name, amount in one.items()})

    def key(pod: Pod) -> tuple[int, int, float]:
        spec, wanted = pod.spec, sizes[pod.metadata.uid]
        conditions = len(spec.node_selector or ()) + len(_host_ports(pod)) + (spec.affinity is not None)
        return number(pod), conditions, max((wanted[name] / most[name] for name in wanted), default=0.0)

    return sorted(pods, key=key)


def choices(pods: list[Pod], count: int, size: Callable[[Pod], Resource]) -> list[list[Pod]]:
    """Return choices of `count` pods, the first ones at first; no two of them have pods that are alike."""
    kinds: dict[str, list[int]] = {}
    for place, pod in enumerate(pods):
        kinds.setdefault(_kind(pod, size(pod)), []).append(place)
    kind_of = {place: kind for kind, places in kinds.items() for place in places}
    found: dict[Hashable, list[int]] = {}
    for order in islice(_orders(len(pods), [*kinds.values()]), MOST_ORDERS):
        if len(order) >= count:
            numbers = Counter(kind_of[place] for place in order[:count])
            found.setdefault(frozenset(numbers.items()), order[:count])
        if len(found) == MOST_CHOICES:
            break
    return [[pods[place] for place in chosen] for chosen in found.values()]


def _orders(count: int, kinds: list[list[int]]) -> Iterator[list[int]]:
    """Yield orders of pods by their places, of which the first ones are chosen."""
    yield [*range(count)]
    if len(kinds) == 1:
        return
    for gone in chain(([kind[0]] for kind in kinds), kinds):
        left_out = set(gone)
        yield [place for place in range(count) if place not in left_out]
    for kind in kinds:
        yield [*range(kind[0], count), *range(kind[0])]
    for one, other in combinations(kinds, 2):
        yield [place for place in range(count) if place not in (one[0], other[0])]


def _kind(pod: Pod, size: Resource) -> str:
    """Return what decides on which nodes a pod fits."""
    spec = pod.spec
    wanted = spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints
    things = spec.resource_claims, [one for one in spec.volumes if one.restricts], _host_ports(pod)
    # Controllers number pods in labels, which matter to pods that look for others only.
    labels = pod.metadata.labels if spec.affinity or spec.topology_spread_constraints else {}
    return repr((sorted(size.items()), wanted, things, sorted(labels.items())))


def _host_ports(pod: Pod) -> list[int]:
    return [port.host_port for each in pod.spec.containers for port in each.ports if port.host_port]
