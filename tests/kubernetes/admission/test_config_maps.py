"""Validation of the scheduler's ConfigMaps."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from typing import Any

import pytest
from aiohttp import ClientSession, web
from yunikorn_kubernetes.admission.config_map_validation import (
    ConfigMapVerdict,
    RestScheduler,
    review_config_map,
)
from yunikorn_kubernetes.admission.reviews import ObjectKind, Request, ReviewAnswer
from yunikorn_kubernetes.objects import ConfigMap

Json = dict[str, Any]


class Validator:
    """Scheduler that remembers what it was asked."""

    def __init__(self, verdict: ConfigMapVerdict | None = None) -> None:
        self.verdict = verdict or ConfigMapVerdict()
        self.asked: list[str] = []

    async def validate(self, text: str) -> ConfigMapVerdict:
        self.asked.append(text)
        return self.verdict


def review(
    data: Json,
    name: str = "yunikorn-configs",
    namespace: str = "yunikorn",
    scheduler: Validator | None = None,
    known: dict[str, ConfigMap] | None = None,
    kind: str = "ConfigMap",
) -> ReviewAnswer:
    content = {"metadata": {"name": name}, "data": data}
    request = Request("1", ObjectKind(kind=kind), "CREATE", namespace, name, object=content)
    return asyncio.run(review_config_map(request, "yunikorn", known or {}, scheduler or Validator()))


def test_all_problems_are_listed() -> None:
    scheduler = Validator(ConfigMapVerdict(problems=("line 3: unknown queue",)))
    data = {"queues.yaml": "x", "service.disableGangScheduling": "maybe", "kubernetes.qps": "many"}
    answer = review(data, scheduler=scheduler)
    assert not answer.allowed
    for part in ("kubernetes.qps", "service.disableGangScheduling", "line 3: unknown queue"):
        assert part in answer.reason
    assert len(answer.reason.splitlines()) == 3
    assert scheduler.asked == ["x"]


def test_both_maps_are_validated_together() -> None:
    scheduler = Validator()
    known = {"yunikorn-configs": ConfigMap(data={"queues.yaml": "mine"})}
    assert review({"queues.yaml": "default"}, "yunikorn-defaults", scheduler=scheduler, known=known).allowed
    assert scheduler.asked == ["mine"]


@pytest.mark.parametrize(
    ("name", "namespace", "kind"),
    [("other", "yunikorn", "ConfigMap"), ("yunikorn-configs", "lab", "ConfigMap"), ("a", "yunikorn", "Pod")],
)
def test_other_objects_are_left_alone(name: str, namespace: str, kind: str) -> None:
    scheduler = Validator(ConfigMapVerdict(problems=("wrong",)))
    assert review({}, name, namespace, scheduler, kind=kind).allowed
    assert scheduler.asked == []


def test_compressed_entries_are_decompressed() -> None:
    scheduler = Validator()
    packed = base64.b64encode(gzip.compress(b"abc")).decode()
    content = {"metadata": {"name": "yunikorn-configs"}, "binaryData": {"queues.yaml.gz": packed}}
    request = Request(
        "1", ObjectKind(kind="ConfigMap"), "CREATE", "yunikorn", "yunikorn-configs", object=content
    )
    assert asyncio.run(review_config_map(request, "yunikorn", {}, scheduler)).allowed
    assert scheduler.asked == ["abc"]


def test_configuration_of_the_policy_group_is_validated() -> None:
    scheduler = Validator()
    review({"service.policyGroup": "blue", "blue.yaml": "b", "queues.yaml": "q"}, scheduler=scheduler)
    assert scheduler.asked == ["b"]


def test_object_that_is_no_config_map_is_refused() -> None:
    content = {"metadata": {"name": "yunikorn-configs"}, "data": {"a": 5}}
    request = Request(
        "1", ObjectKind(kind="ConfigMap"), "CREATE", "yunikorn", "yunikorn-configs", object=content
    )
    answer = asyncio.run(review_config_map(request, "yunikorn", {}, Validator()))
    assert not answer.allowed
    assert "$.data" in answer.reason


def test_warnings_reach_the_user() -> None:
    answer = review({"service.placeholderImag": "x"})
    assert answer.allowed
    assert "did you mean 'service.placeholderImage'" in answer.warnings[0]


def ask_over_http(status: int, body: str) -> tuple[ConfigMapVerdict, str]:
    """Let a server with this answer validate the text `abc`; return the verdict and what the server got."""
    got: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        got.append(f"{request.path} {await request.text()}")
        return web.Response(status=status, text=body)

    async def run() -> ConfigMapVerdict:
        application = web.Application()
        application.add_routes([web.post("/ws/v1/validate-conf", answer)])
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with ClientSession() as session:
                address = f"127.0.0.1:{runner.addresses[0][1]}"
                return await RestScheduler(session, address).validate("abc")
        finally:
            await runner.cleanup()

    return asyncio.run(run()), got[0]


def test_scheduler_is_asked_over_rest() -> None:
    verdict, got = ask_over_http(200, json.dumps({"allowed": True, "reason": ""}))
    assert verdict == ConfigMapVerdict()
    assert got == "/ws/v1/validate-conf abc"


def test_reason_of_the_scheduler_is_the_problem() -> None:
    verdict, _ = ask_over_http(200, json.dumps({"allowed": False, "reason": "line 1: wrong\nline 2: wrong"}))
    assert verdict.problems == ("line 1: wrong\nline 2: wrong",)


@pytest.mark.parametrize(
    ("status", "body"), [(503, "{}"), (200, "no json"), (200, "[]"), (200, '{"allowed": "yes"}')]
)
def test_without_a_validation_the_update_is_accepted_with_a_warning(status: int, body: str) -> None:
    verdict, _ = ask_over_http(status, body)
    assert verdict.problems == ()
    assert "was not validated" in verdict.warnings[0]
    assert len(verdict.warnings[0]) <= 250


def test_scheduler_that_is_away_is_a_warning() -> None:
    async def run() -> ConfigMapVerdict:
        async with ClientSession() as session:
            return await RestScheduler(session, "127.0.0.1:1").validate("abc")

    assert "could not be asked" in asyncio.run(run()).warnings[0]
