"""The examples of YuniKorn's documentation of placement rules, submitted to a scheduler."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler


class ResourceManager:
    """Submits applications and records the answers."""

    def __init__(self, registry: Registry, config: str) -> None:
        self.scheduler = Scheduler(registry, ManualClock())
        self.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), self)
        self.accepted: list[str] = []
        self.rejected: dict[str, str] = {}

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response."""
        self.accepted += [each.application_id for each in response.accepted_applications]
        self.rejected |= {each.application_id: each.reason for each in response.rejected_applications}

    def submit(self, user: str, groups: Any = (), queue: str = "", tags: Any = None) -> str | None:
        """Return the path of the queue where the application runs; None if it was rejected."""
        app_id = f"app-{len(self.accepted) + len(self.rejected)}"
        owner = UserGroupInformation(user, list(groups))
        request = AddApplicationRequest(app_id, queue, "", owner, dict(tags or {}))
        self.scheduler.update(UpdateRequest("rm", new_applications=[request]))
        assert (app_id in self.accepted) != (app_id in self.rejected)
        if app_id in self.rejected:
            return None
        partition = self.scheduler.partition("rm")
        assert partition is not None
        found = partition.partition.applications[app_id].queue
        assert found is not None
        return found.path


def config(rules: str, queues: str = "", root_acl: str = "*") -> str:
    """Return a partition with these rules, and these queues below a root open to all users."""
    text = "partitions:\n  - name: default\n    placementrules:\n" + textwrap.indent(
        textwrap.dedent(rules), " " * 6
    )
    text += f"    queues:\n      - name: root\n        submitacl: '{root_acl}'\n"
    return text + ("        queues:\n" + textwrap.indent(textwrap.dedent(queues), " " * 10) if queues else "")


# -- single rules -------------------------------------------------------------------------------------

PROVIDED = """\
- name: provided
  create: true
  parent:
    name: user
    create: true
"""
USER = """\
- name: user
  create: false
"""
FIXED = """\
- name: fixed
  value: last_resort
"""
TAG = """\
- name: tag
  value: namespace
  create: true
"""


@pytest.mark.parametrize(
    ("rules", "queues", "application", "result"),
    [
        (PROVIDED, "", {"queue": "my_special_queue"}, "root.developer.my_special_queue"),
        (PROVIDED, "", {"queue": "root.dev_queue"}, "root.dev_queue"),
        (USER, "- name: finance_dot_test\n", {"user": "finance.test"}, "root.finance_dot_test"),
        (USER, "", {}, None),
        (USER + FIXED, "- name: last_resort\n", {}, "root.last_resort"),
        (FIXED, "- name: last_resort\n", {"queue": "my_special_queue"}, "root.last_resort"),
        (TAG, "", {"tags": {"namespace": "default"}, "queue": "my_special_queue"}, "root.default"),
        (TAG, "", {"tags": {"namespace": "testing"}}, "root.testing"),
        (TAG, "", {}, None),
        (TAG + FIXED, "- name: last_resort\n", {}, "root.last_resort"),
    ],
)
def test_single_rules(
    registry: Registry, rules: str, queues: str, application: dict[str, Any], result: str | None
) -> None:
    rm = ResourceManager(registry, config(rules, queues))
    assert rm.submit(**{"user": "developer", **application}) == result
    if result is None:
        assert "application rejected: no placement rule matched" in rm.rejected["app-0"]


# -- complex example 1: three chained rules -----------------------------------------------------------

CHAINED = """\
- name: user
  create: true
  filter:
    type: allow
    groups:
      - dev*
  parent:
    - name: tag
      value: namespace
- name: tag
  value: namespace
  create: true
  parent:
    - name: fixed
      value: root.namespaces
      filter:
        type: allow
        users:
          - john
- name: fixed
  value: root.default
"""
THREE_QUEUES = """\
- name: namespaces
  parent: true
- name: default
- name: newapp
  parent: true
"""
SARAH: dict[str, Any] = {
    "user": "sarah",
    "groups": ["sarah", "test_app", "dev_app"],
    "tags": {"namespace": "newapp"},
}


