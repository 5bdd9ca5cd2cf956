"""Tests of the door with a receiver of packets, and of the command with a state dump."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from yunikorn_statsd import LONGEST, PendingByUser, Statsd, packets

from yunikorn_testing import (
    CommandContract,
    DoorContract,
    MakeScheduler,
    ServiceSample,
    application,
    ask,
    node,
)

QUEUES = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: batch}, {name: other}]}]
"""


class TestStatsd(DoorContract):
    """Contract of doors; no server has the port."""

    door = Statsd(interval=0.1)


class TestPendingByUser(CommandContract):
    """Contract of commands."""

    command = PendingByUser()


class Received(asyncio.DatagramProtocol):
    """Packets that have arrived."""

    def __init__(self) -> None:
        self.packets: asyncio.Queue[bytes] = asyncio.Queue()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Keep a packet."""
        self.packets.put_nowait(data)


def test_sizes_of_queues_are_sent(scheduler: MakeScheduler) -> None:
    cluster = scheduler(QUEUES, node("node", vcore=2))
    cluster.submit(application("app", "root.batch"), ask("task", 5, vcore=1))
    cluster.run()

    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        transport, received = await loop.create_datagram_endpoint(Received, local_addr=("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        async with ServiceSample(cluster).open(Statsd(f"127.0.0.1:{port}", prefix="test")):
            packet = await received.packets.get()
        transport.close()
        return packet.decode().splitlines()

    assert asyncio.run(story()) == [
        "test.root.batch.pending:3|g",
        "test.root.batch.running:2|g",
        "test.root.other.pending:0|g",
        "test.root.other.running:0|g",
    ]


def test_packets_are_short_and_complete() -> None:
    lines = [f"queue-{number}.pending:{number}|g" for number in range(500)]
    found = packets(lines)
    assert len(found) > 1
    assert all(len(packet) <= LONGEST for packet in found)
    assert b"".join(found).decode().splitlines() == lines


@pytest.mark.parametrize("address", ["", "8125", "host:", ":8125", "host:0", "host:http"])
def test_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Statsd(address)


def state(folder: Path) -> Path:
    """Write a state dump."""
    apps = [
        {"user": "ann", "requests": [{"allocationKey": "a"}, {"allocationKey": "b", "pendingCount": 4}]},
        {"user": "bob"},
        {"user": "cid", "requests": [{"allocationKey": "c"}]},
    ]
    file = folder / "state.json"
    file.write_text(json.dumps({"applications": apps}), "utf-8")
    return file


def test_pending_tasks_are_counted(tmp_path: Path) -> None:
    call = [str(state(tmp_path)), "--json"]
    done = CliRunner().invoke(PendingByUser().command(), call, standalone_mode=False)
    assert (json.loads(done.output), done.return_value) == ({"ann": 5, "cid": 1}, 0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"applications": 3}'])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text, "utf-8")
    done = CliRunner().invoke(PendingByUser().command(), [str(file)])
    assert done.exit_code == 2
    assert "this is not a state that `yunikorn dump` has written" in done.output
