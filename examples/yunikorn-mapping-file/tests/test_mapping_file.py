"""Tests that the rule follows the current content of the file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from yunikorn_mapping_file import MappingFile
from yunikorn_mapping_file.mapping import read_mappings

from yunikorn.errors import ConfigError
from yunikorn_testing import (
    Clusters,
    MakeScheduler,
    PlacementRuleContract,
    application,
    assert_queue,
)

TEAMS = """
# who                 where
user ann              root.science.physics
group staff           root.staff    # all employees
tag team=games        games
*                     root.default
"""
HERE = Path(tempfile.mkdtemp()) / "teams.txt"
HERE.write_text(TEAMS, "utf-8")


class TestMappingFile(PlacementRuleContract):
    """Contract test of placement rules."""

    rule = MappingFile(HERE, check_every=0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of mappings."""
    path = tmp_path / "teams.txt"
    path.write_text(TEAMS, "utf-8")
    return path


def configuration(file: Path, **options: object) -> str:
    """Return a configuration with this rule only."""
    rule = {"name": "mapping_file", "path": str(file), "create": True, **options}
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    partition = {"name": "default", "placementrules": [rule], "queues": [root]}
    return json.dumps({"partitions": [partition]})


def test_first_matching_line_is_used(scheduler: MakeScheduler, file: Path) -> None:
    cluster = scheduler(configuration(file), plugins=[MappingFile])
    cluster.submit(application("a", "", user="ann", groups=["staff"]))
    cluster.submit(application("b", "", user="bob", groups=["guests", "staff"]))
    cluster.submit(application("c", "", user="cid", groups=["guests"], tags={"team": "games"}))
    cluster.submit(application("d", "", user="dee", groups=["guests"], tags={"team": "chess"}))
    assert_queue(cluster, "a", "root.science.physics")
    assert_queue(cluster, "b", "root.staff")
    assert_queue(cluster, "c", "root.games")
    assert_queue(cluster, "d", "root.default")


def test_changed_file_is_read_again(scheduler: MakeScheduler, file: Path) -> None:
    cluster = scheduler(configuration(file), plugins=[MappingFile])
    cluster.submit(application("before", "", user="ann"))
    file.write_text("user ann root.elsewhere\n", "utf-8")
    cluster.submit(application("same-second", "", user="ann"))
    cluster.advance(1)
    cluster.submit(application("after", "", user="ann"))
    assert_queue(cluster, "before", "root.science.physics")
    assert_queue(cluster, "same-second", "root.science.physics")
    assert_queue(cluster, "after", "root.elsewhere")


@pytest.mark.parametrize(
    "text", ["usr ann root.a\n", "user ann\n", "tag team root.a\n", "user ann root..a\n", None]
)
def test_invalid_file_leaves_the_mapping_unchanged(
    text: str | None, scheduler: MakeScheduler, file: Path
) -> None:
    cluster = scheduler(configuration(file), plugins=[MappingFile])
    if text is None:
        file.unlink()
    else:
        file.write_text(f"user bob root.bob\n{text}", "utf-8")
    for number in range(3):
        cluster.advance(10)
        cluster.submit(application(f"app-{number}", "", user="ann"))
        assert_queue(cluster, f"app-{number}", "root.science.physics")
    (fault,) = cluster.failures
    assert fault.count == 1, "an error of one version of the file is reported once"
    assert "teams.txt again; the previous mappings still apply: " in fault.message
    assert ("No such file" if text is None else "line 2: ") in fault.message
    file.write_text("user ann root.mended\n", "utf-8")
    cluster.advance(10)
    cluster.submit(application("mended", "", user="ann"))
    assert_queue(cluster, "mended", "root.mended")


def test_reload_does_not_read_the_file_again(scheduler: MakeScheduler, file: Path) -> None:
    cluster = scheduler(configuration(file), plugins=[MappingFile])
    file.write_text("nonsense", "utf-8")
    cluster.reload(configuration(file).replace('"default"}]}', '"default"}, {"name": "more"}]}'))
    cluster.submit(application("app", "", user="ann"))
    assert_queue(cluster, "app", "root.science.physics")
    assert [fault.count for fault in cluster.failures] == [1]


def test_missing_file_at_start_refuses_the_configuration(tmp_path: Path) -> None:
    clusters = Clusters()
    missing = tmp_path / "missing.txt"
    with pytest.raises(ConfigError, match=r"opening: FileNotFoundError: .*missing\.txt"):
        clusters(configuration(missing), plugins=[MappingFile])
    missing.write_text("* root.default\n", "utf-8")
    cluster = clusters(configuration(missing), plugins=[MappingFile])
    cluster.submit(application("later", "", user="ann"))
    assert_queue(cluster, "later", "root.default")
    clusters.close()


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(
        ValueError, match=r"line 1: expected .*; line 3: a level of the queue 'a\.\.b' is empty"
    ):
        read_mappings("nonsense\n* root.a\nuser x a..b\n")
