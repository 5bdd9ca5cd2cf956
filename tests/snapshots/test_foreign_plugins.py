"""Plugins of other packages in a snapshot: made again, with books, and with the state that they return."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.core.book_keepers import Few
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.rest.commands.operator_kit import Run
from yunikorn.api import AdmissionPolicy, Application, RunTime, RunTimeEstimator, Task
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import AdmissionPolicyContract


@attrs.define(eq=False)
class Counting(AdmissionPolicy):
    """Admits a number of applications in all."""

    name = "counting"
    most: int = 2
    seen: list[str] = attrs.field(init=False, factory=list)

    def admit(self, app: Application) -> str | None:
        if app.id not in self.seen and len(self.seen) == self.most:
            return "enough"
        self.seen = [*dict.fromkeys([*self.seen, app.id])]
        return None

    def saved(self) -> Any:
        return self.seen

    def restored(self, state: Any) -> None:
        if not isinstance(state, list):
            raise ValueError("no list")
        self.seen = state


class Careless(Counting):
    """Returns one thing and takes over another."""

    name = "careless"
    seen: list[str] = ["a"]  # noqa: RUF012

    def restored(self, state: Any) -> None:
        self.seen = [*state, "b"]


@attrs.define(eq=False)
class Guess(RunTimeEstimator):
    """Expects the same time of all tasks."""

    name = "guess"
    seconds: float = 5.0

    def estimate(self, task: Task, age: float) -> RunTime | None:
        return RunTime(self.seconds, self.seconds, self.seconds)


def cluster() -> RM:
    registry = with_plugins(admission_policies=[Counting], predicates=[Few])
    plugins: dict[str, Any] = {"admission": [{"name": "counting", "most": 1}], "predicates": ["few"]}
    rm = RM(configuration(queue("a"), **plugins), registry)
    rm.node(vcore=9)
    rm.app("first")
    rm.ask("first", vcore=1, count=4)
    rm.schedule()
    return rm


def copy(rm: RM, path: Path, registry: Registry | None = None) -> Scheduler:
    take_snapshot(rm.scheduler, path)
    return restored_scheduler(path, registry or rm.scheduler.registry, rm.clock, {"rm": rm})


def test_state_and_books_are_taken_over(tmp_path: Path) -> None:
    rm = cluster()
    assert len(rm.running) == 2
    found = copy(rm, tmp_path / "state")
    assert read_header(tmp_path / "state").warnings == [
        "plugin few of test-plugin (yunikorn-test 1.0) has fields but no method `saved`: it is made again,"
        " without them"
    ]
    rm.scheduler = found
    assert rm.schedule() == [], "two tasks are in the books, and run"
    rm.app("second")
    rm.ask("second", vcore=1)
    assert "second" not in rm.at_work().partition.applications, "the first one was counted"


def test_plugins_of_a_former_configuration_are_forgotten(tmp_path: Path) -> None:
    def text(number: int) -> str:
        plugins = {"admission": [{"name": "counting", "most": number}], "predicates": ["few"]}
        return configuration(queue("a"), estimators=[{"name": "guess", "seconds": number}], **plugins)

    kinds: dict[str, Any] = {
        "admission_policies": [Counting],
        "predicates": [Few],
        "run_time_estimators": [Guess],
    }
    rm = RM(text(1), with_plugins(**kinds))
    rm.node(vcore=9)
    rm.app("first")
    rm.ask("first", vcore=1, count=4)
    rm.schedule()
    rm.pass_time(7)
    rm.release("first", next(iter(rm.running)))
    former = weakref.ref(rm.at_work().policies.run_times._estimators[0].plugin)
    assert len(rm.at_work().policies.run_times.errors["root.a"]) == 1
    for number in (2, 3):
        assert rm.reload(text(number))
        found = copy(rm, tmp_path / "state")
        assert [one.options for one in found.all_partitions()[0][1].instances if one.name == "guess"] == [
            {"seconds": str(number)}
        ]
    gc.collect()
    assert former() is None


def test_plugin_that_is_missing_or_refuses_its_state_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = cluster()
    with pytest.raises(SnapshotError, match=r"plugin \w+ cannot be made again"):
        copy(rm, tmp_path / "state", Registry.load(third_party=False))
    monkeypatch.setattr(Counting, "saved", lambda self: "text")
    with pytest.raises(SnapshotError, match=r"plugin counting of .* cannot be restored: ValueError: no list"):
        copy(rm, tmp_path / "state")


def test_plugin_from_a_file_is_loaded_again_where_that_is_permitted(run: Run, tmp_path: Path) -> None:
    file, state = tmp_path / "mine.py", tmp_path / "state"
    file.write_text(
        "from tests.snapshots.test_foreign_plugins import Counting\n"
        "from yunikorn.api import hookimpl\n"
        "class Mine(Counting): name = 'mine'\n"
        "@hookimpl\n"
        "def yunikorn_admission_policies(): return [Mine]\n"
    )
    permitted = Registry.load(third_party=False).permitting(CodePermission.of_operator(tmp_path))
    document = {
        **json.loads(configuration(queue("a"), admission=["mine"])),
        "plugins": {"load": ["./mine.py"]},
    }
    rm = RM(json.dumps(document), permitted)
    rm.app("first")
    rm.scheduler = copy(rm, state)
    for app in ("second", "third"):
        rm.app(app)
    assert [*rm.at_work().partition.applications] == ["first", "second"]
    status, _, err = run("get", "apps", "--snapshot", str(state))
    assert (status, "its configuration loads plugin ./mine.py" in err) == (2, True), err
    assert "first" in run("get", "apps", "--snapshot", str(state), "--load-plugins", str(tmp_path))[1]
    file.write_text(file.read_text() + "\n")
    with pytest.raises(SnapshotError, match=r"plugin ./mine.py has changed since the snapshot"):
        restored_scheduler(state, permitted, rm.clock)


def test_contract_finds_state_that_is_not_taken_over() -> None:
    class Checked(AdmissionPolicyContract):
        policy = Careless()

    with pytest.raises(AssertionError, match="after restored with the former"):
        Checked().test_plugin_opens_and_closes()
