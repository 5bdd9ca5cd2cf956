"""Doors of installed packages in a service process: options, and failures of each call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.lab.commands.test_plugins import install
from tests.service.conftest import SMALL

pytestmark = pytest.mark.slow

HEAD = """
import asyncio, logging, os, signal, time
import attrs
from yunikorn.api import Door, hookimpl

log = logging.getLogger("yunikorn.plugins")

@attrs.define(eq=False)
class Mine(Door):
    "Do odd things."
    name = "NAME"
    size: int = attrs.field(default=3, metadata={"help": "Number of things."})

    async def start(self, service):
        service.run_in_background(self.end(service))
        return f"size {self.size}"

    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        os.kill(os.getpid(), signal.SIGTERM)

BODY

@hookimpl
def yunikorn_doors():
    return [Mine]
"""
SERVE = """
import os, sys
from yunikorn_service import open_doors
open_doors.OPENING = open_doors.CLOSING = open_doors.BLOCKED = float(os.environ.get("LIMIT", "60"))
from yunikorn.cli.main import main
sys.exit(main(["serve", "--config", "queues.yaml", "--grpc", "off", "--rest", "off", *sys.argv[1:]]))
"""
Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def serve(tmp_path: Path, run_python: Call) -> Call:
    """Return a function that runs a service with the installed packages to its end."""
    (tmp_path / "queues.yaml").write_text(SMALL)

    def run(*arguments: str, **environment: str) -> CompletedProcess[str]:
        return run_python("-c", SERVE, *arguments, installed=tmp_path, cwd=tmp_path, **environment)

    return run


def door(folder: Path, body: str = "", name: str = "odd", distribution: str = "oddities") -> None:
    """Install a package with a door, which ends the service when its core runs."""
    install(folder, distribution, "1.0", HEAD.replace("NAME", name).replace("BODY", body))


ORIGIN = "door odd of oddities (oddities 1.0)"


def test_a_door_is_opened_with_its_options(tmp_path: Path, serve: Call) -> None:
    door(tmp_path)
    done = serve("--odd", "--odd-size", "7")
    assert done.returncode == 0, done.stderr
    assert "odd: size 7\n" in done.stdout
    assert "ERROR" not in done.stderr
    help_text = serve("--help").stdout
    assert "Do odd things (oddities):" in help_text
    assert "Number of things.  [default: 3]" in " ".join(help_text.split(" ")).replace("\n", " ")
    assert "--odd-size needs --odd" in serve("--odd-size", "7").stderr
    refused = serve("--odd", "--odd-size", "many")
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: --odd-size: ")


START = "    async def start(self, service):\n"


@pytest.mark.parametrize(
    ("body", "status", "texts"),
    [
        (START + "        raise ValueError('no port')", 2, ["cannot be opened: ValueError: no port"]),
        (START + "        return None", 2, ["cannot be opened: TypeError: start() returned None"]),
        (START + "        raise TimeoutError('no answer')", 2, ["TimeoutError: no answer"]),
        (START + "        await asyncio.Event().wait()", 2, ["longer than 0.5 s", "run_in_background"]),
        (START + "        await service.core.call(str)", 2, ["longer than 0.5 s"]),
        (START + "        time.sleep(3600)", 70, ["start() blocks the event loop", "oddities.py, line "]),
        ("    async def stop(self):\n        raise ValueError('gone')", 0, ["closing", "ValueError: gone"]),
        ("    async def stop(self):\n        await asyncio.Event().wait()", 0, ["longer than 0.5 s"]),
        (
            "    async def stop(self):\n        task = asyncio.ensure_future(asyncio.sleep(99))\n"
            "        task.cancel()\n        await task",
            0,
            ["it awaited work that was cancelled"],
        ),
        ("    async def stop(self):\n        time.sleep(3600)", 70, ["closing blocks the event loop"]),
        ("    def closed(self):\n        raise ValueError('late')", 0, ["ValueError: late"]),
    ],
    ids=[
        *("start-raises", "start-returns-none", "start-times-out", "start-hangs", "start-awaits-core"),
        *(
            "start-blocks",
            "stop-raises",
            "stop-hangs",
            "stop-awaits-cancelled",
            "stop-blocks",
            "closed-raises",
        ),
    ],
)
def test_a_failing_door_is_named(
    body: str, status: int, texts: list[str], tmp_path: Path, serve: Call
) -> None:
    door(tmp_path, body)
    is_waiting = "0.5 s" in texts[0] or "blocks" in texts[0]
    done = serve("--odd", LIMIT="0.5" if is_waiting else "60")
    assert done.returncode == status, done.stderr
    assert ORIGIN in done.stderr
    assert all(text in done.stderr for text in texts), done.stderr


def test_a_door_that_failed_to_open_is_closed_with_those_before(tmp_path: Path, serve: Call) -> None:
    stop = "    async def stop(self):\n        log.warning('%s was closed', self.name)\n"
    door(tmp_path, stop, "aaa", "aaa")
    door(tmp_path, stop + START + "        raise ValueError('no port')", "bbb", "bbb")
    done = serve("--aaa", "--bbb")
    assert done.returncode == 2
    assert "aaa was closed" in done.stderr
    assert "bbb was closed" in done.stderr
    assert "serves the scheduler interface" not in done.stdout


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_service_whose_doors_are_being_opened(name: str, tmp_path: Path, serve: Call) -> None:
    stop = "    async def stop(self):\n        log.warning('%s was closed', self.name)\n"
    ends = f"        os.kill(os.getpid(), signal.{name})\n        await asyncio.Event().wait()"
    door(tmp_path, stop, "aaa", "aaa")
    door(tmp_path, stop + START + ends, "bbb", "bbb")
    done = serve("--aaa", "--bbb")
    assert done.returncode == 0, done.stderr
    assert "aaa was closed" in done.stderr
    assert "bbb was closed" in done.stderr
    assert "ERROR" not in done.stderr
    assert "serves the scheduler interface" not in done.stdout


def test_work_that_the_end_of_a_service_cancels_has_not_failed(tmp_path: Path, serve: Call) -> None:
    body = """
    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
