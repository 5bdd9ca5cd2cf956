"""Configurations that a command reaches through data load no code, unless `--load-plugins` says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.kit import document, partition, queue
from tests.rest.commands.operator_kit import Run

MARKING = """
from pathlib import Path
from yunikorn.api import AppSortPolicy, hookimpl

with open(Path(__file__).with_suffix(".ran"), "a") as mark:
    mark.write("x")

class Mine(AppSortPolicy):
    name = "mine"

    def key(self, app):
        return -app.submitted

@hookimpl
def yunikorn_app_sort_policies():
    return [Mine]
"""
MINE = document(
    partition(queue("a", properties={"application.sort.policy": "mine"})), plugins={"load": ["./mine.py"]}
)
PLAIN = document(partition(queue("a")))
WORK = """
nodes: [{name: m, resources: {vcore: 1}}]
events: [{at: 10s, config: CONFIG}]
applications: [{id: one, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 30s}]}]
"""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return a folder of another person, with a plugin beside a configuration."""
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "mine.py").write_text(MARKING)
    (folder / "queues.yaml").write_text(MINE)
    (folder / "work.yaml").write_text(WORK.replace("CONFIG", "queues.yaml"))
    (tmp_path / "own.yaml").write_text(PLAIN)
    return folder


def has_run(folder: Path) -> bool:
    """Return True if the plugin of a folder was executed."""
    return (folder / "mine.ran").exists()


SIMULATE = "simulate --config OWN --workload THERE/work.yaml --json"
COMPARE = "compare --config OWN --config OWN2 --workload THERE/work.yaml --json --jobs 1"
SIZE = "size --config OWN --workload THERE/work.yaml --target wait.p95<9h --json --jobs 1"


@pytest.mark.parametrize("call", [SIMULATE, COMPARE, SIZE])
def test_the_configuration_of_an_event_is_data(run: Run, there: Path, call: str) -> None:
    (there.parent / "other.yaml").write_text(PLAIN)
    files = {"OWN2": there.parent / "other.yaml", "OWN": there.parent / "own.yaml", "THERE": there}
    for name, path in files.items():
        call = call.replace(name, str(path))
    words = call.split()
    status, _, err = run(*words)
    assert (status, has_run(there)) == (2, False)
    assert f"If you trust it, add --load-plugins {there}" in err
    status, _, err = run(*words, "--load-plugins", str(there))
    assert (status, has_run(there)) == (0, True), err


def test_an_event_uses_the_plugins_of_the_configuration_that_was_given(run: Run, there: Path) -> None:
    more = MINE + "# later\n"
    (there / "later.yaml").write_text(more)
    (there / "work.yaml").write_text(WORK.replace("CONFIG", "later.yaml"))
    words = ["simulate", "--config", str(there / "queues.yaml"), "--workload", str(there / "work.yaml")]
    status, out, err = run(*words, "--json")
    assert status == 0, err
    assert len(json.loads(out)["reloads"]) == 1
    assert (there / "mine.ran").read_text() == "x", "executed once"


@pytest.mark.parametrize("command", ["simulate", "compare", "size"])
def test_problems_of_the_configuration_that_was_given_come_alone(run: Run, there: Path, command: str) -> None:
    (there / "mine.py").write_text("import helper_of_mine\n")
    (there / "later.yaml").write_text(MINE + "# later\n")
    (there / "work.yaml").write_text(WORK.replace("CONFIG", "later.yaml"))
    words = [command, "--config", str(there / "queues.yaml"), "--workload", str(there / "work.yaml")]
    more = {"compare": ["--config", str(there.parent / "own.yaml")], "size": ["--target", "wait.p95<9h"]}
    status, _, err = run(*words, *more.get(command, ()))
    assert status == 2
    assert "helper_of_mine" in err
    assert "later.yaml" not in err, "blames an event for what --config loads"


MOVING = """    def HOOK(self, *given):
        import os

        os.chdir("/")
        return super().HOOK(*given) if "HOOK" != "key" else 0

    def SPARE"""
LONG = """nodes: [{name: m, resources: {vcore: 1}}]
applications:
- {"id": "one", "submit": "1", "queue": "root.a", "tasks": [{"resources": {"vcore": "1"}, "runtime": "30"}]}
- {"id": "two", "submit": "2", "queue": "root.a", "tasks": [{"resources": {"vcore": "1"}, "runtime": "30"}]}
"""
TWICE = "generate: [{id: g, queue: root.a, count: 2, arrivals: {process: poisson, every: 9s}, tasks: TASKS}]"


