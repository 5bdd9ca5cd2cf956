"""Configurations that are changed over REST: checked, written to their files, and used by all or none."""

from __future__ import annotations

import json
import signal
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.core.kit import configuration, queue
from tests.rest.served.test_rest import address_of
from tests.rest.served.test_steering_served import FREE, UNIX, ask
from tests.service.harness import ServiceHarness, serve
from tests.service.kit import PATIENCE, work
from tests.service.process import Start
from tests.service.test_reloading import config_map
from yunikorn.framework.registry import Registry
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.config_changes import ConfigChanges, ConfigRequest, ConfigResult
from yunikorn_rest.operator_credentials import hash_of
from yunikorn_service.config_files import ConfigFiles, LoadedConfigurations, Reloading

SMALL = configuration(queue("a"))
BIGGER = configuration(queue("a", maxapplications=3), queue("b"))
PLAIN = "partitions: [{name: default, queues: [{name: a}]}]\n"
PARENT = configuration(queue("a", queue("c")))
BROKEN = "partitions: [{name: default, queues: 7, nodesortpolicy: {type: 1}}]"


PLUGIN = """
from yunikorn.api import AppSortPolicy, hookimpl

class Mine(AppSortPolicy):
    name = "mine"

    def key(self, app):
        return app.submitted

@hookimpl
def yunikorn_app_sort_policies():
    return [Mine]
"""


class Changed:
    """A service with the files of two policy groups, and what changes them."""

    def __init__(self, folder: Path, registry: Registry, given: dict[str, str] | None = None) -> None:
        self.registry, self.folder = registry, folder / "policies"
        self.folder.mkdir()
        self.one, self.two = self.folder / "one.yaml", self.folder / "two.yaml"
        self.one.write_text(SMALL)
        self.two.write_text(SMALL)
        self.files = ConfigFiles([str(self.folder)])
        self.given: dict[str, str | bytes] = dict(given or {})
        self.loaded = LoadedConfigurations(
            {**self.given, **self.files.read(registry)}, allow_rm_config=True, code=self.files.code()
        )

    def run(self, scenario: Callable[[ServiceHarness], Awaitable[None]]) -> None:
        """Run a scenario with two RMs of the group `one`, the first with an application, and one of `two`."""

        async def whole(harness: ServiceHarness) -> None:
            self.harness = harness
            self.reloading = Reloading(self.files, self.loaded, harness.core, self.registry, self.given)
            self.changes = ConfigChanges(self.reloading)
            for rm_id, group in (("first", "one"), ("second", "one"), ("third", "two")):
                await harness.register(rm_id, policy_group=group)
            stream = harness.stream()
            await stream.send(work(1, rm_id="first"))
            await stream.allocations(1)
            await scenario(harness)

        serve(self.registry, whole, configurations=self.loaded)

    async def change(self, text: str, **options: Any) -> ConfigResult:
        """Change the configuration of the group `one`."""
        options = {"policy_group": "" if "rm_id" in options else "one", **options}
        return await self.changes.change(ConfigRequest(text=text.encode(), **options))

    async def refusal(self, text: str, **options: Any) -> RequestRefused:
        """Return why a change is refused."""
        with pytest.raises(RequestRefused) as refused:
            await self.change(text, **options)
        return refused.value

    async def in_use(self, rm_id: str) -> str:
        """Return the text of an RM's current configuration."""
        return await self.harness.core.call(lambda core: str(core.configuration(rm_id).text))


@pytest.fixture
def changed(tmp_path: Path, registry: Registry) -> Changed:
    """Create the files of a service."""
    return Changed(tmp_path, registry)


def test_a_change_replaces_the_file_and_reaches_all_of_the_group(changed: Changed) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        changed.one.chmod(0o640)
        result = await changed.change(BIGGER)
        assert (result.applied, result.persisted, result.problems) == (True, True, ())
        assert result.resource_managers == ("first", "second")
        assert [one.path for one in result.changes] == [
            "partition default, queue root.a: maxapplications",
            "partition default, queue root.b",
        ]
        assert changed.one.read_text() == await changed.in_use("first") == await changed.in_use("second")
        assert changed.one.read_text() == BIGGER
        assert stat.S_IMODE(changed.one.stat().st_mode) == 0o640
        assert await changed.in_use("third") == changed.two.read_text() == SMALL
        assert sorted(path.name for path in changed.folder.iterdir()) == ["one.yaml", "two.yaml"]
        again = await changed.change(BIGGER)
        assert (again.applied, again.changes) == (True, ())
        assert again.checksum == again.new_checksum == result.new_checksum
        await harness.register("fourth", policy_group="one")
        assert await changed.in_use("fourth") == BIGGER
        assert await changed.reloading.reload("test")
        assert await changed.in_use("first") == BIGGER

    changed.run(scenario)


