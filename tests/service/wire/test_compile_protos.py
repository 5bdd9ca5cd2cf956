"""The generated classes of the wire, and the command that checks whether they are current."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn_service.wire import compile_protos


def test_generated_modules_match_the_protos(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_protos.main(["--check"]) == 0, capsys.readouterr().err


def test_changed_proto_is_detected_and_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    protos, generated = tmp_path / "proto", tmp_path / "generated"
    shutil.copytree(compile_protos.PROTOS, protos)
    shutil.copytree(compile_protos.GENERATED, generated, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compile_protos, "PROTOS", protos)
    monkeypatch.setattr(compile_protos, "GENERATED", generated)
    text = (protos / "si_current.proto").read_text("utf-8")
    (protos / "si_current.proto").write_text(
        text.replace("string nodeID = 1;", "string nodeID = 1;\n  string rack = 9;"), "utf-8"
    )
    (generated / "gone_pb2.py").write_text("", "utf-8")
    assert compile_protos.main(["--check"]) == 1
    reported = capsys.readouterr().err
    assert [line.split()[0] for line in reported.splitlines()] == [
        "generated/gone_pb2.py",
        "generated/si_current.binpb",
        "generated/si_current_pb2.pyi",
    ]
    assert compile_protos.COMMAND in reported
    assert compile_protos.main([]) == 0
    assert compile_protos.main(["--check"]) == 0
    assert "rack: str" in (generated / "si_current_pb2.pyi").read_text("utf-8")
    assert not (generated / "gone_pb2.py").exists()


def test_invalid_proto_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.proto").write_text('syntax = "proto3";\nmessage A { string a = ; }\n', "utf-8")
    monkeypatch.setattr(compile_protos, "PROTOS", tmp_path)
    assert compile_protos.main([]) == 2
    reported = capfd.readouterr().err
    assert "broken.proto:2" in reported
    assert f"the files of {tmp_path} cannot be compiled" in reported


def test_own_and_published_messages_coexist_in_one_process(
    published: Path, tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Names and the extension 1059 would clash in one pool; a shim's author may import both."""
    for layout in ("si_v0_11", "si_current"):
        own = tmp_path / layout
        own.mkdir()
        made = run_python(
            "-m", "grpc_tools.protoc", f"-I{published}", f"--python_out={own}", f"{layout}.proto"
        )
        assert made.returncode == 0, made.stderr
        done = run_python(
            "-c",
            f"import {layout}_pb2 as theirs\n"
            "from yunikorn_service.wire.generated import si_v0_11_pb2 as ours\n"
            "data = theirs.AcceptedNode(nodeID='n1').SerializeToString()\n"
            "print(ours.AcceptedNode.FromString(data).nodeID, theirs.AcceptedNode.DESCRIPTOR.full_name)",
            installed=own,
        )
        assert (done.stdout, done.stderr) == ("n1 si.v1.AcceptedNode\n", ""), os.fspath(own)