@pytest.mark.parametrize(
    ("hook", "command", "written"),
    [
        ("__init__", "simulate --no-plots --config queues.yaml", "report.json"),
        ("key", "simulate --no-plots --config queues.yaml", "report.json"),
        ("closed", "simulate --no-plots --config queues.yaml", "report.json"),
        ("key", "compare --no-plots --config queues.yaml --config own.yaml --jobs 1", "compare.json"),
        ("key", "size --config queues.yaml --seeds 2 --target wait.max<9h --jobs 1", "size.json"),
    ],
)
def test_a_plugin_that_changes_the_working_directory_leaves_relative_names_as_they_are(
    run: Run, there: Path, monkeypatch: pytest.MonkeyPatch, hook: str, command: str, written: str
) -> None:
    (there / "mine.py").write_text(
        MARKING.replace("    def key", MOVING.replace("HOOK", hook)).replace(
            "SPARE", "spare" if hook == "key" else "key"
        )
    )
    (there / "own.yaml").write_text(PLAIN)
    tasks = "[{resources: {vcore: 1}, runtime: 30s}]"
    drawn = f"nodes: [{{name: m, resources: {{vcore: 1}}}}]\n{TWICE.replace('TASKS', tasks)}\n"
    (there / "work.yaml").write_text(drawn if "--seeds" in command else LONG)
    monkeypatch.chdir(there)
    status, _, err = run(*command.split(), "--workload", "work.yaml", "--out", "out")
    assert (status, (there / "out" / written).exists()) == (0, True), err
    assert Path.cwd() == there


@pytest.mark.parametrize("link", [False, True])
def test_names_do_not_lead_out_of_the_folder(run: Run, there: Path, link: bool) -> None:
    inside = there / "inside"
    inside.mkdir()
    name = "./mine.py" if link else "../mine.py"
    if link:
        (inside / "mine.py").symlink_to(there / "mine.py")
    (inside / "queues.yaml").write_text(MINE.replace("./mine.py", name))
    status, out, _ = run("validate", str(inside / "queues.yaml"), "--load-plugins", str(inside))
    assert (status, has_run(there)) == (0, False)
    assert f"{there / 'mine.py'} is not below {inside} (--load-plugins)" in out
    assert not run("validate", str(inside / "queues.yaml"), "--load-plugins", str(there))[0]
    assert has_run(there)


def test_validate_checks_what_it_can_without_code(run: Run, there: Path) -> None:
    bad_queue = queue("a", maxapplications="many", properties={"application.sort.policy": "mine"})
    (there / "bad.yaml").write_text(document(partition(bad_queue), plugins={"load": ["./mine.py"]}))
    status, out, _ = run("validate", "--format", "json", str(there / "queues.yaml"), str(there / "bad.yaml"))
    assert (status, has_run(there)) == (1, False)
    good, bad = map(json.loads, out.splitlines())
    assert (good["valid"], bad["valid"]) == (True, False)
    found = [one["message"] for one in good["warnings"]]
    for words in ("what it offers was not checked", "this was not checked, see plugins.load"):
        assert any(words in text for text in found), found
    assert [one["path"] for one in bad["problems"]] == ["partitions[0].queues[0].queues[0].maxapplications"]
    status, out, _ = run("validate", str(there / "queues.yaml"), "--load-plugins", str(there))
    assert (status, "not checked" in out, has_run(there)) == (0, False, True)


def test_diff_loads_no_code(run: Run, there: Path) -> None:
    words = "diff", str(there.parent / "own.yaml"), str(there / "queues.yaml")
    status, out, err = run(*words)
    assert (status, has_run(there)) == (1, False)
    assert "root.a" in out
    assert "warning" in err
    assert "./mine.py was not loaded" in err
    status, _, err = run(*words, "--load-plugins", str(there))
    assert (status, err, has_run(there)) == (1, "", True)


def test_modules_are_loaded_for_data_only_by_their_name(
    run: Run, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (there / "mine.py").rename(there / "yunikorn_module_in_data.py")
    monkeypatch.syspath_prepend(there)
    config = there / "queues.yaml"
    config.write_text(MINE.replace("./mine.py", "yunikorn_module_in_data"))
    _, out, _ = run("validate", str(config), "--load-plugins", str(there))
    assert "add --load-plugins yunikorn_module_in_data" in out
    assert not (there / "yunikorn_module_in_data.ran").exists()
    status, out, _ = run("validate", str(config), "--load-plugins", "yunikorn_module_in_data")
    assert (status, "not checked" in out) == (0, False)
    assert run("validate", str(config), "--load-plugins", "./no-folder")[0] == 2


def test_a_recording_is_data(run: Run, there: Path) -> None:
    register = {"register": {"rmID": "rm", "config": MINE}}
    (there / "recording.jsonl").write_text(json.dumps({"at": 0, "rm": "rm", **register}) + "\n")
    status, out, err = run("replay", str(there / "recording.jsonl"))
    assert not has_run(there)
    assert "add --load-plugins FOLDER" in out + err, (status, out, err)
    run("replay", str(there / "recording.jsonl"), "--load-plugins", str(there))
    assert has_run(there)