def test_a_dry_run_changes_nothing(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        result = await changed.change(configuration(queue("b")), dry_run=True)
        assert (result.applied, result.persisted, result.problems) == (False, False, ())
        note = "drains: accepts no new applications, and is removed after its 1 application"
        assert [(one.path, one.change, one.note) for one in result.changes] == [
            ("partition default, queue root.a", "removed", note),
            ("partition default, queue root.b", "added", ""),
        ]
        assert await changed.in_use("first") == changed.one.read_text() == SMALL

    changed.run(scenario)


def test_a_configuration_from_elsewhere_is_compared_here_and_changed_there(changed: Changed) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        changed.changes = ConfigChanges(changed.reloading, lambda: "that of the ConfigMap here")
        # The text in use is that of the one resource manager, whatever the files of the process have.
        await harness.register("cluster", config=PARENT)
        options = {"policy_group": "", "rm_id": "cluster"}
        assert (await changed.changes.text("", "cluster")).text == PARENT.encode()
        deeper = configuration(queue("a", queue("c"), queue("d")))
        result = await changed.change(deeper, dry_run=True, **options)
        assert [one.path for one in result.changes] == ["partition default, queue root.a.d"]
        assert "that of the ConfigMap here: change it there" in result.note
        assert (await changed.change(BROKEN, **options)).problems
        refused = await changed.refusal(deeper, **options)
        assert refused.status == 409
        assert "nothing was changed: the configuration is that of the ConfigMap here" in str(refused)
        assert await changed.in_use("cluster") == PARENT
        # Without a name, the resource manager is that of the process, and its group does not matter.
        assert (await changed.change(BIGGER, dry_run=True, policy_group="")).resource_managers == ("first",)

    changed.run(scenario)


@pytest.mark.parametrize("dry_run", [False, True])
def test_all_problems_are_reported_and_nothing_is_changed(changed: Changed, dry_run: bool) -> None:
    async def scenario(_: ServiceHarness) -> None:
        broken = await changed.change(BROKEN, dry_run=dry_run)
        assert len(broken.problems) == 2
        assert all(problem.line == 1 and problem.column for problem in broken.problems)
        (impossible,) = (await changed.change(PARENT, dry_run=dry_run)).problems
        assert impossible.message.startswith(
            "resource manager first: queue root.a cannot change its type now"
        )
        (empty,) = (await changed.change(" \n", dry_run=dry_run)).problems
        assert empty.message.startswith("the body is empty")
        for rm_id in ("first", "second"):
            assert await changed.in_use(rm_id) == changed.one.read_text() == SMALL

    changed.run(scenario)


def test_a_concurrent_change_is_detected(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        before = (await changed.change(SMALL, dry_run=True)).checksum
        assert (await changed.change(BIGGER, match=before)).applied
        refused = await changed.refusal(SMALL, match=before)
        assert (refused.status, "has changed meanwhile" in refused.message) == (412, True)
        assert await changed.in_use("first") == BIGGER

    changed.run(scenario)


def test_config_maps_are_not_rewritten(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        text = config_map(SMALL)
        changed.one.write_text(text)
        assert await changed.reloading.reload("test")
        refused = await changed.refusal(BIGGER)
        assert refused.status == 409
        assert f"{changed.one} is a ConfigMap, which is not rewritten" in refused.message
        assert "is not rewritten" in (await changed.change(BIGGER, dry_run=True)).note
        assert await changed.in_use("first") == SMALL
        result = await changed.change(BIGGER, persist=False)
        assert (result.applied, await changed.in_use("first")) == (True, BIGGER)
        assert changed.one.read_text() == text

    changed.run(scenario)


def test_a_change_that_is_not_persisted_lasts_until_the_next_reload(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        result = await changed.change(BIGGER, persist=False)
        assert (result.applied, result.persisted) == (True, False)
        assert result.note.startswith("in use until the next reload")
        assert (await changed.in_use("first"), changed.one.read_text()) == (BIGGER, SMALL)
        assert await changed.reloading.reload("test")
        assert await changed.in_use("first") == SMALL

    changed.run(scenario)


def test_a_file_that_was_edited_is_not_overwritten(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        changed.one.write_text(PARENT)
        refused = await changed.refusal(BIGGER)
        assert (refused.status, "was changed but not reloaded" in refused.message) == (409, True)
        assert (await changed.in_use("first"), changed.one.read_text()) == (SMALL, PARENT)

    changed.run(scenario)


def test_a_file_that_cannot_be_replaced_prevents_the_change(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    async def scenario(_: ServiceHarness) -> None:
        monkeypatch.setattr("tempfile.mkstemp", fail)
        refused = await changed.refusal(BIGGER)
        assert refused.status == 409
        assert "one.yaml cannot be replaced: Permission denied" in refused.message
        assert "?persist=false" in refused.message
        assert (await changed.in_use("first"), changed.one.read_text()) == (SMALL, SMALL)

    changed.run(scenario)


def test_a_failure_of_the_last_step_changes_nothing(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    async def scenario(_: ServiceHarness) -> None:
        monkeypatch.setattr("os.replace", fail)
        refused = await changed.refusal(BIGGER)
        monkeypatch.undo()
        assert (refused.status, "Input/output error" in refused.message) == (409, True)
        assert (await changed.in_use("first"), changed.one.read_text()) == (SMALL, SMALL)
        assert sorted(path.name for path in changed.folder.iterdir()) == ["one.yaml", "two.yaml"]
        assert (await changed.change(BIGGER)).applied

    changed.run(scenario)


def test_a_link_stays_a_link(changed: Changed, tmp_path: Path) -> None:
    async def scenario(_: ServiceHarness) -> None:
        target = tmp_path / "target.yaml"
        changed.one.rename(target)
        changed.one.symlink_to(target)
        assert (await changed.change(BIGGER)).persisted
        assert changed.one.is_symlink()
        assert target.read_text() == BIGGER

    changed.run(scenario)


def test_no_code_is_loaded_over_rest(changed: Changed, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def scenario(_: ServiceHarness) -> None:
        (changed.folder / "mine.py").write_text(f"open({str(mark)!r}, 'w')\n")
        for entry in ("./mine.py", "mine"):
            for plugins in (
                f"plugins: {{load: [{entry}]}}\n",
                f"x: &x {{load: [{entry}]}}\nplugins: {{<<: *x}}\n",
            ):
                result = await changed.change(plugins + PLAIN)
                assert any("cannot be added over REST" in one.message for one in result.problems), plugins
                assert result.problems[0].line
        assert not mark.exists()

    changed.run(scenario)


def test_a_name_behind_a_link_is_the_file_that_would_be_opened(changed: Changed, tmp_path: Path) -> None:
    mark = tmp_path / "there" / "mark"

    async def scenario(_: ServiceHarness) -> None:
        (changed.folder / "mine.py").write_text(PLUGIN)
        loading = "plugins: {load: [./mine.py]}\n" + PLAIN
        changed.one.write_text(loading)
        assert await changed.reloading.reload("first")
        (tmp_path / "there" / "inside").mkdir(parents=True)
        (tmp_path / "there" / "mine.py").write_text(f"open({str(mark)!r}, 'w')\n")
        (changed.folder / "link").symlink_to(tmp_path / "there" / "inside")
        # Removed as text, `link/..` is the folder of the loaded file; the system follows the link first.
        result = await changed.change(loading.replace("./mine.py", "link/../mine.py"))
        assert (result.applied, len(result.problems)) == (False, 1)
        assert changed.one.read_text() == loading
        (changed.folder / "again").symlink_to(changed.folder)
        assert (await changed.change(loading.replace("./mine.py", "again/mine.py"))).applied, "the same file"
        assert await changed.reloading.reload("second")
        assert not mark.exists()

    changed.run(scenario)


def test_a_file_whose_import_never_ends_stops_only_its_own_reload(
    changed: Changed, caplog: pytest.LogCaptureFixture
) -> None:
    code = changed.folder / "mine.py"
    loading = "plugins: {load: [./mine.py]}\n" + PLAIN

    async def scenario(_: ServiceHarness) -> None:
        reloading = attrs.evolve(changed.reloading, limit=2.0)
        code.write_text("import threading\n\nthreading.Event().wait()\n")
        changed.one.write_text(loading)
        assert not await reloading.reload("first")
        assert f"with their plugins has not ended within 2 s; it runs {code}, line 3." in caplog.text
        assert await changed.in_use("first") == SMALL
        changed.one.write_text(BIGGER)
        assert await attrs.evolve(reloading, limit=PATIENCE).reload("second")
        assert await changed.in_use("first") == BIGGER
        code.write_text(PLUGIN)
        changed.one.write_text(loading)
        assert await attrs.evolve(reloading, limit=PATIENCE).reload("third")
        assert await changed.in_use("first") == loading

    changed.run(scenario)


def test_a_file_that_changed_is_executed_only_by_a_reload(changed: Changed, tmp_path: Path) -> None:
    code, mark = changed.folder / "mine.py", tmp_path / "mark"
    loading = "plugins: {load: [./mine.py]}\n" + PLAIN

    async def scenario(_: ServiceHarness) -> None:
        code.write_text(PLUGIN)
        changed.one.write_text(loading)
        assert await changed.reloading.reload("first")
        code.write_text(f"{PLUGIN}\nimport pathlib; pathlib.Path({str(mark)!r}).touch()\n")
        more = loading + "# more\n"
        assert not (await changed.change(more, dry_run=True)).problems
        assert (await changed.change(more)).applied
        assert await changed.in_use("first") == more
        assert not mark.exists()
        assert await changed.reloading.reload("second")
        assert mark.exists()

    changed.run(scenario)


def test_configuration_of_a_resource_manager_is_changed_in_memory(changed: Changed) -> None:
    async def scenario(harness: ServiceHarness) -> None:
        await harness.register("own", config=SMALL)
        result = await changed.change(BIGGER, rm_id="own")
        assert (result.applied, result.persisted, result.resource_managers) == (True, False, ("own",))
        assert result.note == "in use until the resource manager registers again"
        assert await changed.in_use("own") == BIGGER
        assert await changed.in_use("first") == SMALL
        assert (await changed.change(BROKEN, rm_id="own")).problems
        refused = await changed.refusal(BIGGER, rm_id="first")
        assert (refused.status, "give policyGroup=one (--policy-group one)" in refused.message) == (409, True)
        assert (await changed.refusal(BIGGER, rm_id="none")).status == 404
        assert (await changed.refusal(BIGGER, policy_group="none")).status == 404

    changed.run(scenario)


def test_configuration_without_a_file_is_changed_in_memory(tmp_path: Path, registry: Registry) -> None:
    changed = Changed(tmp_path, registry, {"demo": SMALL})

    async def scenario(harness: ServiceHarness) -> None:
        await harness.register("demo", policy_group="demo")
        result = await changed.change(BIGGER, policy_group="demo")
        assert (result.applied, result.persisted) == (True, False)
        assert result.note.startswith("in use until the next reload")
        assert await changed.in_use("demo") == BIGGER

    changed.run(scenario)


@UNIX
def test_a_served_configuration_is_changed(start: Start, tmp_path: Path) -> None:
    file, credentials, audit = tmp_path / "queues.yaml", tmp_path / "credentials", tmp_path / "audit"
    file.write_text(SMALL)
    credentials.write_text(f"- {{name: anna, role: admin, token: '{hash_of('anna')}'}}\n")
    service = start(
        *("--config", str(file), "--grpc", "off", "--rest", FREE),
        *("--rest-credentials", str(credentials), "--audit-log", str(audit)),
    )
    url = f"{address_of(service)}/ws/v1/config"
    status, refused = ask(f"{url}/text", "", "GET")
    assert (status, refused["message"]) == (401, "credentials are needed")
    status, dry = ask(f"{url}?dryRun", "anna", "PUT", body=BIGGER.encode())
    assert (status, dry["applied"], len(dry["changes"])) == (200, False, 2)
    assert not audit.read_text()
    status, broken = ask(url, "anna", "PUT", body=BROKEN.encode())
    assert (status, broken["applied"], len(broken["problems"])) == (422, False, 2)
    status, done = ask(url, "anna", "PUT", body=BIGGER.encode())
    assert (status, done["applied"], done["persisted"]) == (200, True, True)
    assert file.read_text() == BIGGER
    outcomes = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [one["outcome"] for one in outcomes] == ["begun", "failed", "begun", "done"]
    assert outcomes[-1]["after"]["changes"][0]["path"] == "partition default, queue root.a: maxapplications"
    status, levels = ask(
        url.replace("config", "loglevel"), "anna", "PUT", body=b'{"levels": {"core": "debug"}}'
    )
    assert (status, levels["after"]) == (200, {"core": "debug"})
    service.signal(signal.SIGTERM)
    assert service.end() == 0


def test_the_text_in_use_is_returned_as_it_was_given(changed: Changed) -> None:
    async def scenario(_: ServiceHarness) -> None:
        commented = f"# By the platform team.\n{BIGGER}"
        result = await changed.change(commented)
        found = await changed.changes.text("one", "")
        assert (found.text.decode(), found.checksum) == (commented, result.new_checksum)
        assert (await changed.changes.text("two", "")).text.decode() == SMALL
        with pytest.raises(RequestRefused, match="known: one, two"):
            await changed.changes.text("three", "")
        with pytest.raises(RequestRefused, match="give policyGroup=one"):
            await changed.changes.text("", "first")

    changed.run(scenario)
