"""The configuration in use, and the validation of another."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import yaml

from tests.core.kit import RM, document, partition, queue
from tests.rest.kit import Rest
from tests.whole_readings import read_at_once
from yunikorn.clock import SECOND
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn_rest.app import rest_app
from yunikorn_rest.config_shapes import shape_of, to_yaml
from yunikorn_rest.paced_work import PacedWork, WorkClock
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_rest.routes.configuration_routes import read_configs

CONFIG = document(
    partition(
        queue(
            "a",
            resources={"guaranteed": {"vcore": "1500m"}, "max": {"vcore": "8", "memory": "4Gi"}},
            maxapplications=3,
            properties={"application.sort.policy": "fair"},
            adminacl="ann,bob dev",
            submitacl=" dev",
            limits=[
                {
                    "limit": "ann",
                    "users": ["ann"],
                    "groups": ["dev"],
                    "maxapplications": 2,
                    "maxresources": {"vcore": "6"},
                }
            ],
        ),
        queue("p", parent=True, childtemplate={"maxapplications": 5, "resources": {"max": {"vcore": "1"}}}),
        placementrules=[
            {
                "name": "tag",
                "value": "namespace",
                "create": True,
                "filter": {"type": "deny", "users": ["ann"], "groups": ["x", "y"]},
                "parent": {"name": "fixed", "value": "root.p"},
            },
            {"name": "provided"},
        ],
        nodesortpolicy={"type": "binpacking", "resourceweights": {"vcore": 2.5}},
        preemption={"enabled": False},
    )
)
JSON = {"accept": "application/json"}
EMPTY_TEMPLATE: dict[str, Any] = {"Resources": {}}


def test_configuration_as_json() -> None:
    rm = RM(CONFIG)
    rm.scheduler.register_resource_manager(
        RegisterResourceManagerRequest("rm", config=CONFIG, extra_config={"log.level": "INFO"}), rm
    )
    answer = Rest(rm).request("GET", "config", JSON)
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    found = answer.json()
    assert found.pop("Checksum") == rm.scheduler.configuration("rm").checksum
    assert found == {
        "Partitions": [
            {
                "Name": "default",
                "Queues": [
                    {
                        "Name": "root",
                        "Parent": True,
                        "Resources": {},
                        "SubmitACL": "*",
                        "ChildTemplate": EMPTY_TEMPLATE,
                        "Queues": [
                            {
                                "Name": "a",
                                "Resources": {
                                    "Guaranteed": {"vcore": "1500m"},
                                    "Max": {"memory": "4Gi", "vcore": "8"},
                                },
                                "MaxApplications": 3,
                                "Properties": {"application.sort.policy": "fair"},
                                "AdminACL": "ann,bob dev",
                                "SubmitACL": " dev",
                                "ChildTemplate": EMPTY_TEMPLATE,
                                "Limits": [
                                    {
                                        "Limit": "ann",
                                        "Users": ["ann"],
                                        "Groups": ["dev"],
                                        "MaxResources": {"vcore": "6"},
                                        "MaxApplications": 2,
                                    }
                                ],
                            },
                            {
                                "Name": "p",
                                "Parent": True,
                                "Resources": {},
                                "ChildTemplate": {
                                    "MaxApplications": 5,
                                    "Resources": {"Max": {"vcore": "1"}},
                                },
                            },
                        ],
                    }
                ],
                "PlacementRules": [
                    {
                        "Name": "tag",
                        "Create": True,
                        "Filter": {"Type": "deny", "Users": ["ann"], "Groups": ["x", "y"]},
                        "Parent": {"Name": "fixed", "Filter": {"Type": ""}, "Value": "root.p"},
                        "Value": "namespace",
                    },
                    {"Name": "provided", "Filter": {"Type": ""}},
                ],
                "Preemption": {"Enabled": False},
                "NodeSortPolicy": {"Type": "binpacking", "ResourceWeights": {"vcore": 2.5}},
                "UserGroupResolver": {},
            }
        ],
        "Extra": {"log.level": "INFO"},
        "DeadlockDetectionEnabled": False,
        "DeadlockTimeoutSeconds": 0,
    }


AS_WRITTEN = """\
# A file in the manner of those in clusters.
partitions:
  - name: Default
    placementrules:
      - {name: Tag, value: namespace, create: true, filter: {type: Allow, users: ["^a.*"]}}
    limits:
      - {limit: "", users: ["*"], maxresources: {memory: 10240M, vcore: 1500m}}
    queues:
      - name: Batch
        submitacl: "*"
        properties: {priority.offset: 5, application.sort.priority: Disabled, ours: ""}
        resources: {guaranteed: {memory: 1024Mi}, max: {memory: 2048Mi, nvidia.com/gpu: 0}}
        queues:
          - {name: Inner, maxapplications: 1_0}
      - name: other
    usergroupresolver: {type: os}
    preemption: {quotapreemptionenabled: false}
