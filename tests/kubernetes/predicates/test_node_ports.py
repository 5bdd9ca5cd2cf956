"""Predicate `node-ports`: host ports with protocols and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.predicates.pods import host, pod, running
from yunikorn_kubernetes.predicates.node_ports import NodePorts
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_testing import AskSample, NodeSample, PredicateContract
from yunikorn_testing.samples import foreign_task

WEB = ["0.0.0.0", "TCP", 80]
LOCAL = ["127.0.0.1", "TCP", 80]

# Ports in use on the node, ports of the pod, and the port in conflict (empty if there is none).
PORTS: list[tuple[list[Any], list[Any], str]] = [
    ([], [WEB], ""),
    ([WEB], [], ""),
    ([WEB], [WEB], "0.0.0.0"),
    ([WEB], [["0.0.0.0", "TCP", 81]], ""),
    ([WEB], [["0.0.0.0", "UDP", 80]], ""),
    # 0.0.0.0 stands for every address, on either side.
    ([WEB], [LOCAL], "0.0.0.0"),
    ([LOCAL], [WEB], "127.0.0.1"),
    ([LOCAL], [LOCAL], "127.0.0.1"),
    ([LOCAL], [["127.0.0.2", "TCP", 80]], ""),
    ([LOCAL], [["0.0.0.0", "UDP", 80]], ""),
    # Without address and protocol: 0.0.0.0 and TCP.
    ([["", "", 80]], [LOCAL], "0.0.0.0"),
    ([WEB], [["", "", 80]], "0.0.0.0"),
    # Port 0 is none.
    ([["", "", 0]], [["", "", 0]], ""),
    ([WEB], [["", "TCP", 79], ["", "TCP", 80]], "0.0.0.0"),
]


@pytest.mark.parametrize(("used", "wanted", "address"), PORTS)
def test_ports(used: list[Any], wanted: list[Any], address: str) -> None:
    predicate, here, there = NodePorts(), host("n1"), host("n2")
    predicate.placed(running(pod(hostPorts=used), here), here)
    expected = RefusalSentence.PORTS.because(f"a pod on the node uses the host port 80/TCP of {address}")
    assert predicate.check(pod(hostPorts=wanted), here) == (expected if address else None)
    assert predicate.check(pod(hostPorts=wanted), there) is None


def test_a_port_is_free_after_the_last_pod_that_uses_it() -> None:
    """Static pods of a kubelet may use a port twice."""
    predicate, here = NodePorts(), host()
    tasks = [foreign_task(key, here, tags=pod(hostPorts=[WEB]).tags) for key in ("one", "two")]
    for task in tasks:
        predicate.placed(task, here)
    predicate.released(tasks[0], here)
    assert predicate.check(pod(hostPorts=[LOCAL]), here) is not None
    predicate.released(tasks[1], here)
    assert predicate.check(pod(hostPorts=[LOCAL]), here) is None


@pytest.mark.parametrize("entry", [7, [], ["", "TCP"], ["", "TCP", "80"], ["", 6, 80], ["", "TCP", 70_000]])
def test_unreadable_ports_refuse_the_pod(entry: Any) -> None:
    answer = NodePorts().check(pod(hostPorts=[entry]), host())
    assert answer is not None
    assert f"the pod's host ports cannot be read: {entry} is not [address, protocol, port]" in answer


def test_requirement_in_words() -> None:
    assert NodePorts().wanted(pod(hostPorts=[LOCAL, ["", "", 22]])) == (
        "free host ports 22/TCP, 80/TCP of 127.0.0.1"
    )
    assert NodePorts().wanted(pod()) is None


class TestNodePorts(PredicateContract):
    predicate = NodePorts()

    def asks(self) -> Sequence[AskSample]:
        lists: list[list[Any]] = [[], [WEB], [LOCAL], [["", "UDP", 80]], [WEB, ["", "", 22]], [7]]
        return [pod(f"p{number}", hostPorts=one) for number, one in enumerate(lists)]

    def nodes(self) -> Sequence[NodeSample]:
        return [host("n1"), host("n2")]
