"""`yunikorn top`: views, orders, layout, requests, and what a pipe gets."""

from __future__ import annotations

import itertools
import json
import os
import sys
from contextlib import nullcontext
from typing import Any

import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered
from tests.rest.kit import Rest
from yunikorn.cli.main import main
from yunikorn_rest.commands.rest_client import NotFound, ServerAddress, open_server
from yunikorn_rest.commands.top import KeyReader, next_interval
from yunikorn_rest.commands.top_feed import Feed, Snapshot
from yunikorn_rest.commands.top_layout import Glyphs, TopLayout, bar_width
from yunikorn_rest.commands.top_screen import Moment, Screen, ViewChoice
from yunikorn_rest.commands.top_views import APPS, NODES, QUEUES, VIEWS, Totals, UseBar, queue_records

AT = Moment(now=3_723_000_000_000, since=0, interval=2)
PLAIN, BLOCKS = Glyphs(ascii_only=True), Glyphs(ascii_only=False)


# -- a pipe ----------------------------------------------------------------------------------------------


def test_a_pipe_gets_all_rows_once(run: Run, asked: list[str]) -> None:
    status, out, err = run("top")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("vcore ███████")
    assert lines[0].endswith(" 3Gi/24Gi")
    assert lines[1] == "nodes 3  tasks 3  apps 2 (Running 1, Starting 1)"
    assert lines[3].split()[:6] == ["QUEUE", "STATE", "APPS", "VCORE", "USED/QUOTA", "MEMORY"]
    assert [line[:5] for line in lines[4:]] == ["root ", "  a  ", "  b  ", "    c"]
    assert "\x1b" not in out
    _, out, _ = run("top", "apps", "--once")
    assert [line.split()[0] for line in out.splitlines()[4:]] == ["wait", "run"]


def test_a_closed_pipe_ends_the_command(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["top", "--once"]) == 141


def test_all_pages_are_read_for_a_pipe(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pages_of(1, monkeypatch)
    _, out, _ = run("top", "nodes")
    assert [line.split()[0] for line in out.splitlines()[4:]] == ["n0", "n1", "n2"]
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--partition", "gpu"], 1, "there is no such partition; known: default (--partition)"),
        (["--server", "ftp://x"], 2, "--server: expected http://HOST:PORT or https://HOST:PORT"),
    ],
)
def test_errors_at_the_start(
    run: Run, asked: list[str], arguments: list[str], status: int, message: str
) -> None:
    assert run("top", *arguments) == (status, "", f"Error: {message}\n")


# -- requests --------------------------------------------------------------------------------------------


class Nodes:
    """Pages of nodes, with ETags."""

    def __init__(self, count: int) -> None:
        self.names = [f"n{number:05}" for number in range(count)]
        self.sent = 0
        """Number of nodes that were sent."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request for the partitions, or for a page of nodes."""
        if request.url.path.endswith("/partitions"):
            return httpx.Response(200, json=[{"name": "default", "clusterId": "rm"}])
        limit, after = int(request.url.params["limit"]), request.url.params.get("continue", "")
        page = [name for name in self.names if name > after][:limit]
        etag = f'"{json.dumps(page)}"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304)
        self.sent += len(page)
        more = {"x-continue": page[-1]} if page and page[-1] != self.names[-1] else {}
        return httpx.Response(200, json=[{"nodeID": name} for name in page], headers={"etag": etag, **more})