"""
    door(tmp_path, body)
    done = serve("--odd")
    assert done.returncode == 0
    assert "ERROR" not in done.stderr


def test_the_end_of_a_service_cancels_a_reload(tmp_path: Path, serve: Call) -> None:
    body = """
    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        os.kill(os.getpid(), signal.SIGHUP)

    async def reload(self):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
"""
    door(tmp_path, body)
    done = serve("--odd")
    assert done.returncode == 0
    assert "ERROR" not in done.stderr


def test_doors_are_reloaded_one_reload_at_a_time_and_only_when_they_are_open(
    tmp_path: Path, serve: Call
) -> None:
    body = """
    busy, reloads = False, 0

    async def start(self, service):
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.warning("%d reloads at the start", self.reloads)
        service.run_in_background(self.end(service))
        return ""

    async def end(self, service):
        while self.reloads < 2:
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)

    async def reload(self):
        assert not self.busy
        self.busy = True
        if not self.reloads:
            os.kill(os.getpid(), signal.SIGHUP)
        for _ in range(100):
            await asyncio.sleep(0)
        self.busy = False
        self.reloads += 1
"""
    door(tmp_path, body)
    done = serve("--odd")
    assert done.returncode == 0, done.stderr
    assert "0 reloads at the start" in done.stderr
    assert "AssertionError" not in done.stderr


def test_files_stay_where_they_are_when_a_plugin_changes_the_working_directory(
    tmp_path: Path, serve: Call
) -> None:
    body = """
    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        os.rename("run.jsonl", "run.1")
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        os.kill(os.getpid(), signal.SIGHUP)

    async def reload(self):
        os.kill(os.getpid(), signal.SIGTERM)
"""
    door(tmp_path, body)
    done = serve("--odd", "--record", "run.jsonl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.jsonl").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_failures_of_reload_and_of_probes_are_contained(tmp_path: Path, serve: Call) -> None:
    body = """
    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        log.warning("unready: %s", service.unready())
        os.kill(os.getpid(), signal.SIGHUP)

    async def reload(self):
        os.kill(os.getpid(), signal.SIGTERM)
        raise ValueError("no file")

    def unready(self):
        raise ValueError("no idea")
"""
    door(tmp_path, body)
    done = serve("--odd")
    assert done.returncode == 0
    assert f"unready: {ORIGIN} has failed: ValueError: no idea" in done.stderr
    assert f"reloading {ORIGIN}: ValueError: no file" in done.stderr


@pytest.mark.parametrize("error", ["ValueError", "SystemExit"])
def test_failing_work_in_the_background_makes_the_door_unready(
    error: str, tmp_path: Path, serve: Call
) -> None:
    body = f"""
    async def start(self, service):
        service.run_in_background(self.fail())
        service.run_in_background(self.end(service))
        return ""

    async def fail(self):
        raise {error}("no more")

    async def end(self, service):
        await service.core.call(lambda scheduler: None)
        log.warning("unready: %s", service.unready())
        os.kill(os.getpid(), signal.SIGTERM)
"""
    door(tmp_path, body)
    done = serve("--odd")
    assert done.returncode == 0
    assert f"unready: {ORIGIN} has failed: {error}: no more" in done.stderr


def test_options_that_collide_are_refused_with_both_names(tmp_path: Path, serve: Call) -> None:
    door(tmp_path, "", "stats", "statistics")
    done = serve("--stats-size", "3")
    assert done.returncode == 2
    assert "door stats of statistics (statistics 1.0) cannot be used" in done.stderr
    assert "--stats" in done.stderr
    for name in ("one", "two"):
        door(tmp_path, "", "twin", name)
    done = serve("--twin")
    assert done.returncode == 2
    assert "door twin of one (one 1.0) cannot be used: twin of two (two 1.0) has the same name" in done.stderr
    assert "size 3" in serve("--twin", YUNIKORN_PLUGINS="two").stdout


def test_a_broken_package_does_not_keep_a_service_from_starting(tmp_path: Path, serve: Call) -> None:
    install(tmp_path, "broken", "1.0", "import nothing_of_this_name\n")
    door(tmp_path)
    assert serve("--odd").returncode == 0
    done = serve("--broken")
    assert done.returncode == 2
    assert "not loaded: plugin broken (broken 1.0): importing: ModuleNotFoundError" in done.stderr
    off = serve("--odd", YUNIKORN_PLUGINS="off")
    assert off.returncode == 2
    assert "left out, by --no-plugins or YUNIKORN_PLUGINS: broken, oddities" in off.stderr


def test_doors_are_listed_with_their_options(tmp_path: Path, run_python: Call) -> None:
    door(tmp_path)
    listed = run_python("-m", "yunikorn", "plugins", "--kind", "door", "--json", installed=tmp_path)
    names = [one["name"] for one in json.loads(listed.stdout)["plugins"]]
    assert names[:3] == ["grpc", "rest", "record"]
    assert "odd" in names
