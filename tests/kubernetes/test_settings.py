"""Settings of the ConfigMaps: defaults, syntax, problems, and the reference page."""

from __future__ import annotations

from pathlib import Path

import pytest

from yunikorn.clock import SECOND
from yunikorn_kubernetes.shim_settings import (
    FOR_THE_CORE,
    HEALTH_CHECK,
    LOG_LEVEL,
    AdmissionSettings,
    ServiceSettings,
    ShimLogLevels,
    ShimSettings,
    all_settings,
    is_known,
    nearest,
    read_settings,
)

PAGE = Path(__file__).parent.parent.parent / "docs" / "kubernetes" / "configuration.md"


def reference_table() -> str:
    """Return the table of all keys for the reference page, in Markdown."""
    rows = ["| key | type | default | meaning | a change needs a restart |", "|---|---|---|---|---|"]
    for setting in all_settings().values():
        default = f"`{setting.shown_default}`" if setting.shown_default else "none"
        meaning = setting.meaning if setting.effective else f"{setting.meaning}; **no effect** here"
        rows.append(
            f"| `{setting.key}` | {setting.kind.words} | {default} | {meaning}"
            f" | {'no' if setting.reloadable else 'yes'} |"
        )
    levels = "`debug`, `info`, `warn`, `error`, `fatal`, or -1 to 5"
    rows.append(f"| `{LOG_LEVEL}` | {levels} | `info` | level of all logs | no |")
    rows.append(
        f"| `log.AREA.level` | {levels} | that of the longest prefix of the area | level of an [area](#logs)"
        " | no |"
    )
    rows += [
        f"| `{key}` | {kind.words} | the core's | [settings of events](../rest.md#settings-of-events) | no |"
        for key, kind in FOR_THE_CORE.items()
        if key != HEALTH_CHECK
    ]
    rows.append(
        f"| `{HEALTH_CHECK}` | duration | `30s` | pause between checks of health; **no effect** here | no |"
    )
    return "\n".join(rows) + "\n"


def problems_of(**values: str) -> list[str]:
    """Return the problems of values by the last part of their keys."""
    settings, problems = read_settings({f"service.{key}": text for key, text in values.items()})
    assert settings == ShimSettings()
    return [str(problem) for problem in problems]


def test_defaults_are_those_of_yunikorn() -> None:
    settings, problems = read_settings({})
    assert problems == []
    service, admission = settings.service, settings.admission
    assert (service.cluster_id, service.policy_group, service.hot_refresh) == ("mycluster", "queues", True)
    assert (service.volume_bind_timeout, service.qps, service.burst) == (600 * SECOND, 1000, 1000)
    assert (service.placeholder_image, service.placeholder_run_as_user) == ("registry.k8s.io/pause:3.7", None)
    assert admission.bypass_namespaces == ("^kube-system$",)
    assert admission.system_users == ("^system:serviceaccount:kube-system:",)
    assert (admission.bypass_auth, admission.trust_controllers) == (False, True)


