"""Configurations of a service: files by policy group, and reloads of all files or none."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import indent
from typing import ClassVar

import pytest

from tests.core.kit import configuration, document, partition, with_plugins
from tests.service.harness import ServiceHarness, serve
from tests.service.kit import work
from yunikorn.api import Ask, Context, Node, Predicate
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_service.config_files import ConfigFiles, FileWatch, LoadedConfigurations, Reloading

SMALL = configuration({"name": "a"})
BIGGER = configuration({"name": "a"}, {"name": "b"})
PARENT = configuration({"name": "a", "queues": [{"name": "c"}]})
BROKEN = "partitions: [{name: default, queues: 7}]"


# -- which files ------------------------------------------------------------------------------------------


def test_sources_are_files_groups_and_folders(tmp_path: Path) -> None:
    for name in ("plain.yaml", "gpu=x.yaml"):
        (tmp_path / name).write_text(SMALL)
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in ("batch.yaml", "night.yml", ".hidden.yaml", "notes.txt"):
        (folder / name).write_text(SMALL)
    files = ConfigFiles([str(tmp_path / "plain.yaml"), f"gpu={tmp_path / 'gpu=x.yaml'}", str(folder)]).paths()
    assert {group: path.name for group, path in files.items()} == {
        "": "plain.yaml",
        "gpu": "gpu=x.yaml",
        "batch": "batch.yaml",
        "night": "night.yml",
    }
    assert ConfigFiles([str(tmp_path / "gpu=x.yaml")]).paths().keys() == {""}


def test_ambiguous_sources_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SMALL)
    (tmp_path / "a.yml").write_text(SMALL)
    (tmp_path / "empty").mkdir()
    file = str(tmp_path / "a.yaml")
    with pytest.raises(UsageError, match="the default policy group already has a file"):
        ConfigFiles([file, file])
    with pytest.raises(UsageError, match="a folder has one file per group"):
        ConfigFiles([f"gpu={tmp_path}"])
    with pytest.raises(UsageError, match="policy group 'a' already has a file"):
        ConfigFiles([str(tmp_path)]).paths()
    with pytest.raises(UsageError, match=r"there is no GROUP\.yaml in this folder"):
        ConfigFiles([str(tmp_path / "empty")]).paths()
    with pytest.raises(UsageError, match="give a file, GROUP=FILE, or a folder"):
        ConfigFiles(["=x"])


def test_all_errors_of_all_files_are_reported_together(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    (tmp_path / "b.yaml").write_text("partitions: 7")
    files = ConfigFiles([str(tmp_path), f"gone={tmp_path}/gone"])
    with pytest.raises(UsageError) as refused:
        files.read(registry)
    lines = str(refused.value).splitlines()
    assert any(line.startswith(f"{tmp_path}/a.yaml: partitions[0].queues") for line in lines)
    assert any(line.startswith(f"{tmp_path}/b.yaml: partitions") for line in lines)
    assert f"{tmp_path}/gone: cannot be read: No such file or directory" in lines


def config_map(queues: str, name: str = "yunikorn-configs") -> str:
    """Return a ConfigMap as `kubectl` prints it."""
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  queues.yaml: |\n"
    return head + indent(queues, "    ")


def test_files_may_contain_the_config_maps_of_a_cluster(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.yaml").write_text(config_map(SMALL) + "\n---\n" + config_map(BIGGER, "other"))
    (tmp_path / "b.yaml").write_text(f"{SMALL}\n")
    files = ConfigFiles([str(tmp_path), f"gpu={tmp_path / 'a.yaml'}"])
    assert files.read(registry) == dict.fromkeys(("a", "b", "gpu"), f"{SMALL}\n".encode())
    assert [group for group in ("a", "b", "gpu") if files.is_embedded(group)] == ["a", "gpu"]
    assert f"{tmp_path / 'a.yaml'}: line 8, column 1: ConfigMap other is ignored" in caplog.text


def test_problems_in_config_maps_point_to_the_file(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "a.yaml").write_text(config_map(BROKEN))
    (tmp_path / "b.yaml").write_text(config_map(SMALL, "other"))
    (tmp_path / "c.yaml").write_bytes(b"partitions: \xff")
    with pytest.raises(UsageError) as refused:
        ConfigFiles([str(tmp_path)]).read(registry)
    first, second, third = str(refused.value).splitlines()
    assert first.startswith(f"{tmp_path / 'a.yaml'}: partitions[0].queues (line 6, column ")
    assert second.startswith(f"{tmp_path / 'b.yaml'}: ")
    assert "no ConfigMap is called" in second
    assert third.startswith(f"{tmp_path / 'c.yaml'}: ")


# -- reloads ----------------------------------------------------------------------------------------------


class Files:
    """A service with the files of two policy groups in a folder."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.registry = registry
        self.one, self.two = folder / "one.yaml", folder / "two.yaml"
        self.one.write_text(SMALL)
        self.two.write_text(SMALL)
        self.files = ConfigFiles([str(folder)])
        self.loaded = LoadedConfigurations(self.files.read(registry))

    async def start(self, harness: ServiceHarness) -> Reloading:
        """Register an RM per group; the first submits an application to `root.a`."""
        await harness.register("first", policy_group="one")
        await harness.register("second", policy_group="two")
        stream = harness.stream()
        await stream.send(work(1, rm_id="first"))
        await stream.allocations(1)
        return Reloading(self.files, self.loaded, harness.core, self.registry, {})

    @staticmethod
    async def in_use(harness: ServiceHarness, rm_id: str) -> str:
        """Return the text of an RM's current configuration."""
        return await harness.core.call(lambda core: str(core.configuration(rm_id).text))