@pytest.mark.parametrize(
    ("application", "result"),
    [
        ({"user": "john", "tags": {"namespace": "testing"}}, "root.namespaces.testing"),
        (SARAH, "root.newapp.sarah"),
        ({"user": "bob", "groups": ["bob"], "tags": {"namespace": "testapp"}}, "root.default"),
    ],
)
def test_three_chained_rules(registry: Registry, application: dict[str, Any], result: str) -> None:
    rm = ResourceManager(registry, config(CHAINED, THREE_QUEUES))
    assert rm.submit(**application) == result


def test_a_parent_rule_without_create_needs_its_queue(registry: Registry) -> None:
    rm = ResourceManager(registry, config(CHAINED, "- name: namespaces\n  parent: true\n- name: default\n"))
    assert rm.submit(**SARAH) == "root.default"


def test_the_parent_may_also_be_a_mapping(registry: Registry) -> None:
    rules = CHAINED.replace("    - name: tag\n      value", "    name: tag\n    value", 1)
    assert rules != CHAINED
    assert ResourceManager(registry, config(rules, THREE_QUEUES)).submit(**SARAH) == "root.newapp.sarah"


# -- complex example 2: access control ----------------------------------------------------------------

WITH_ACL = """\
partitions:
  - name: default
    queues:
      - name: production
        submitacl: john,bob
    placementrules:
      - name: fixed
        value: root.production
      - name: user
        create: true
"""


@pytest.mark.parametrize(
    ("user", "result"), [("john", "root.production"), ("bob", "root.production"), ("alice", None)]
)
def test_access_control(registry: Registry, user: str, result: str | None) -> None:
    assert ResourceManager(registry, WITH_ACL).submit(user) == result


def test_access_to_a_parent_includes_its_descendants(registry: Registry) -> None:
    # "all other users use their own queue" is left out: it would require other semantics of ACLs
    # (docs/decisions/archive/0013).
    rules = "- name: fixed\n  value: root.production\n- name: user\n  create: true\n"
    rm = ResourceManager(registry, config(rules, "- name: production\n  submitacl: john,bob\n"))
    assert rm.submit("alice") == "root.production"


# -- rules without an example ------------------------------------------------------------------------------


def test_dynamic_queue_of_one_application_exists_for_the_next(registry: Registry) -> None:
    rm = ResourceManager(registry, config(TAG + USER))
    assert rm.submit("testing") is None
    assert rm.submit("ann", tags={"namespace": "testing"}) == "root.testing"
    assert rm.submit("testing") == "root.testing"


def test_the_administrative_acl_also_lets_submit(registry: Registry) -> None:
    queues = "- name: last_resort\n  adminacl: ann\n"
    rm = ResourceManager(registry, config(FIXED, queues, root_acl=""))
    assert rm.submit("ann") == "root.last_resort"
    assert rm.submit("bob") is None


@pytest.mark.parametrize("name", ["USER", "User"])
def test_rule_names_ignore_case(registry: Registry, name: str) -> None:
    rules = USER.replace("name: user", f"name: {name}")
    assert ResourceManager(registry, config(rules, "- name: ann\n")).submit("ann") == "root.ann"


# -- fallbacks, in a whole scheduler -------------------------------------------------------------------


def test_only_forced_applications_get_the_recovery_queue(registry: Registry) -> None:
    rm = ResourceManager(registry, config(USER + "- name: provided\n", root_acl="ann"))
    forced = {"application.create.force": "true"}
    assert rm.submit("", tags=forced) == "root.@recovery@"
    assert rm.submit("ann", queue="root.@recovery@") is None
    assert "user 'ann' may not submit to root.@recovery@" in rm.rejected["app-1"]


def test_dynamic_root_default_is_the_last_resort(registry: Registry) -> None:
    rm = ResourceManager(registry, config(TAG))
    assert rm.submit("ann") is None
    assert rm.submit("ann", tags={"namespace": "default"}) == "root.default"
    assert rm.submit("ann") == "root.default"


def test_queue_that_cannot_be_created_rejects_the_application(registry: Registry) -> None:
    rm = ResourceManager(registry, config(PROVIDED, "- name: leaf\n"))
    assert rm.submit("ann", queue="root.leaf.more") is None
    assert "root.leaf is a leaf queue" in rm.rejected["app-0"]


@pytest.mark.parametrize("user", ["", "a b"])
def test_user_name_that_is_no_valid_queue_name_rejects_the_application(registry: Registry, user: str) -> None:
    rm = ResourceManager(registry, config(PROVIDED))
    assert rm.submit(user, queue="q") is None
    assert "user" in rm.rejected["app-0"]
