"""Differences between configurations, and log levels over REST."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from tests.rest.steering_kit import ADMIN, OPERATOR, Steered, entries
from yunikorn.config.load import load_config
from yunikorn.framework.registry import Registry
from yunikorn_rest.app import rest_app
from yunikorn_rest.config_changes import (
    ConfigChange,
    ConfigRequest,
    ConfigResult,
    ConfigText,
    config_changes,
    with_effects,
)
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.log_levels import LogLevels


def changes(registry: Registry, old: str, new: str) -> list[ConfigChange]:
    """Return the differences of two texts."""
    return config_changes(load_config(old, registry), load_config(new, registry))


def short(found: list[ConfigChange]) -> list[tuple[str, str, object, object]]:
    """Return path, change, and the values before and after."""
    return [(one.path, one.change, one.before, one.after) for one in found]


def test_equal_configurations_have_no_differences(registry: Registry) -> None:
    old = configuration(queue("a", maxapplications=0), queue("b"))
    new = "# a comment\n" + configuration(queue("b"), queue("A", properties={}))
    assert changes(registry, old, new) == []


def test_keys_of_queues_are_compared_one_by_one(registry: Registry) -> None:
    old = queue(
        "a",
        resources={"guaranteed": {"vcore": 1}, "max": {"vcore": 4, "memory": "8Gi"}},
        properties={"priority.offset": "1", "priority.policy": "fence"},
        submitacl="ann",
        maxapplications=3,
    )
    new = queue(
        "a",
        resources={"max": {"vcore": 6, "gpu": 1, "memory": "8Gi"}},
        properties={"priority.offset": "2"},
        submitacl="ann,bob dev",
        limits=[{"users": ["ann"], "maxapplications": 2}],
    )
    where = "partition default, queue root.a: "
    assert short(changes(registry, configuration(old), configuration(new))) == [
        (where + "resources.guaranteed.vcore", "removed", "1", None),
        (where + "resources.max.vcore", "changed", "4", "6"),
        (where + "maxapplications", "removed", 3, None),
        (where + "properties.priority.offset", "changed", "1", "2"),
        (where + "properties.priority.policy", "removed", "fence", None),
        (where + "submitacl", "changed", "ann", "ann,bob dev"),
        (where + "resources.max.gpu", "added", None, "1"),
        (where + "limits", "added", None, [{"users": ["ann"], "maxapplications": 2}]),
    ]


def test_queues_and_partitions_appear_and_disappear_as_a_whole(registry: Registry) -> None:
    old = document(partition(queue("a", queue("b", maxapplications=3))), partition(queue("x"), name="gpu"))
    new = document(partition(queue("a", parent=True), queue("c", maxapplications=1)))
    assert short(changes(registry, old, new)) == [
        ("partition default, queue root.a.b", "removed", None, None),
        ("partition gpu", "removed", None, None),
        ("partition default, queue root.c", "added", None, None),
    ]


def test_settings_of_partitions(registry: Registry) -> None:
    old = document(
        partition(
            queue("a"),
            placementrules=[{"name": "user", "create": True, "parent": {"name": "fixed", "value": "root"}}],
            nodesortpolicy={"type": "binpacking", "resourceweights": {"vcore": 2}},
            periods={"completing": "5s"},
            preemption={"enabled": False},
        )
    )
    new = document(
        partition(
            queue("a"),
            placementrules=[{"name": "provided"}],
            nodesortpolicy={"type": "binpacking", "resourceweights": {"vcore": 3}},
            periods={"completing": "5s", "reservation": "never"},
        ),
        events={"sinks": ["log"]},
    )
    found = changes(registry, old, new)
    by_key = {one.key: one for one in found}
    assert by_key["events.sinks"].path == "all partitions: events.sinks"
    assert by_key["nodesortpolicy"].before == "binpacking (options: resourceweights)"
    assert by_key["nodesortpolicy"].note == "options that differ: resourceweights"
    assert by_key["periods.reservation"].after == "never"
    assert (by_key["preemption.enabled"].change, by_key["preemption.enabled"].before) == ("removed", False)
    assert by_key["placementrules"].after == [{"name": "provided"}]
    assert set(by_key) == {
        "events.sinks",
        "nodesortpolicy",
        "periods.reservation",
        "preemption.enabled",
        "placementrules",
    }


def test_effects_on_what_runs_are_noted(registry: Registry) -> None:
    old = document(partition(queue("a", queue("b")), queue("c")), partition(queue("x"), name="gpu"))
    rm = RM(old)
    rm.node(memory=10)
    rm.app("one", "root.a.b")
    rm.app("two", "root.a.b")
    found = changes(registry, old, document(partition(queue("d"), name="gpu")))
    notes = {one.path: one.note for one in with_effects(found, rm.scheduler, ("rm",))}
    assert notes["partition default"] == "ends 2 applications and removes 1 node"
    found = changes(registry, old, document(partition(queue("c")), partition(queue("x"), name="gpu")))
    notes = {one.path: one.note for one in with_effects(found, rm.scheduler, ("rm",))}
    text = "drains: accepts no new applications, and is removed after its 2 applications"
    assert notes["partition default, queue root.a"] == text
    assert with_effects(found, rm.scheduler, ("other",)) == tuple(found)


# -- log levels ------------------------------------------------------------------------------------------


@pytest.fixture
def levels() -> Iterator[LogLevels]:
    """Return the levels of some areas, and restore them at the end."""
    names = ("yunikorn", "yunikorn.core", "yunikorn.rest", "yunikorn.audit")
    before = {name: logging.getLogger(name).level for name in names}
    logging.getLogger("yunikorn").setLevel("INFO")
    yield LogLevels(("core", "rest", "audit"))
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def steered(levels: LogLevels) -> Steered:
    """Return a REST interface with these log levels."""
    return Steered(RM(), log_levels=levels)


def test_log_levels_are_read_and_set(levels: LogLevels) -> None:
    rest = steered(levels)
    assert rest.json("loglevel") == {
        "levels": {"yunikorn": "info", "core": "info", "rest": "info", "audit": "info"}
    }
    body = b'{"levels": {"core": "DEBUG", "yunikorn": "warning"}}'
    assert rest.ask("PUT", "loglevel", OPERATOR, content=body).status_code == 403
    answer = rest.ask("PUT", "loglevel", ADMIN, content=body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "changed": True,
        "before": {"core": "info", "yunikorn": "info", "rest": "info", "audit": "info"},
        "after": {"core": "debug", "yunikorn": "warning", "rest": "warning", "audit": "warning"},
    }
    assert logging.getLogger("yunikorn.core").isEnabledFor(logging.DEBUG)
    body = b'{"levels": {"yunikorn.core": "inherited"}}'
    assert rest.ask("PUT", "loglevel", ADMIN, content=body).json()["after"] == {"core": "warning"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", 'expected {"levels"'),
        (b'{"levels": []}', 'expected {"levels"'),
        (b'{"levels": {}}', 'expected {"levels"'),
        (b'{"level": {}}', "did you mean 'levels'"),
        (b'{"levels": {"cor": "debug", "rest": "loud"}}', "did you mean 'core'?; known: yunikorn, core"),
        (b'{"levels": {"cor": "debug", "rest": "loud"}}', "rest: expected a level; known: debug, info"),
        (b'{"levels": {"yunikorn": "inherited"}}', "yunikorn: expected a level"),
        (b'{"levels": {"core": 10}}', "core: expected a level"),
        (b'{"levels": {"audit": "error"}}', "audit: changes must stay in the log"),
    ],
)
def test_log_levels_that_cannot_be_used_change_nothing(levels: LogLevels, body: bytes, message: str) -> None:
    before = levels.read()
    answer = steered(levels).ask("PUT", "loglevel", ADMIN, content=body)
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert levels.read() == before


def test_audit_log_names_the_wanted_log_levels_before_they_are_set(levels: LogLevels, tmp_path: Path) -> None:
    rest = Steered(RM(), tmp_path / "audit", log_levels=levels)
    rest.ask("PUT", "loglevel", ADMIN, content=b'{"levels": {"core": "DEBUG"}}')
    begun, done = entries(tmp_path / "audit")
    assert (begun["outcome"], begun["target"]) == ("begun", {"core": "debug"})
    assert done["target"] == begun["target"]


@attrs.frozen
class OneGroup:
    """Changes the configuration of the only policy group."""

    async def change(self, request: ConfigRequest) -> ConfigResult:
        """Return the result of a change in a group that a request need not name."""
        assert not request.policy_group
        return ConfigResult(applied=True, policy_group="gpu", resource_managers=("rm",))

    async def text(self, policy_group: str, rm_id: str) -> ConfigText:
        """Return an empty configuration."""
        return ConfigText(b"", "")


def test_audit_log_names_the_policy_group_that_was_changed(tmp_path: Path) -> None:
    rest = Steered(RM(), tmp_path / "audit")
    assert rest.context.steering is not None
    steering = attrs.evolve(rest.context.steering, configuration=cast(Any, OneGroup()))
    rest.app = rest_app(attrs.evolve(rest.context, steering=steering), ENDPOINTS)
    assert rest.ask("PUT", "config", ADMIN, content=b"partitions: []").status_code == 200
    begun, done = entries(tmp_path / "audit")
    assert begun["target"] == {"policyGroup": "(default group)"}
    assert (done["after"]["policyGroup"], done["after"]["resourceManagers"]) == ("gpu", ["rm"])


def test_configuration_needs_the_role_admin_and_an_owner() -> None:
    rest = Steered(RM())
    assert rest.ask("PUT", "config?dryRun", OPERATOR).status_code == 403
    assert rest.ask("PUT", "config?dryRun").status_code == 401
    assert rest.ask("PUT", "config?dryRun", ADMIN).status_code == 409
