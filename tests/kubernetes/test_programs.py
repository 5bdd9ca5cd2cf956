"""Builds of the test cluster's programs, with a script in the place of Go."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.kubernetes.cluster import PROGRAMS, BuildError, build, missing
from tests.kubernetes.cluster.__main__ import main
from tests.kubernetes.cluster.programs import CACHE_VARIABLE, cache_folder

CHECKOUT = Path(__file__).parent.parent.parent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder, which is in force."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def calls(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `go` on the PATH that writes its arguments to a file, and the programs it is asked for."""
    return go(tmp_path, monkeypatch, 'while [ "$1" != -o ]; do shift; done; echo program >"$2"')


def go(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put a `go` on the PATH; return the file with the arguments of its calls."""
    programs = folder / "path"
    programs.mkdir()
    file = programs / "go"
    file.write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\n{script}\n', "utf-8")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder / "calls"


def test_missing_programs_are_built_once(calls: Path, cache: Path) -> None:
    assert missing() == list(PROGRAMS)
    lines: list[str] = []
    build(["etcd", "kwok"], report=lines.append)
    assert missing() == [name for name in PROGRAMS if name not in ("etcd", "kwok")]
    assert [line.split()[1] for line in lines] == ["etcd", "kwok"]
    build(["etcd", "kwok"], report=lines.append)
    assert len(calls.read_text("utf-8").splitlines()) == len(lines) == 2
    for name in ("etcd", "kwok"):
        assert PROGRAMS[name].path.read_text("utf-8") == "program\n"
        assert PROGRAMS[name].path.is_relative_to(cache)


def test_names_of_programs_contain_their_versions() -> None:
    versions = {name: program.version for name, program in PROGRAMS.items()}
    assert versions["kube-apiserver"] == versions["kube-scheduler"]
    assert versions["kube-apiserver"].startswith("1.36.")
    for program in PROGRAMS.values():
        assert program.path.name.startswith(f"{program.name}-{program.version}-")


def test_kubernetes_reports_its_version(calls: Path) -> None:
    build(["etcd", "kube-apiserver"])
    first, second = calls.read_text("utf-8").splitlines()
    assert "gitVersion" not in first
    assert f"version.gitVersion=v{PROGRAMS['kube-apiserver'].version} " in second
    assert "version.gitMinor=36" in second


def test_simultaneous_builds_share_the_work(calls: Path) -> None:
    lines: list[str] = []
    threads = [threading.Thread(target=lambda: build(["etcd"], report=lines.append)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls.read_text("utf-8").splitlines()) == 1
    assert sum("building etcd" in line for line in lines) == 1


def test_missing_go_is_one_line(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["build", "etcd"]) == 1
    assert capsys.readouterr().err == (
        "error: the test cluster is built with Go 1.26 or newer, and there is no `go` on the PATH: "
        "see https://go.dev/dl\n"
    )


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (
            "main.go:9:2: dial tcp: lookup proxy.golang.org: no such host",
            "the Go module proxy cannot be reached",
        ),
        ("noise\nmain.go:3: syntax error", "main.go:3: syntax error"),
        ("", "`go build` failed without a message"),
    ],
)
def test_a_failed_build_is_one_line_with_its_cause(
    output: str, cause: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(tmp_path, monkeypatch, f"printf '{output}'; exit 1")
    with pytest.raises(BuildError) as raised:
        build(["etcd"])
    version = PROGRAMS["etcd"].version
    assert str(raised.value) == f"cannot build etcd {version}: {cause} (all output: {cache / 'etcd.log'})"
    assert missing(["etcd"]) == ["etcd"]
    assert (cache / "etcd.log").read_text("utf-8") == output.replace("\\n", "\n")


def test_cache_folder_is_outside_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "yunikorn-test-cluster"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "yunikorn-test-cluster"
    assert not cache_folder().is_relative_to(CHECKOUT)


def test_builds_need_nothing_but_python(cache: Path) -> None:
    # `.ci/run` builds before anything is installed; -S leaves out the installed packages.
    command = [sys.executable, "-S", "-B", "-m", "tests.kubernetes.cluster", "path", "etcd"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=clean, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(PROGRAMS["etcd"].path), "")


def test_unknown_programs_and_clusters_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["build", "kubelet"])
    assert f"no program kubelet: choose from {', '.join(PROGRAMS)}\n" in capsys.readouterr().err
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["nodes", "3"]) == 1
    assert capsys.readouterr().err == "error: set KUBECONFIG to the file that `up` has printed\n"


def test_ci_builds_the_cluster_and_requires_it() -> None:
    script = (CHECKOUT / ".ci" / "run").read_text("utf-8").splitlines()
    assert "export YUNIKORN_TEST_CLUSTER=required" in script
    assert "python3 -m tests.kubernetes.cluster build" in script