def test_a_reload_reaches_every_resource_manager(tmp_path: Path, registry: Registry) -> None:
    files = Files(tmp_path, registry)

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        files.one.write_text(BIGGER)
        files.two.write_text(PARENT)
        assert await reloading.reload("test")
        assert await files.in_use(harness, "first") == BIGGER
        assert await files.in_use(harness, "second") == PARENT
        await harness.register("third", policy_group="one")
        assert await files.in_use(harness, "third") == BIGGER

    serve(registry, scenario, configurations=files.loaded)


def test_a_reload_reads_config_maps(tmp_path: Path, registry: Registry) -> None:
    files = Files(tmp_path, registry)

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        files.one.write_text(config_map(BIGGER))
        assert await reloading.reload("test")
        assert await files.in_use(harness, "first") == BIGGER

    serve(registry, scenario, configurations=files.loaded)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (config_map(BROKEN), "one.yaml: partitions[0].queues (line 6"),
        (BROKEN, "one.yaml: partitions[0].queues"),
        (PARENT, "resource manager first: partitions[0]"),
        ("", "one.yaml: is empty, as if it was just being written"),
        (None, "no policy group is called 'one'"),
    ],
    ids=["broken in a ConfigMap", "broken", "in the way", "empty", "gone"],
)
def test_single_problem_prevents_the_reload(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture, text: str | None, reason: str
) -> None:
    files = Files(tmp_path, registry)

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        files.two.write_text(BIGGER)
        if text is None:
            files.one.unlink()
        else:
            files.one.write_text(text)
        assert not await reloading.reload("test")
        for rm_id in ("first", "second"):
            assert await files.in_use(harness, rm_id) == SMALL
        await harness.register("third", policy_group="two")
        assert await files.in_use(harness, "third") == SMALL

    serve(registry, scenario, configurations=files.loaded)
    assert "the new configuration was rejected" in caplog.text
    assert reason in caplog.text


