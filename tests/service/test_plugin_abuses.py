"""A service whose plugins raise exceptions of all kinds keeps serving, names them, and ends in order."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.service.kit import work
from tests.service.process import Shim, Start

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
PLUGINS = """
from asyncio import CancelledError
from yunikorn.api import AppSortPolicy, EventSink, NodeSortPolicy, Predicate, QueueSortPolicy, hookimpl

class Text(str):
    __str__ = __repr__ = __len__ = None

class Hidden(Exception):
    def __str__(self):
        raise KeyboardInterrupt

class Order(AppSortPolicy):
    name = "order"
    def key(self, app):
        raise SystemExit(0)

class Queues(QueueSortPolicy):
    name = "queues"
    def key(self, queue):
        raise GeneratorExit

class Nodes(NodeSortPolicy):
    name = "nodes"
    def score(self, node):
        raise KeyboardInterrupt

class Check(Predicate):
    name = "check"
    def check(self, ask, node):
        return None
    def ask_class(self, ask):
        raise Hidden

class Sink(EventSink):
    name = "sink"
    def send(self, batch):
        print('{"not": "json"')
        raise CancelledError

@hookimpl
def yunikorn_app_sort_policies():
    return [Order]

@hookimpl
def yunikorn_queue_sort_policies():
    return [Queues]

@hookimpl
def yunikorn_node_sort_policies():
    return [Nodes]

@hookimpl
def yunikorn_predicates():
    return [Check]

@hookimpl
def yunikorn_event_sinks():
    return [Sink]
"""
CONFIG = """
partitions:
  - name: default
    nodesortpolicy: {type: nodes}
    predicates: [check]
    queues:
      - name: root
        submitacl: "*"
        properties: {queue.sort.policy: queues}
        queues:
          - {name: a, properties: {application.sort.policy: order}}
          - {name: b, properties: {application.sort.policy: order}}
events: {sinks: [sink]}
plugins: {load: [./bad.py]}
"""
WANTED = ("key of", "score of", "class of", "sending events")


@UNIX
@pytest.mark.slow
def test_a_service_contains_exceptions_of_plugins_from_a_file(start: Start, config: Path) -> None:
    plugins = config.parent / "bad.py"
    plugins.write_text(PLUGINS, "utf-8")
    config.write_text(CONFIG, "utf-8")
    service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    shim = Shim(service.address)
    shim.register()
    shim.send(work(1, app="other"))
    shim.send(work(3))
    assert len(shim.allocations(4)) == 4
    missing = set(WANTED)
    while missing:
        line = service.wait_for("./bad.py")
        missing = {text for text in missing if text not in line}

    plugins.write_text("import sys\nsys.exit(0)\n", "utf-8")
    service.signal(signal.SIGHUP)
    service.wait_for("the new configuration was rejected")
    assert "SystemExit: 0" in service.wait_for("plugins.load[0]")
    plugins.write_text(PLUGINS + "\n", "utf-8")
    service.signal(signal.SIGHUP)
    service.wait_for("changed for: rm")

    service.signal(signal.SIGTERM)
    assert service.end() == 0
    shim.close()


@UNIX
def test_a_signal_ends_a_service_whose_plugin_never_ends(start: Start, config: Path) -> None:
    plugins = config.parent / "bad.py"
    plugins.write_text(PLUGINS, "utf-8")
    config.write_text(CONFIG, "utf-8")
    service = start("--grpc", "127.0.0.1:0", "--config", str(config))
    never = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    plugins.write_text(f"{never}print('begun')\nthreading.Event().wait()\n", "utf-8")
    service.signal(signal.SIGHUP)
    service.wait_for("printed by a plugin or a library: begun")
    service.signal(signal.SIGTERM)
    assert service.end() == 0
