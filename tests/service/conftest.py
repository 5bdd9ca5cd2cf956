"""Fixtures of the service tests: services in processes, and a configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.kit import configuration
from tests.service.process import Service, Start

SMALL = configuration({"name": "a"})


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts services; they are ended after the test."""
    services: list[Service] = []

    def begin(*arguments: str) -> Service:
        services.append(Service(*arguments))
        return services[-1]

    yield begin
    for service in services:
        service.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the path of a configuration in a folder of its own."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "queues.yaml").write_text(SMALL)
    return folder / "queues.yaml"