def test_values_are_read() -> None:
    settings, problems = read_settings(
        {
            "service.clusterId": "east",
            "service.volumeBindTimeout": "1m30s",
            "service.disableGangScheduling": "T",
            "service.placeholderRunAsUser": "1000",
            "service.placeholderFsGroup": "-1",
            "kubernetes.qps": " 50\n",
            "service.workloadKinds": "all, -Job , pair@my-readers,-old.one@x",
            "admissionController.filtering.generateUniqueAppId": "true",
            "admissionController.filtering.processNamespaces": "^team-, ,shop$",
        }
    )
    assert problems == []
    assert settings.service == ServiceSettings(
        cluster_id="east",
        volume_bind_timeout=90 * SECOND,
        disable_gang_scheduling=True,
        placeholder_run_as_user=1000,
        qps=50,
        workload_kinds=("all", "-Job", "pair@my-readers", "-old.one@x"),
        unique_app_ids=True,
    )
    assert settings.admission == AdmissionSettings(
        process_namespaces=("^team-", "shop$"), unique_app_ids=True
    )


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("volumeBindTimeout", "10", "'10': expected a duration such as 30s, 500ms or 1h30m, got '10'"),
        ("volumeBindTimeout", "-1s", "'-1s': expected a duration of 0 or more"),
        ("disableGangScheduling", "yes", "'yes': expected true or false"),
        ("disableGangScheduling", "", "'': expected true or false"),
        ("clusterId", " ", "' ': expected a text of 1 to 1024 bytes"),
        ("placeholderImage", "x" * 1025, f"'{'x' * 80}...': expected a text of 1 to 1024 bytes"),
        ("eventChannelCapacity", "1k", "'1k': expected a whole number of at most 2147483647"),
        (
            "workloadKinds",
            "a b",
            "'a b': expected all, none, or kinds such as Job, separated by commas",
        ),
        ("workloadKinds", " , ", "' , ': expected all, none, or kinds such as Job, separated by commas"),
        ("workloadKinds", "none, Job", "'none, Job': expected none alone, without kinds"),
        ("workloadKinds", "-Job", "'-Job': -NAME leaves a kind out of all: write all, -NAME"),
        ("placeholderRunAsUser", "-2", "'-2': expected the number of a user or group, or -1 for none"),
        (
            "placeholderRunAsGroup",
            "9" * 100,
            f"'{'9' * 80}...': expected a whole number of at most 2147483647",
        ),
    ],
)
def test_a_bad_value_is_named_with_the_default(key: str, text: str, problem: str) -> None:
    (found,) = problems_of(**{key: text})
    assert found.startswith(
        f"service.{key}: {problem}; correct the value, or remove the key for the default ("
    )


@pytest.mark.parametrize("name", ["wébhooks", "Webhooks", "web.hooks", "-webhooks", "w" * 64])
def test_the_service_of_the_webhooks_is_a_part_of_a_host_name(name: str) -> None:
    _, problems = read_settings({"admissionController.webHook.amServiceName": name})
    assert "expected the name of a service" in problems[0].message


@pytest.mark.parametrize("address", ["http://a:9080", "https://", "https://a:9080/ws", "a:9080/", "ftp://a"])
def test_the_address_of_the_scheduler_is_a_host_with_or_without_tls(address: str) -> None:
    key = "admissionController.webHook.schedulerServiceAddress"
    _, problems = read_settings({key: address})
    assert "expected HOST:PORT, or https://HOST:PORT for a scheduler with --tls-cert" in problems[0].message
    for usual in ("a:9080", "[::1]:9080", "https://a.b.svc:9080"):
        settings, none = read_settings({key: usual})
        assert (settings.admission.scheduler_address, none) == (usual, [])


def test_all_problems_come_together_and_each_once() -> None:
    values = {
        "admissionController.filtering.generateUniqueAppId": "maybe",
        "admissionController.accessControl.externalUsers": "^a(",
        "log.core.level": "loud",
        "service.dispatchTimeout": "soon",
    }
    settings, problems = read_settings(values)
    assert settings == ShimSettings()
    assert [problem.path for problem in problems] == sorted(values)
    assert "'^a(' is no regular expression in the syntax of RE2 (missing ): ^a()" in problems[0].message


def test_levels_of_logs_by_area() -> None:
    settings, problems = read_settings(
        {"log.level": "ERROR", "log.core.level": "1", "log.shim.x.level": "-1"}
    )
    assert problems == []
    assert settings.logs == ShimLogLevels("error", {"core": "warning", "shim.x": "debug"})


def test_known_keys() -> None:
    for key in (
        "service.clusterId",
        "event.maxStreams",
        "log.level",
        "log.a.b.level",
        "health.checkInterval",
    ):
        assert is_known(key), key
    assert not is_known("service.clusterID")
    assert nearest("service.clusterID") == ", did you mean 'service.clusterId'?"
    assert nearest("events.maxStreams") == ", did you mean 'event.maxStreams'?"
    assert nearest("something else") == ""


def test_the_reference_page_has_every_key() -> None:
    start, end = "<!-- keys -->\n\n", "\n<!-- end of keys -->"
    table = PAGE.read_text("utf-8").partition(start)[2].partition(end)[0]
    assert table == reference_table(), f"replace the table in {PAGE.name} by reference_table()"