"""


def test_values_are_as_written_and_defaults_absent() -> None:
    (found,) = Rest(RM(AS_WRITTEN)).request("GET", "config", JSON).json()["Partitions"]
    limits = [{"Limit": "", "Users": ["*"], "MaxResources": {"memory": "10240M", "vcore": "1500m"}}]
    assert found == {
        "Name": "default",
        "Queues": [
            {
                "Name": "root",
                "Parent": True,
                "Resources": {},
                "ChildTemplate": EMPTY_TEMPLATE,
                "Queues": [
                    {
                        "Name": "Batch",
                        "Parent": True,
                        "Resources": {
                            "Guaranteed": {"memory": "1024Mi"},
                            "Max": {"memory": "2048Mi", "nvidia.com/gpu": "0"},
                        },
                        "Properties": {
                            "application.sort.priority": "Disabled",
                            "ours": "",
                            "priority.offset": "5",
                        },
                        "SubmitACL": "*",
                        "ChildTemplate": EMPTY_TEMPLATE,
                        "Queues": [
                            {
                                "Name": "Inner",
                                "Resources": {},
                                "MaxApplications": 10,
                                "ChildTemplate": EMPTY_TEMPLATE,
                            }
                        ],
                    },
                    {"Name": "other", "Resources": {}, "ChildTemplate": EMPTY_TEMPLATE},
                ],
                "Limits": limits,
            }
        ],
        "PlacementRules": [
            {
                "Name": "Tag",
                "Create": True,
                "Filter": {"Type": "Allow", "Users": ["^a.*"]},
                "Value": "namespace",
            }
        ],
        "Limits": limits,
        "Preemption": {"QuotaPreemptionEnabled": False},
        "NodeSortPolicy": {"Type": ""},
        "UserGroupResolver": {"type": "os"},
    }


def test_the_smallest_file_has_no_defaults_in_json() -> None:
    rm = RM("partitions: [{name: default, queues: [{name: ROOT, submitacl: '*'}]}]")
    (found,) = Rest(rm).request("GET", "config", JSON).json()["Partitions"]
    assert (found["Preemption"], found["UserGroupResolver"]) == ({}, {})
    assert found["NodeSortPolicy"] == {"Type": ""}
    assert (found["Queues"][0]["Name"], found["Queues"][0]["Parent"]) == ("ROOT", True)
    assert "PlacementRules" not in found


def test_a_rule_for_the_parent_in_a_list_is_shown_like_one_without() -> None:
    rules = [{"name": "user", "create": True, "parent": [{"name": "fixed", "value": "root.p"}]}]
    rm = RM(document(partition(queue("p", parent=True), placementrules=rules)))
    (found,) = Rest(rm).request("GET", "config", JSON).json()["Partitions"]
    assert found["PlacementRules"][0]["Parent"] == {
        "Name": "fixed",
        "Filter": {"Type": ""},
        "Value": "root.p",
    }


@pytest.mark.parametrize("config", [CONFIG, AS_WRITTEN], ids=["json", "yaml"])
@pytest.mark.parametrize("accept", ["*/*", "application/json, text/plain, */*"])
def test_configuration_as_yaml_can_be_used_again(accept: str, config: str) -> None:
    rest = Rest(RM(config))
    answer = rest.request("GET", "config", {"accept": accept})
    assert answer.headers["content-type"] == "application/x-yaml; charset=UTF-8"
    (partition,) = yaml.safe_load(answer.text)["partitions"]
    if config == CONFIG:
        assert partition["nodesortpolicy"] == {"type": "binpacking", "resourceweights": {"vcore": 2.5}}
    assert rest.request("POST", "validate-conf", content=answer.content).json()["allowed"] is True
    again = Rest(RM(answer.text)).request("GET", "config", JSON).json()
    assert again["Partitions"] == rest.request("GET", "config", JSON).json()["Partitions"]


def test_an_answer_is_kept_until_the_configuration_changes() -> None:
    rm = RM(CONFIG)
    configs, _ = read_at_once(rm.scheduler, read_configs)
    assert shape_of(configs, {}).partitions is shape_of(configs, {}).partitions
    assert to_yaml(configs) is to_yaml(configs)
    rm.reload(document(partition(queue("b"))))
    assert b"name: b" in to_yaml(read_at_once(rm.scheduler, read_configs)[0])


def test_without_resource_managers_there_is_no_configuration() -> None:
    rm = RM()
    rm.scheduler.stop("rm")
    assert Rest(rm).request("GET", "config", JSON).json() == {
        "DeadlockDetectionEnabled": False,
        "DeadlockTimeoutSeconds": 0,
    }


def validate(text: str | bytes) -> Any:
    """Return the answer to the validation of a text."""
    content = text.encode() if isinstance(text, str) else text
    answer = Rest(RM()).request("POST", "validate-conf", {"content-type": "application/json"}, content)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-methods"] == "OPTIONS, POST"
    return answer.json()


def test_valid_configurations() -> None:
    found = validate(CONFIG)
    assert found == {"allowed": True, "checksum": RM(CONFIG).scheduler.configuration("rm").checksum}
    assert validate("")["allowed"] is True


def test_all_problems_of_a_configuration_have_their_places() -> None:
    found = validate(
        "partitions:\n- name: default\n  surprise: 1\n  queues:\n  - name: root\n    maxapplications: x\n"
    )
    assert found["allowed"] is False
    assert [(problem["line"], problem["path"]) for problem in found["problems"]] == [
        (3, "partitions[0].surprise"),
        (6, "partitions[0].queues[0].maxapplications"),
    ]
    assert "surprise" in found["reason"]
    assert "maxapplications" in found["reason"]


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"{", b"- 1", b"\x00", b"a: &a [*a]", b"[" * 2000])
def test_texts_that_are_no_configuration_are_refused(text: bytes) -> None:
    found = validate(text)
    assert found["allowed"] is False
    assert found["reason"]


def test_configurations_to_validate_cannot_load_code() -> None:
    found = validate("partitions: []\nplugins: {load: [/tmp/mine.py]}\n")
    assert found["allowed"] is False


def test_large_bodies_are_refused() -> None:
    answer = Rest(RM()).request("POST", "validate-conf", content=b"#" * (5 << 20))
    assert answer.status_code == 413
    assert answer.json()["message"] == (
        "the body is larger than 4194304 bytes; with credentials it may have 16777216, and"
        " `yunikorn validate` checks a file of any size"
    )


class WorkTime:
    """Clock of work whose processor time is a number of its calls, and whose pauses are remembered."""

    def __init__(self, step: float) -> None:
        self.paused = 0.0
        self._step, self._used = step, 0.0

    def clock(self) -> WorkClock:
        """Return the clock."""
        return WorkClock(self._processor, lambda: round((self._used + self.paused) * SECOND), self._pause)

    def _processor(self) -> float:
        self._used += self._step
        return self._used

    def _pause(self, seconds: float) -> None:
        self.paused += seconds


QUEUES = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n" + "".join(
    f"    - name: q{number}\n" for number in range(2000)
)
PROBLEMS = "partitions:\n" + "".join(f"- nam: x{number}\n" for number in range(500))


@pytest.mark.parametrize("text", [QUEUES, PROBLEMS, "a: [" + "1," * 2000 + "]"])
def test_validation_without_credentials_has_a_limit_of_processor_time(text: str) -> None:
    rest = Rest(RM())
    site = attrs.evolve(rest.context, open_work=PacedWork(clock=WorkTime(1.0).clock()))
    rest.app = rest_app(site, ENDPOINTS)
    answer = rest.request("POST", "validate-conf", content=text.encode())
    assert answer.status_code == 413
    assert answer.json()["message"] == (
        "this takes more than 4 s of processor time; with credentials there is no such limit"
    )


def test_validations_without_credentials_have_a_share_of_a_processor() -> None:
    rest, time = Rest(RM()), WorkTime(0.01)
    site = attrs.evolve(rest.context, open_work=PacedWork(share=0.25, burst=0.05, clock=time.clock()))
    rest.app = rest_app(site, ENDPOINTS)
    before = 0.0
    for _ in range(3):
        assert rest.request("POST", "validate-conf", content=QUEUES.encode()).json()["allowed"] is True
        assert time.paused > before
        before = time.paused
