"""The first hour of a new user: from an empty folder and the built wheel to a policy that decides.

All steps use commands that a reader of the documentation would type, in an environment with the installed
wheel. Nothing is downloaded: dependencies of the wheel come from the environment of these tests.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.child_processes import PYTEST_ENVIRONMENT

CHECKOUT = Path(__file__).parent.parent
OFFLINE = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@attrs.frozen
class Desk:
    """An environment and an empty folder."""

    environment: Path
    folder: Path

    def types(self, command: str, *, status: int = 0) -> str:
        """Run a command line in the folder, assert its exit status, and return its output."""
        program, *arguments = shlex.split(command)
        clean = {
            name: value
            for name, value in os.environ.items()
            if name
            not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "COLUMNS", "FORCE_COLOR", "PYTEST_ADDOPTS")
        }
        done = subprocess.run(
            [str(self.environment / "bin" / program), *arguments],
            cwd=self.folder,
            # Packages lent from here bring plugins of pytest that a newcomer does not have.
            env={**clean, **PYTEST_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def changes(self, path: str, old: str, new: str) -> None:
        """Edit a file in one place."""
        text = (self.folder / path).read_text("utf-8")
        assert text.count(old) == 1, f"{path}: {old}"
        (self.folder / path).write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, run_python: Run, can_build: None) -> Desk:
    """An environment with the built wheel, and an empty folder."""
    base = tmp_path_factory.mktemp("newcomer")
    source = base / "source"
    leave = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", "tests", "out", ".*", "*.so")
    shutil.copytree(CHECKOUT, source, ignore=leave)
    wheels = base / "wheels"
    built = run_python("-m", "pip", "wheel", *OFFLINE, "--wheel-dir", str(wheels), str(source))
    assert built.returncode == 0, built.stderr
    environment = base / "environment"
    venv.create(environment, with_pip=False)
    desk = Desk(environment, base / "empty")
    desk.folder.mkdir()
    (wheel,) = wheels.glob("yunikorn-*.whl")
    install(desk, run_python, str(wheel))
    # Not before: where yunikorn is installed for the tests, it would count as installed there, too.
    _lend(environment)
    return desk


def _lend(environment: Path) -> None:
    """Make the packages installed here importable there, and `pytest` a command there."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lent = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (environment / "lib" / version / "site-packages" / "lent.pth").write_text("\n".join(lent) + "\n", "utf-8")
    script = environment / "bin" / "pytest"
    script.write_text(f"#!{environment / 'bin' / 'python'}\nimport pytest\nraise SystemExit(pytest.main())\n")
    script.chmod(0o755)


def install(desk: Desk, run_python: Run, *what: str) -> None:
    """Run `pip install WHAT` in the environment of the desk, from the folder of the desk."""
    python = str(desk.environment / "bin" / "python")
    done = run_python(
        "-m", "pip", "--python", python, "install", *OFFLINE, *what, cwd=desk.folder, PYTHONPATH=""
    )
    assert done.returncode == 0, done.stderr


def order(desk: Desk, config: str) -> list[str]:
    """Return two applications of one queue in the order of their first allocations under a configuration."""
    desk.types(f"yunikorn validate {config}")
    workload = "yunikorn-short-names/workload.yaml"
    desk.types(f"yunikorn simulate --config {config} --workload {workload} --out out --no-plots")
    decisions = map(json.loads, (desk.folder / "out" / "decisions.jsonl").read_text("utf-8").splitlines())
    placed = [decision["application"] for decision in decisions if decision.get("event") == "allocation"]
    return [app for app in dict.fromkeys(placed) if app in ("small", "large")]


def test_new_package_becomes_a_working_policy(desk: Desk, run_python: Run) -> None:
    assert list(desk.folder.iterdir()) == []
    where = desk.types("python -c 'import yunikorn; print(yunikorn.__file__)'")
    assert Path(where.strip()).is_relative_to(desk.environment)

    # Generate a package: it passes its own test at once.
    reported = desk.types("yunikorn plugins new app-sort short-names")
    assert "cd yunikorn-short-names" in reported
    config, module = (
        "yunikorn-short-names/queues.yaml",
        "yunikorn-short-names/yunikorn_short_names/__init__.py",
    )
    assert " passed" in desk.types("pytest -q yunikorn-short-names")
    assert "no application sort policy is called 'short-names'" in desk.types(
        f"yunikorn validate {config}", status=1
    )

    # Install the package; it is listed and decides.
    install(desk, run_python, "-e", "./yunikorn-short-names")
    assert "short-names" in desk.types("yunikorn plugins --kind app-sort")
    assert order(desk, config) == ["small", "large"]

    # Change its key: its contract still holds, its own test fails as it should, and decisions change.
    desk.changes(
        module, "return app.pending.get(self.resource, 0)", "return -app.pending.get(self.resource, 0)"
    )
    failed = desk.types("pytest -q yunikorn-short-names", status=1)
    assert "applications in order of their first allocation: large, small; expected: small, large" in failed
    assert "1 failed" in failed
    test = "yunikorn-short-names/tests/test_yunikorn_short_names.py"
    desk.changes(test, 'assert_order(cluster, "small", "large")', 'assert_order(cluster, "large", "small")')
    assert "failed" not in desk.types("pytest -q yunikorn-short-names")
    assert order(desk, config) == ["large", "small"]

    # The contract finds an invalid key, before it is used in any cluster.
    desk.changes(module, "return -app.pending.get(self.resource, 0)", "return float('nan')  # type: ignore")
    failed = desk.types("pytest -q yunikorn-short-names", status=1)
    assert "test_keys_have_a_total_order" in failed
    assert "does not equal itself" in failed
