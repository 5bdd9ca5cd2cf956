"""The limit of open files: a service raises it as far as permitted, so that clients can connect."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.process import Start
from yunikorn_service.descriptors import raise_descriptor_limit

resource: Any = pytest.importorskip("resource")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the limits of another process")
def test_file_limit_is_raised_to_the_maximum(start: Start, config: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        service = start("--config", str(config), "--grpc", "127.0.0.1:0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE) == (before[1], before[1])
    service.wait_for(f"{before[1]} files may be open at a time, instead of 256")


def test_sufficient_limit_is_unchanged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.delattr(resource, "setrlimit")
    with caplog.at_level(logging.DEBUG):
        raise_descriptor_limit()
    assert caplog.messages == []


def test_refused_limit_is_logged_and_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_descriptor_limit()
    (reported,) = caplog.messages
    assert reported.startswith(
        "1024 files may be open at a time; the limit cannot be raised to 4096: not allowed"
    )