def test_a_new_empty_file_stops_a_reload_and_an_old_one_does_not(
    tmp_path: Path, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    empty = tmp_path / "empty.yaml"
    empty.touch()
    files = Files(tmp_path, registry)

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        await harness.register("third", policy_group="empty")
        files.two.write_text(BIGGER)
        assert await reloading.reload("test")
        assert await files.in_use(harness, "third") == ""
        assert await files.in_use(harness, "second") == BIGGER
        (tmp_path / "new.yaml").touch()
        files.two.write_text(SMALL)
        assert not await reloading.reload("test")
        assert await files.in_use(harness, "second") == BIGGER
        (tmp_path / "new.yaml").write_text("partitions: []")
        files.one.write_text("partitions: []")
        assert await reloading.reload("test")
        assert await files.in_use(harness, "first") == "partitions: []"

    serve(registry, scenario, configurations=files.loaded)
    assert "new.yaml: is empty" in caplog.text


def test_partitions_may_be_removed_and_added(tmp_path: Path, registry: Registry) -> None:
    files = Files(tmp_path, registry)

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        files.two.write_text(document(partition({"name": "a"}), partition({"name": "a"}, name="lab")))
        assert await reloading.reload("test")
        names = await harness.core.call(lambda core: core.session("second").partitions)
        assert names == ("default", "lab")

    serve(registry, scenario, configurations=files.loaded)


class OpensOnce(Predicate):
    """A predicate that only one partition can open."""

    name = "opens-once"
    events: ClassVar[list[str]] = []

    def opened(self, context: Context) -> None:
        """Note the call, and fail after the first."""
        self.events.append("opened")
        if self.events.count("opened") > 1:
            raise OSError("the lock is taken")

    def closed(self) -> None:
        """Note the call."""
        self.events.append("closed")

    def check(self, ask: Ask, node: Node) -> str | None:
        """Accept every node."""
        return None


def test_plugin_that_cannot_be_opened_for_the_second_rm_changes_nothing_for_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    OpensOnce.events.clear()
    registry = with_plugins(predicates=[OpensOnce])
    files = Files(tmp_path, registry)
    using = configuration({"name": "a"}, predicates=["opens-once"])

    async def scenario(harness: ServiceHarness) -> None:
        reloading = await files.start(harness)
        files.one.write_text(using)
        files.two.write_text(using)
        assert not await reloading.reload("test")
        assert OpensOnce.events == ["opened", "opened", "closed"]
        for rm_id in ("first", "second"):
            assert await files.in_use(harness, rm_id) == SMALL
        files.two.write_text(BIGGER)
        OpensOnce.events.clear()
        assert await reloading.reload("test")
        assert OpensOnce.events == ["opened"], "the plugin that was opened ahead is the one in use"
        assert await files.in_use(harness, "first") == using

    serve(registry, scenario, configurations=files.loaded)
    assert "resource manager second" in caplog.text
    assert "the lock is taken" in caplog.text


# -- watching ---------------------------------------------------------------------------------------------


def test_file_counts_as_changed_after_it_is_completely_written(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("1")
    watch = FileWatch(lambda: [file])
    assert not watch.settled()
    file.write_text("1 and")
    assert not watch.settled()
    file.write_text("1 and more")
    assert not watch.settled()
    assert watch.settled()
    assert not watch.settled()


def test_replaced_and_relinked_files_count_as_changed(tmp_path: Path) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "link"
    for folder in (old, new):
        folder.mkdir()
        (folder / "a.yaml").write_text("same size")
        os.utime(folder / "a.yaml", (1, 1))
    link.symlink_to(old)
    watch = FileWatch(lambda: [link / "a.yaml"])
    other = tmp_path / "other"
    other.symlink_to(new)
    other.replace(link)
    assert not watch.settled()
    assert watch.settled()
    spare = tmp_path / "spare"
    spare.write_text("same size")
    os.utime(spare, (1, 1))
    spare.replace(link / "a.yaml")
    assert not watch.settled()
    assert watch.settled()


def test_removed_folder_is_a_change_and_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.yaml").write_text(SMALL)
    watch = FileWatch(ConfigFiles([str(folder)]).watched)
    folder.rename(tmp_path / "elsewhere")
    assert not watch.settled()
    assert watch.settled()


def test_added_and_removed_files_are_changes(tmp_path: Path) -> None:
    watch = FileWatch(lambda: sorted(tmp_path.iterdir()))
    (tmp_path / "a.yaml").write_text("1")
    assert not watch.settled()
    assert watch.settled()
    (tmp_path / "a.yaml").unlink()
    assert not watch.settled()
    assert watch.settled()