def pages_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all pages have the same size."""
    for name in ("PAGE", "SMALLEST_PAGE", "LARGEST_PAGE"):
        monkeypatch.setattr(f"yunikorn_rest.commands.top_feed.{name}", size)


def feed(interval: float = 2.0) -> Feed:
    """Return a feed that shows nodes first."""
    return Feed(nullcontext, "default", interval, [NODES, QUEUES, APPS])  # type: ignore[arg-type]


def names(found: Feed) -> list[str]:
    """Return the names of the nodes that a feed shows."""
    assert found.snapshot is not None
    return [one["nodeID"] for one in found.snapshot.found]


def test_a_long_list_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, ticks = Nodes(2000), itertools.count()
    asked = answered(monkeypatch, nodes)
    monkeypatch.setattr("time.monotonic", lambda: next(ticks) * 0.1)
    pages_of(250, monkeypatch)
    top = feed()
    with open_server(ServerAddress("http://x", 1)) as server:
        top.refresh(server)
        assert len(asked) < 8
        assert top.snapshot is not None
        assert not top.snapshot.complete
        while not top.snapshot.complete:
            top.refresh(server)
        assert names(top) == nodes.names
        # The next sweep sends what has changed only, and a node that is gone disappears.
        nodes.sent = 0
        del nodes.names[3]
        nodes.names.append("n99999")
        for _ in range(9):
            top.refresh(server)
        assert names(top) == nodes.names
        assert 0 < nodes.sent <= 2000
        nodes.sent = 0
        for _ in range(9):
            top.refresh(server)
        assert nodes.sent == 0


def test_the_size_of_pages_follows_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, now, pace = Nodes(3000), 0.0, 0.0

    def reply(request: httpx.Request) -> httpx.Response:
        nonlocal now
        if request.url.path.endswith("/nodes"):
            sizes.append(int(request.url.params["limit"]))
            now += pace * sizes[-1]
        return nodes(request)

    sizes: list[int] = []
    answered(monkeypatch, reply)
    monkeypatch.setattr("time.monotonic", lambda: now)
    top = feed(interval=1e6)
    with open_server(ServerAddress("http://x", 1)) as server:
        top.refresh(server)
        assert sizes == [50, 100, 200, 400, 500, 500, 500, 500, 500]
        assert names(top) == nodes.names
        sizes, pace = [], 0.001
        top.refresh(server)
        assert sizes == [50, 100, 200, 400, 500, 500, 500, 500, 500]
        sizes, pace = [], 0.01
        top.refresh(server)
        sizes = []
        for _ in range(8):
            top.refresh(server)
        assert max(sizes[-20:]) <= 30
        assert min(sizes) >= 5
        assert names(top) == nodes.names


def test_old_figures_are_shown_behind_the_place_of_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    pages_of(2, monkeypatch)
    nodes = Nodes(6)
    answered(monkeypatch, nodes)
    top = feed()
    with open_server(ServerAddress("http://x", 1)) as server:
        top.refresh(server, whole=True)
        nodes.names = ["a", "b", *nodes.names[2:]]
        top.hurry()  # ends a refresh after one page
        top.refresh(server)
        assert names(top) == ["a", "b", *(f"n{number:05}" for number in range(6))]
        top.refresh(server, whole=True)
        assert names(top) == nodes.names


def test_a_failure_is_shown_beside_the_old_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, Nodes(3))
    top = feed()
    with open_server(ServerAddress("http://x", 1)) as server:
        top.refresh(server)
        answered(monkeypatch, lambda request: httpx.Response(503, json={"message": "busy\x1b"}))
        top.attempt(server)
        assert top.snapshot is not None
        assert top.snapshot.problem == "http://x: status 503: busy\\x1b"
        assert len(top.snapshot.found) == 3
        assert top.least_pause == 0
        answered(monkeypatch, lambda request: httpx.Response(401, json={"message": "unknown"}))
        top.attempt(server)
        assert "wants credentials" in top.snapshot.problem
        assert top.least_pause == 30
        answered(monkeypatch, lambda request: httpx.Response(200, json=[]))
        top.attempt(server)
        assert top.least_pause == 0
        assert top.snapshot.problem.startswith("there is no such partition")
        with pytest.raises(NotFound):
            top.refresh(server)


# -- keys ------------------------------------------------------------------------------------------------


def test_keys_of_a_terminal() -> None:
    reader = KeyReader()
    assert reader.keys(b"q\x1b[A\x1b[6~\t\x1bOF\r\x7f\x1b[1;5C\xc3") == [
        *("q", "up", "page-down", "tab", "end", "enter", "backspace", "unknown"),
    ]
    assert reader.keys(b"\xa9") == ["é"]
    assert reader.keys(b"\x1b") == []
    assert reader.is_waiting
    assert reader.keys(b"", final=True) == ["escape"]
    assert reader.keys(b"\x1b[") == []
    assert reader.keys(b"B") == ["down"]
    assert reader.keys(b"\x1bx") == ["escape", "x"]
    assert reader.keys(b"\x1b[" + b"1" * 20) == ["unknown", *"1" * 10]


def test_keys_choose_views_orders_and_filters() -> None:
    choice = ViewChoice(QUEUES)
    assert choice.press("back-tab")
    assert choice.view is APPS
    for key in ("2", "s", "s", "r"):
        choice.press(key)
    assert (choice.view, choice.order["nodes"], choice.backwards) == (NODES, "tasks", True)
    for key in ("/", "q", "\x1b", "é", "up", "backspace", "enter"):
        assert choice.press(key)
    assert (choice.wanted, choice.is_typing) == ("q", False)
    choice.press("/")
    choice.press("escape")
    assert choice.wanted == ""
    choice.press("?")
    assert choice.is_help
    assert not choice.press("q")
    assert not choice.press("q")


def test_scrolling_stays_within_the_rows() -> None:
    choice = ViewChoice(NODES)
    for key, top in (
        ("end", 85),
        ("up", 84),
        ("page-up", 69),
        ("b", 54),
        ("home", 0),
        ("k", 0),
        ("j", 1),
        (" ", 16),
    ):
        choice.press(key)
        choice.keep_within(100, 15)
        assert choice.top == top, key


def test_the_interval_changes_in_steps() -> None:
    assert next_interval(2, longer=True) == 5
    assert next_interval(3, longer=False) == 2
    assert next_interval(0.5, longer=False) == 0.5
    assert next_interval(3600, longer=True) == 3600


# -- bars and frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bar", "blocks", "plain"),
    [
        (UseBar(0, 10), "░░░░░░░░", "........"),
        (UseBar(5, 10), "████░░░░", "####...."),
        (UseBar(1, 1000), "▏░░░░░░░", "#......."),
        (UseBar(999, 1000), "███████▉", "#######."),
        (UseBar(10, 10), "████████", "########"),
        (UseBar(20, 10), "████████", "########"),
        (UseBar(2, 10, 5), "█▋░░┃░░░", "##..|..."),
        (UseBar(8, 10, 5), "██████▍░", "######.."),
        (UseBar(3, 0), "        ", "        "),
        (UseBar(-3, 10), "░░░░░░░░", "........"),
        (UseBar(10**4000, 10), "████████", "########"),
        (UseBar(1, 10**4000), "░░░░░░░░", "........"),
    ],
)
def test_bars(bar: UseBar, blocks: str, plain: str) -> None:
    assert BLOCKS.bar(bar, 8).plain == blocks
    assert PLAIN.bar(bar, 8).plain == plain


def test_the_colour_of_a_bar_has_the_use() -> None:
    found = [str(BLOCKS.bar(UseBar(used, 100), 8).spans[0].style) for used in (10, 90, 100, 101)]
    assert found == ["green", "yellow", "yellow", "red"]


def snapshot(rest: Rest, view: str) -> Snapshot:
    """Return the figures of a cluster."""
    path = VIEWS[view].path
    value: Any = rest.json(f"partition/default/{path}")
    found = queue_records(value) if view == "queues" else [VIEWS[view].keep(one) for one in value]
    return Snapshot(view, rest.json("partitions")[0], found, True, 0)


def frame(found: Snapshot, choice: ViewChoice, width: int, height: int, glyphs: Glyphs = BLOCKS) -> list[str]:
    """Return the lines of a frame."""
    screen = Screen("http://x", "default", glyphs)
    return [line.plain for line in screen.frame(found, choice, AT, width, height)]


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("width", [1, 2, 10, 20, 40, 79, 80, 120, 200])
def test_a_frame_fits_its_terminal(rest: Rest, view: str, width: int) -> None:
    found = snapshot(rest, view)
    for height in (1, 2, 3, 4, 5, 8, 12, 24):
        for glyphs in (PLAIN, BLOCKS):
            lines = frame(found, ViewChoice(VIEWS[view]), width, height, glyphs)
            assert len(lines) <= height
            if width >= 20:
                assert max(map(len, lines)) <= width, lines


def test_what_a_narrow_terminal_shows(rest: Rest) -> None:
    lines = frame(snapshot(rest, "queues"), ViewChoice(QUEUES), 40, 12, PLAIN)
    assert lines == [
        "yunikorn top  http://x  default  01:02:~",
        "vcore ####.. 7/12  memory #..... 3Gi/24~",
        "nodes 3  tasks 3  apps 2 (Running 1, St~",
        "[queues] nodes  apps   by tree",
        "QUEUE  APPS  VCORE   USED/QUOTA  MEMORY",
        "root      2  ####..        7/12  #.....",
        "  a       1  ##....        3/12  #.....",
        "  b       1  ##....        4/12  ......",
        "    c     1  ##....        4/12  ......",
        "",
        "1-4 of 4",
        "q quit  Tab view  s order  / filter  ? ~",
    ]


def test_a_snapshot_of_another_view_is_not_shown(rest: Rest) -> None:
    lines = frame(snapshot(rest, "nodes"), ViewChoice(APPS), 80, 12)
    assert lines[-2] == "reading..."


def test_filters_and_orders_of_rows(rest: Rest) -> None:
    found = snapshot(rest, "nodes")
    choice = ViewChoice(NODES, wanted="N1")
    assert [line.split()[0] for line in frame(found, choice, 80, 24)[5:6]] == ["n1"]
    choice = ViewChoice(NODES)
    choice.press("s")
    used = [line.split()[0] for line in frame(found, choice, 80, 24)[5:8]]
    choice.press("r")
    assert [line.split()[0] for line in frame(found, choice, 80, 24)[5:8]] == used[::-1]


def test_quotas_hold_below() -> None:
    tree = {
        "queuename": "root",
        "maxResource": {"vcore": 10},
        "children": [
            {"queuename": "root.a", "maxResource": {"memory": 5}, "children": [{"maxResource": {"vcore": 3}}]}
        ],
    }
    assert [one["quotaInForce"] for one in queue_records(tree)] == [
        {"vcore": 10},
        {"vcore": 10, "memory": 5},
        {"vcore": 3, "memory": 5},
    ]


def test_columns_do_not_shrink_between_frames() -> None:
    layout = TopLayout()
    key = object()

    def titles(name: str) -> str:
        content = NODES.content([{"nodeID": name}], Totals({}, 0), "name")
        return layout.lines(content, 100, BLOCKS, key)[0].plain

    assert titles("long-name-of-a-node").index("TASKS") == titles("n").index("TASKS")


ODD: list[Any] = [None, 1, -5, True, "x", [], [1], {}, {"vcore": "x", "memory": 1.5}, [{}], 10**4000]


@pytest.mark.parametrize("view", list(VIEWS))
def test_odd_fields_count_as_absent(view: str) -> None:
    fields: tuple[str, ...] = (
        "children",
        "maxResource",
        "allocatedResource",
        "runningApps",
        "status",
        "queuename",
        "capacity",
    )
    fields += ("allocations", "reservations", "nodeID", "requests", "submissionTime", "usedResource", "user")
    for odd, field in itertools.product(ODD, fields):
        one = {field: odd}
        found = queue_records(one) if view == "queues" else [VIEWS[view].keep(one)]
        for order in VIEWS[view].orders:
            choice = ViewChoice(VIEWS[view])
            choice.order[view] = order
            partition = {"name": odd, "capacity": odd, "applications": odd, "totalNodes": odd}
            assert frame(Snapshot(view, partition, found, False, 0, "gone"), choice, 60, 12)


def test_bars_grow_with_the_terminal() -> None:
    assert [bar_width(width) for width in (1, 72, 110, 160)] == [6, 8, 12, 20]
