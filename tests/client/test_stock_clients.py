"""Clients without a line of ours, made from the published files, each in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.served import Service

HERE = Path(__file__).parent
STOCK = HERE / "stock"
PUBLISHED = HERE.parent / "wire" / "published"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`yunikorn serve`, at work."""
    with Service(tmp_path_factory.mktemp("stock")) as served:
        yield served


def test_a_client_that_protoc_made_is_served(service: Service, tmp_path: Path, run_python: Run) -> None:
    made = run_python(
        *("-m", "grpc_tools.protoc", f"-I{PUBLISHED}", f"--python_out={tmp_path}"),
        *(f"--grpc_python_out={tmp_path}", "si_v0_11.proto"),
    )
    assert made.returncode == 0, made.stderr
    done = run_python(str(STOCK / "one_stream.py"), service.address, installed=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "placed": [["x", "n1"]] * 3,
        "accepted": ["app"],
        "refused": ["lost"],
        "nodes": ["n1"],
        "released": [["app", "STOPPED_BY_RM"]],
        "end": "OK",
    }


def test_a_client_in_another_language_is_served(service: Service) -> None:
    node, modules = shutil.which("node"), os.environ.get("YUNIKORN_NODE_MODULES")
    if node is None or modules is None:
        pytest.skip(
            "needs node, and YUNIKORN_NODE_MODULES, a folder with @grpc/grpc-js and @grpc/proto-loader"
        )
    done = subprocess.run(
        [node, str(STOCK / "by_subject.js"), str(PUBLISHED / "si_current.proto"), service.address],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "NODE_PATH": modules},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "placed": [["x", "n1"], ["y", "n1"], ["z", "n1"]],
        "accepted": ["app"],
        "nodes": ["n1"],
        "released": [["x", "STOPPED_BY_RM"]],
        "ends": ["OK", "OK", "OK"],
    }
