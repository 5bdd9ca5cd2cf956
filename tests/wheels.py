"""Build the distributions of a release and try each in a new environment: `python -m tests.wheels [FOLDER]`.

The source distribution is built from the checkout, both wheels from the source distribution. Each of the
three is installed with its dependencies, and has to report its version and kind of build, check an example
configuration, and simulate an example.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
EXAMPLE = CHECKOUT / "examples" / "quickstart"
PURE, COMPILED = "pure Python", "compiled"


def run(*words: str | Path, **environment: str) -> str:
    """Run a command outside the checkout and return its output; exit if the command fails."""
    print("$", *words, flush=True)
    # PYTHONPATH could lead back to the sources of the checkout.
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "YUNIKORN_COMPILE")
    }
    done = subprocess.run(
        [str(word) for word in words],
        cwd=tempfile.gettempdir(),
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nexit status {done.returncode}: {' '.join(map(str, words))}")
    return done.stdout


def build(folder: Path) -> dict[Path, str]:
    """Build a source distribution and two wheels in `folder`; return the kind of build of each."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, CHECKOUT)
    source = only(folder.glob("yunikorn-*.tar.gz"))
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source)
    run(*pip)
    pure = only(folder.glob("*-py3-none-any.whl"))
    run(*pip, YUNIKORN_COMPILE="1")
    compiled = only(wheel for wheel in folder.glob("*.whl") if wheel != pure)
    return {source: PURE, pure: PURE, compiled: COMPILED}


def only(found: Iterable[Path]) -> Path:
    """Return the only file; exits if there are none or several."""
    files = list(found)
    if len(files) != 1:
        raise SystemExit(f"one file expected, found {[file.name for file in files]}")
    return files[0]


def try_out(distribution: Path, kind: str) -> None:
    """Install a distribution in a new environment, and run the command line there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        run(programs / "python", "-m", "pip", "install", "--quiet", distribution)
        yunikorn = programs / "yunikorn"
        shown = run(yunikorn, "--version").strip()
        expected = f"yunikorn {version()} ({kind})"
        if shown != expected:
            raise SystemExit(f"{distribution.name}: `yunikorn --version` prints '{shown}', not '{expected}'")
        run(yunikorn, "validate", EXAMPLE / "queues.yaml")
        workload = ("--config", EXAMPLE / "queues.yaml", "--workload", EXAMPLE / "workload.yaml")
        run(yunikorn, "simulate", *workload)


def version() -> str:
    """Return the version of the checkout."""
    found = re.search(r'__version__ = "(.+)"', (CHECKOUT / "yunikorn" / "__init__.py").read_text("utf-8"))
    assert found is not None
    return found[1]


def main() -> None:
    """Build into the folder that the command line names, `dist` by default."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    for old in folder.glob("yunikorn-*"):
        old.unlink()
    distributions = build(folder)
    for distribution, kind in distributions.items():
        try_out(distribution, kind)
    print(
        "built, installed and tried:",
        *(f"  {file.name} ({kind})" for file, kind in distributions.items()),
        sep="\n",
    )


if __name__ == "__main__":
    main()
