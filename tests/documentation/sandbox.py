"""A folder in which a page's commands run: with the project's commands and examples, and without network.

`yunikorn`, `python`, `pip` and `pytest` are on the path and in `.venv/bin`, as after the first command of the
README. They use the Python of the tests, with its importable packages. `pip install` accepts folders only,
and installs them into the sandbox without downloads. It accepts the examples by name, too; extras of yunikorn
must be installed already. `yunikorn serve` listens on a free port where the page names none, since the
default port may be in use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.child_processes import PYTEST_ENVIRONMENT
from tests.documentation.pages import CHECKOUT
from tests.fork_client import CHOICE
from tests.forks import write_python

HUNG = 300.0
"""Seconds after which a command counts as hanging: far more than any command needs on a busy machine."""
_PIP = """\
import os, subprocess, sys
from pathlib import Path

os.environ[CHOICE] = "pip"
words = [word for word in sys.argv[1:] if word not in ("-e", "--editable")]
if words[:1] != ["install"] or len(words) < 2:
    sys.exit("only `pip install` is known here")
for word in words[1:]:
    if word.partition("[")[0] == "yunikorn":
        continue
    if not Path(word).is_dir() and (Path("examples") / word).is_dir():
        word = f"examples/{word}"
    if not Path(word).is_dir():
        sys.exit(f"nothing is fetched here, and there is no folder {word}")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    here = ["--upgrade", "--target", INSTALLED]
    folder = str(Path(word).resolve())
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, *here, folder], check=True)
"""
_YUNIKORN = """\
import sys
from yunikorn.cli.main import main

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["serve"] and "--grpc" not in words:
        words += ["--grpc", "127.0.0.1:0"]
    if words[:1] == ["serve"] and "--rest" not in words:
        words += ["--rest", "off"]
    sys.exit(main(words))
"""


@attrs.frozen
class Output:
    """Output and exit status of a command."""

    text: str
    status: int


class Sandbox:
    """A folder for the commands of one page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._installed = folder / ".installed"
        self._installed.mkdir()
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        pip = folder / ".pip.py"
        pip.write_text(
            _PIP.replace("INSTALLED", repr(str(self._installed))).replace("CHOICE", repr(CHOICE)), "utf-8"
        )
        yunikorn = folder / ".yunikorn.py"
        yunikorn.write_text(_YUNIKORN, "utf-8")
        fixture = "" if _knows_our_fixture() else " -p yunikorn_pytest"
        for name, call in {
            "python": '"$@"',
            "python3": '"$@"',
            "yunikorn": f'{yunikorn} "$@"',
            "pip": f'{pip} "$@"',
            "pytest": '-m pytest "$@"',
        }.items():
            write_python(programs / name, call)
        (folder / "pytest.ini").write_text(f"[pytest]\naddopts = -p no:cacheprovider{fixture}\n", "utf-8")
        shutil.copytree(
            CHECKOUT / "examples",
            folder / "examples",
            ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".*"),
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment of all commands: the importable packages, these programs first, no colours."""
        path = [str(self._installed), *(str(Path(part).resolve()) for part in sys.path if part)]
        unwanted = ("COLUMNS", "FORCE_COLOR", "PYTHONWARNINGS")
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        return {
            **kept,
            **PYTEST_ENVIRONMENT,
            "HOME": str(self.folder),
            "NO_COLOR": "1",
            "PATH": f"{self.folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def lend(self, name: str, path: str) -> None:
        """Copy a file of the checkout under another name."""
        self.write(name, (CHECKOUT / path).read_text("utf-8"))

    @property
    def has_installed(self) -> bool:
        """True if the page has installed a package."""
        return any(self._installed.iterdir())

    def write(self, name: str, text: str) -> None:
        """Write a file that the page shows."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, "utf-8")

    def run(self, script: str, until: str = "") -> Output:
        """Run a script in a shell.

        With `until`, each line is a command in a shell of its own, interrupted once its output has that text.
        """
        if not until:
            return self._run(script, until)
        text, status = "", 0
        for command in script.replace("\\\n", " ").splitlines():
            output = self._run(command, until)
            text, status = text + output.text, output.status
            if status:
                break
        if until not in text:
            raise AssertionError(f"it ended without saying {until!r}:\n{text}")
        return Output(text, status)

    def _run(self, script: str, until: str) -> Output:
        with _interruptible():
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        hung = threading.Event()
        alarm = threading.Timer(HUNG, _end_hung, [shell, hung])
        with shell:
            try:
                alarm.start()
                output = Output(_listen(shell, until), _status(shell.wait()))
            finally:
                alarm.cancel()
                _signal(shell, signal.SIGKILL)
        if hung.is_set():
            raise AssertionError(f"{script.strip()} did not end within {HUNG:g} s; it said:\n{output.text}")
        return output


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Permit SIGINT in this program, although the tests themselves may ignore the signal.

    A shell that runs the tests in the background ignores SIGINT for them, and child processes inherit that.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _listen(shell: subprocess.Popen[str], until: str) -> str:
    """Return all output of a shell; interrupt the shell once, at the first line with `until`.

    There is no second attempt: it could hit the end of the command, or stop a service at once.
    """
    assert shell.stdout is not None
    output, interrupted = [], not until
    for line in shell.stdout:
        output.append(line)
        if not interrupted and until in line:
            interrupted = True
            _signal(shell, signal.SIGINT)
    return "".join(output)


def _end_hung(shell: subprocess.Popen[str], hung: threading.Event) -> None:
    hung.set()
    _signal(shell, signal.SIGKILL)


def _signal(shell: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to all processes that a shell runs, if any are left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.pid, number)


def _status(code: int) -> int:
    """Return the exit status as a shell reports it: 128 plus the number of the signal."""
    return code if code >= 0 else 128 - code


def _knows_our_fixture() -> bool:
    """Return True if pytest finds the fixture by itself: yunikorn is installed, not only importable."""
    from importlib.metadata import entry_points

    return any(point.value == "yunikorn_pytest" for point in entry_points(group="pytest11"))


def agrees(shown: str, output: str) -> bool:
    """Return True if the output equals what is shown, `...` being anything and trailing blanks ignored."""
    whole, pieces = _trimmed(output), _trimmed(shown).split("...")
    if len(pieces) == 1:
        return whole == pieces[0]
    ends = whole.startswith(pieces[0]) and whole.endswith(pieces[-1])
    between = whole[len(pieces[0]) : len(whole) - len(pieces[-1])]
    return ends and len(whole) >= len(pieces[0] + pieces[-1]) and _in_order(pieces[1:-1], between)


def includes(shown: str, output: str) -> bool:
    """Return True if the output contains the shown lines."""
    return _in_order(f"\n{_trimmed(shown)}\n".split("..."), f"\n{_trimmed(output)}\n")


def _in_order(pieces: list[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
