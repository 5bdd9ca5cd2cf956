"""Checks of docs/shims.md: its code runs against a service, and its names and bounds are correct."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.client.service_process import Service
from yunikorn.interface import constants
from yunikorn.interface.callback import OPTIONAL, ResourceManagerCallback
from yunikorn.interface.checks import LONGEST_NAME
from yunikorn.interface.messages import PredicatesArgs
from yunikorn_service import client
from yunikorn_service.client.client_options import doubling
from yunikorn_service.service_settings import DEFAULT_ADDRESS, ServerSettings

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "shims.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`yunikorn serve` with the configuration of the page."""
    (config,) = blocks("yaml")
    with Service(tmp_path_factory.mktemp("docs"), config=config) as served:
        yield served


def test_code_of_the_page_runs_in_order(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert DEFAULT_ADDRESS in PAGE
    names: dict[str, Any] = {"__name__": "docs"}
    reported = []
    for block in blocks("python"):
        exec(compile(block.replace(DEFAULT_ADDRESS, service.address), "docs/shims.md", "exec"), names)
        reported.append(capsys.readouterr().out)
    assert len(reported) >= 5
    assert reported[0] == next(text for text in blocks("text") if text.startswith("running: "))
    assert reported[1] == "True\n"
    args = PredicatesArgs("x", "node-7")
    assert names["ChoosyShim"]().predicates(args) == "its disk is broken"


def test_table_of_callbacks_is_complete() -> None:
    table = PAGE.partition("## Callbacks\n")[2].partition("\n\n```")[0]
    methods = re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)
    assert sorted(methods) == sorted(["recv_update_response", *OPTIONAL])
    assert all(hasattr(ResourceManagerCallback, method) for method in methods)


def test_page_names_all_errors_of_the_client() -> None:
    table = PAGE.partition("| error | when |")[2].partition("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    ours = {name for name in dir(client) if isinstance(getattr(client, name), type)}
    errors = {name for name in ours if issubclass(getattr(client, name), client.ClientError)}
    assert errors - {"ClientError"} <= named


def test_numbers_on_the_page_are_actual() -> None:
    settings = ServerSettings()
    assert f"at most {settings.limits.message_bytes >> 20} MiB" in PAGE
    assert f"when {settings.limits.waiting:,} entries wait" in PAGE
    assert f"at most {settings.patience.callback:g} seconds" in PAGE
    assert settings.patience.silence == 30
    assert settings.patience.session == 300
    assert "for 5 minutes" in PAGE
    assert f"at most\n  {LONGEST_NAME:,} bytes" in PAGE
    delays = doubling()
    first = [next(delays) for _ in range(10)]
    assert f"after {first[0]:g}, {first[1]:g} ... {first[-1]:g} s" in PAGE


def test_tags_on_the_page_are_those_of_the_interface() -> None:
    assert f"`{constants.FORCE_TAG}`" in PAGE
    assert f"`{constants.REQUIRED_NODE_TAG}`" in PAGE
    assert f"(tag `{constants.FOREIGN_TAG}`)" in PAGE
