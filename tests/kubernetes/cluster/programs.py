"""Programs of the test cluster, built from their Go modules at fixed versions.

The modules are in this folder (`etcd`, `helm`, `kwok`) and in `tests/kubernetes` (`go.mod` for everything of
Kubernetes). `build` puts the programs into a cache folder outside the checkout, under names that contain the
version and a digest of the module's files. A build that finds them does nothing, and several checkouts share
the folder.

This module imports nothing outside the standard library: `.ci/run` calls it before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = Path(__file__).parent.parent
CACHE_VARIABLE = "YUNIKORN_TEST_CLUSTER_CACHE"
"""Environment variable with the folder of programs and of Go's caches."""
NOT_BUILT = "`python -m tests.kubernetes.cluster build` builds the test cluster, once (minutes, needs Go)"
"""Reason of tests that are skipped."""
_NETWORK = re.compile(r"dial tcp|no such host|proxyconnect|i/o timeout|connection refused|GOPROXY=off")


class BuildError(Exception):
    """A program cannot be built here; the message is one line that says why."""


@dataclass(frozen=True)
class Program:
    """A program of the test cluster."""

    name: str
    module: Path
    """Folder with the `go.mod`."""
    package: str
    """Go package of the program: a path below the module (`./reference`), or a package of a requirement."""
    versioned_by: str
    """The requirement whose version is the program's version."""
    stamp: bool = False
    """True if the version is linked into the program: Kubernetes reports v0.0.0 otherwise."""

    @property
    def version(self) -> str:
        """Version of the program, from the module's `go.mod`."""
        text = (self.module / "go.mod").read_text("utf-8")
        match = re.search(rf"^(?:require)?\s*{re.escape(self.versioned_by)} v(\S+)", text, re.MULTILINE)
        if match is None:
            raise BuildError(f"{self.module / 'go.mod'} does not require {self.versioned_by}")
        return match[1]

    @property
    def path(self) -> Path:
        """File of the built program."""
        return cache_folder() / "bin" / f"{self.name}-{self.version}-{self._digest()}"

    def _digest(self) -> str:
        files = [self.module / "go.mod", self.module / "go.sum"]
        if self.package.startswith("."):
            files += sorted((self.module / self.package).glob("*.go"))
        whole = hashlib.sha256()
        for file in files:
            whole.update(file.read_bytes())
        return whole.hexdigest()[:8]

    def linker_flags(self) -> str:
        """Return the flags that link the version into the program."""
        if not self.stamp:
            return ""
        major, minor, _ = self.version.split(".", 2)
        values = {"gitVersion": f"v{self.version}", "gitMajor": major, "gitMinor": minor}
        return " ".join(f"-X k8s.io/component-base/version.{key}={text}" for key, text in values.items())


def _of_kubernetes(name: str) -> Program:
    return Program(name, KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", "k8s.io/kubernetes", stamp=True)


PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", KUBERNETES / "cluster" / "etcd", ".", "go.etcd.io/etcd/server/v3"),
        Program("kwok", KUBERNETES / "cluster" / "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"),
        Program("helm", KUBERNETES / "cluster" / "helm", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3"),
        _of_kubernetes("kube-apiserver"),
        _of_kubernetes("kube-controller-manager"),
        _of_kubernetes("kube-scheduler"),
        Program("reference", KUBERNETES, "./reference", "k8s.io/kubernetes"),
    )
}
"""All programs by name, quick ones first."""


def cache_folder() -> Path:
    """Return the folder of programs and of Go's caches, which is outside the checkout."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "yunikorn-test-cluster"


def missing(names: Iterable[str] = PROGRAMS) -> list[str]:
    """Return the programs among `names` that have not been built."""
    return [name for name in names if not PROGRAMS[name].path.is_file()]


def build(names: Iterable[str] = PROGRAMS, *, report: Callable[[str], None] = lambda line: None) -> None:
    """Build the missing programs among `names`; `report` receives a line per program.

    Several processes may build at the same time: one builds, the others wait and find the programs.
    Raise `BuildError` if Go or the network is missing, or if a program does not compile.
    """
    names = list(names)
    if not missing(names):
        return
    if shutil.which("go") is None:
        raise BuildError(
            "the test cluster is built with Go 1.26 or newer, and there is no `go` on the PATH: see https://go.dev/dl"
        )
    with _locked(cache_folder(), report):
        for name in missing(names):
            _build(PROGRAMS[name], report)


@contextmanager
def _locked(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process is building the programs: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(program: Program, report: Callable[[str], None]) -> None:
    folder = cache_folder()
    report(f"building {program.name} {program.version} (up to 5 minutes with empty caches)")
    target = program.path
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}")
    log = folder / f"{program.name}.log"
    environment = {
        **os.environ,
        "GOMODCACHE": str(folder / "mod"),
        "GOCACHE": str(folder / "build"),
        # Without -modcacherw, nothing but `go clean` can delete the folder.
        "GOFLAGS": "-buildvcs=false -modcacherw",
        "GOWORK": "off",
    }
    command = ["go", "build", "-trimpath", "-ldflags", program.linker_flags(), "-o", str(unfinished)]
    with log.open("w") as output:
        done = subprocess.run(
            [*command, program.package],
            cwd=program.module,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        text = log.read_text("utf-8", errors="replace")
        cause = "the Go module proxy cannot be reached" if _NETWORK.search(text) else _last_line(text)
        raise BuildError(f"cannot build {program.name} {program.version}: {cause} (all output: {log})")
    unfinished.replace(target)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "`go build` failed without a message"
