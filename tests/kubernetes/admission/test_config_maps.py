"""Validation of the scheduler's ConfigMaps."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import ssl
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from aiohttp import ClientSession, TCPConnector, web
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.core.kit import RM
from tests.rest.kit import Rest
from tests.rest.served.test_rest_server import serving
from yunikorn_kubernetes.admission.config_map_validation import (
    ConfigMapVerdict,
    RestScheduler,
    review_config_map,
)
from yunikorn_kubernetes.admission.reviews import ObjectKind, Request, ReviewAnswer
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_rest.rest_server import ServerLimits

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
    *,
    required: bool = False,
) -> ReviewAnswer:
    content = {"metadata": {"name": name}, "data": data}
    request = Request("1", ObjectKind(kind=kind), "CREATE", namespace, name, object=content)
    asked = scheduler or Validator()
    return asyncio.run(review_config_map(request, "yunikorn", known or {}, asked, required=required))


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


def test_config_map_without_a_configuration_needs_no_scheduler() -> None:
    scheduler = Validator(ConfigMapVerdict(unasked="nobody is there"))
    assert review({"log.level": "INFO"}, scheduler=scheduler, required=True) == ReviewAnswer(allowed=True)
    assert scheduler.asked == []


@pytest.mark.parametrize("required", [False, True])
def test_configuration_that_cannot_be_validated_is_accepted_or_refused(required: bool) -> None:
    scheduler = Validator(ConfigMapVerdict(unasked="nobody is there"))
    answer = review({"queues.yaml": "x"}, scheduler=scheduler, required=required)
    assert answer.allowed is not required
    assert (answer.reason, answer.warnings) == (
        ("nobody is there", ()) if required else ("", ("nobody is there",))
    )


def test_warnings_reach_the_user() -> None:
    answer = review({"service.placeholderImag": "x"})
    assert answer.allowed
    assert "did you mean 'service.placeholderImage'" in answer.warnings[0]


def ask_over_http(
    status: int, body: str, token_file: Path | None = None, tls: ssl.SSLContext | None = None
) -> tuple[ConfigMapVerdict, str]:
    """Let a server with this answer validate the text `abc`; return the verdict and what the server got.

    The authorities of the client are those of the environment.
    """
    got: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        credentials = request.headers.get("authorization", "")
        got.append(f"{request.path} {await request.text()} {credentials}".strip())
        return web.Response(status=status, text=body)

    async def run() -> ConfigMapVerdict:
        application = web.Application()
        application.add_routes([web.post("/ws/v1/validate-conf", answer)])
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        connector = TCPConnector(ssl=ssl.create_default_context())
        try:
            async with ClientSession(connector=connector) as session:
                address = f"{'https://' if tls else ''}127.0.0.1:{runner.addresses[0][1]}"
                return await RestScheduler(session, address, token_file).validate("abc")
        finally:
            await runner.cleanup()

    return asyncio.run(run()), "".join(got)


def test_scheduler_is_asked_over_rest() -> None:
    verdict, got = ask_over_http(200, json.dumps({"allowed": True, "reason": ""}))
    assert verdict == ConfigMapVerdict()
    assert got == "/ws/v1/validate-conf abc"


def test_scheduler_is_asked_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(file)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    body = json.dumps({"allowed": True})
    untrusted, got = ask_over_http(200, body, tls=tls)
    assert ("its certificate is not trusted, see SSL_CERT_FILE" in untrusted.unasked, got) == (True, "")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert ask_over_http(200, body, tls=tls) == (ConfigMapVerdict(), "/ws/v1/validate-conf abc")


def test_the_token_of_the_file_is_sent_and_a_missing_one_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    verdict, got = ask_over_http(200, json.dumps({"allowed": True}), file)
    assert (verdict.unasked, got) == ("", "/ws/v1/validate-conf abc Bearer secret")
    refused, _ = ask_over_http(401, "{}")
    assert refused.unasked.endswith("answered with status 401: see --token-file")


def test_an_unreadable_token_is_the_reason_why_the_scheduler_was_not_asked(tmp_path: Path) -> None:
    async def run() -> ConfigMapVerdict:
        async with ClientSession() as session:
            return await RestScheduler(session, "127.0.0.1:1", tmp_path / "none").validate("abc")

    assert "No such file" in asyncio.run(run()).unasked


def test_reason_of_the_scheduler_is_the_problem() -> None:
    verdict, _ = ask_over_http(200, json.dumps({"allowed": False, "reason": "line 1: wrong\nline 2: wrong"}))
    assert verdict.problems == ("line 1: wrong\nline 2: wrong",)


@pytest.mark.parametrize(
    ("status", "body"), [(503, "{}"), (200, "no json"), (200, "[]"), (200, '{"allowed": "yes"}')]
)
def test_an_answer_that_is_no_validation_counts_as_none(status: int, body: str) -> None:
    verdict, _ = ask_over_http(status, body)
    assert verdict.problems == ()
    assert "was not validated" in verdict.unasked


def test_scheduler_that_is_away_is_a_warning() -> None:
    async def run() -> ConfigMapVerdict:
        async with ClientSession() as session:
            return await RestScheduler(session, "127.0.0.1:1").validate("abc")

    assert "could not be asked" in asyncio.run(run()).unasked


@attrs.frozen
class ServiceNames(AbstractResolver):
    """DNS of a cluster in which every name leads to this machine, as a proxy beside the scheduler does."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = ResolveResult(
            hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0
        )
        return [found]

    async def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("hosts", [("127.0.0.1",), ("127.0.0.1", "elsewhere.example"), ()], ids=str)
@pytest.mark.parametrize(
    ("text", "allowed"), [("partitions: [{name: default, queues: []}]", True), ("partitions: 5", False)]
)
def test_a_scheduler_is_asked_under_the_name_of_its_service(
    hosts: tuple[str, ...], text: str, allowed: bool
) -> None:
    """REST on a loopback address behind a service, with and without `--rest-host`, and on all addresses."""

    async def run() -> ConfigMapVerdict:
        connector = TCPConnector(resolver=ServiceNames())
        async with (
            serving(Rest(RM()).app, ServerLimits(), hosts) as server,
            ClientSession(connector=connector) as session,
        ):
            if hosts:
                request = (
                    b"GET /ws/v1/clusters HTTP/1.1\r\nHost: yunikorn-service\r\nConnection: close\r\n\r\n"
                )
                assert b" 421 " in await server.send(request)
            return await RestScheduler(session, f"yunikorn-service:{server.port}").validate(text)

    verdict = asyncio.run(run())
    assert verdict.unasked == ""
    assert (verdict.problems == ()) is allowed
