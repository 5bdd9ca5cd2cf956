"""Input of commands: standard input, pipes, devices, closed streams, and files that are none."""

from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.errors import UsageError
from yunikorn_commands import input_files
from yunikorn_commands.input_files import DASH, HeldInput, UnreadableInput, hold, read_input, unpacked

CHECKOUT = Path(__file__).parents[3]
QUICKSTART = CHECKOUT / "examples" / "quickstart"
CONFIG, WORKLOAD = str(QUICKSTART / "queues.yaml"), str(QUICKSTART / "workload.yaml")


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Content of standard input."""
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    return content


def give(stdin: io.BytesIO, content: bytes) -> None:
    """Put content into standard input."""
    stdin.write(content)
    stdin.seek(0)


# -- standard input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["validate", "-"], CONFIG),
        (["plugins", "--config", "-"], CONFIG),
        (["place", "--config", "-", "--user", "ann", "--queue", "root.research"], CONFIG),
        (["simulate", "--config", "-", "--workload", WORKLOAD], CONFIG),
        (["simulate", "--config", CONFIG, "--workload", "-"], WORKLOAD),
        (["compare", "--config", CONFIG, "--config", "-", "--workload", WORKLOAD, "--jobs", "1"], CONFIG),
    ],
)
def test_a_dash_is_standard_input(
    arguments: list[str], file: str, stdin: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    give(stdin, Path(file).read_bytes())
    assert main(arguments) in (0, 1)
    captured = capsys.readouterr()
    assert captured.out
    assert "Error" not in captured.err


def test_nodes_from_standard_input(stdin: io.BytesIO, capsys: pytest.CaptureFixture[str]) -> None:
    give(stdin, b"nodes: [{name: n, resources: {vcore: 1}}]\nsurplus: 1\n")
    assert main(["simulate", "--config", CONFIG, "--workload", WORKLOAD, "--nodes", "-"]) == 2
    assert "standard input: surplus (line 2, column 1): unknown key" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["simulate", "compare", "size", "replay", "validate", "place", "plugins"])
def test_problems_of_a_configuration_from_standard_input_name_it(
    command: str, stdin: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    give(stdin, b"partitions: [[[}\n")
    more = {
        "replay": [str(Path(__file__))],
        "size": ["--workload", WORKLOAD, "--target", "wait.max < 1h"],
        "place": ["--user", "ann"],
        "plugins": [],
        "validate": [],
    }.get(command, ["--workload", WORKLOAD])
    main([command, *([] if command == "validate" else ["--config"]), "-", *more])
    captured = capsys.readouterr()
    first, *_ = (captured.err or captured.out).splitlines()
    assert first.removeprefix("Error: ").startswith("standard input: "), first
    assert "line 1, column 16: this is not valid YAML" in captured.err + captured.out


def test_a_compressed_trace_from_standard_input_is_unpacked(
    stdin: io.BytesIO, capsys: pytest.CaptureFixture[str]
) -> None:
    give(stdin, gzip.compress(Path(WORKLOAD).read_bytes()))
    assert main(["simulate", "--config", CONFIG, "--workload", "-", "--json"]) == 0
    assert '"workload": "quickstart"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (["simulate", "--config", "-", "--workload", "-"], "--config has it already"),
        (["simulate", "--nodes", "-", "--workload", "-", "--config", CONFIG], "has it already"),
        (["place", "--config", "-", "--apps", "-"], "--config has it already"),
        (["validate", "-", "-"], "names it twice"),
        (["compare", "--config", "-", "--config", "-", "--workload", WORKLOAD], "names it twice"),
    ],
)
def test_standard_input_is_named_once(
    arguments: list[str], taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "standard input (-) can be read only once" in err
    assert taken in err


def test_closed_standard_input_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["validate", "-"]) == 2
    assert capsys.readouterr().err.startswith("Error: standard input: is closed")


def test_a_pipe_is_held_for_the_workers_of_a_comparison(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"content",))
    writer.start()
    held = hold(pipe)
    writer.join()
    assert isinstance(held, HeldInput)
    assert (read_input(held), read_input(held), str(held)) == (b"content", b"content", str(pipe))


def test_a_file_is_not_held(tmp_path: Path) -> None:
    assert hold(Path(CONFIG)) == Path(CONFIG)
    assert hold(tmp_path / "missing") == tmp_path / "missing"


# -- bounds -------------------------------------------------------------------------------------------


def test_an_endless_device_has_an_end() -> None:
    with pytest.raises(UnreadableInput, match=r"/dev/zero: is larger than 16 MiB, the maximum"):
        read_input(Path("/dev/zero"))
    with pytest.raises(UsageError, match=r"/dev/zero: is larger than 16 MiB"):
        hold(Path("/dev/zero"))


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_devices_are_one_clear_error(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--config", CONFIG, "--workload", "/dev/zero"]) == 2
    assert main([command, "--config", "/dev/zero", "--workload", WORKLOAD]) == 2
    assert main([command, "--config", "/dev/null", "--workload", WORKLOAD]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    large, _, empty = (line for line in found.err.splitlines() if line.startswith("Error: "))
    assert large == "Error: /dev/zero: is larger than 16 MiB, the maximum: is this the right file?"
    assert empty == "Error: /dev/null: is empty: expected a configuration with a partition"


def test_size_is_bounded_also_after_decompression(stdin: io.BytesIO, monkeypatch: pytest.MonkeyPatch) -> None:
    give(stdin, b"x" * (input_files.MIB + 1))
    with pytest.raises(UnreadableInput, match="standard input: is larger than 1 MiB"):
        read_input(DASH, input_files.MIB)
    half = gzip.compress(b"x" * (input_files.MIB // 2))
    assert len(unpacked(half + half, "f", input_files.MIB)) == input_files.MIB
    with pytest.raises(UnreadableInput, match="f: is larger than 1 MiB after decompression"):
        unpacked(half + half + gzip.compress(b"x"), "f", input_files.MIB)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], "is not complete"),
        (gzip.compress(b"x", mtime=0) + b"tail", "followed by other content"),
        (input_files.GZIP + b"nonsense, not a header", "not a gzip file"),
    ],
)
def test_broken_compression_is_named(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableInput, match=reason):
        unpacked(content, "f")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))
        with pytest.raises(UnreadableInput, match="cannot be read: it is a socket, not a file"):
            read_input(tmp_path / "s")
    with pytest.raises(UnreadableInput, match="cannot be read: it is a folder, not a file"):
        read_input(tmp_path)
    with pytest.raises(UnreadableInput, match="cannot be read: No such file or directory"):
        read_input(tmp_path / "missing")


# -- closed streams -----------------------------------------------------------------------------------

SCRIPT = "import sys; from yunikorn.cli.main import main; sys.exit(main())"


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["validate", CONFIG], 0),
        (["place", "--config", CONFIG, "--user", "ann"], 1),
        (["simulate", "--config", CONFIG, "--workload", WORKLOAD], 0),
        (["validate", "missing.yaml"], 2),
    ],
)
def test_only_a_lost_result_changes_the_status(streams: str, arguments: list[str], status: int) -> None:
    call = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, cwd=CHECKOUT, check=False)
    is_lost = not status and streams.startswith(">&-")
    assert done.returncode == (2 if is_lost else status)
    assert "Traceback" not in done.stderr
    assert ("standard output is closed" in done.stderr) == (is_lost and "2>" not in streams)


def test_a_file_does_not_get_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "import os, sys; from yunikorn_commands import command_group as shell; import click\n"
        "import types; from pathlib import Path\n"
        "from yunikorn_commands.default_commands import DEFAULT_COMMANDS, DefaultCommand\n"
        "module = sys.modules['yunikorn_lab.commands.fake'] = types.ModuleType('fake')\n"
        "def command():\n"
        "    with open(sys.argv[2], 'w') as file: os.write(1, b'x'); file.write(str(file.fileno()))\n"
        "module.command = click.command(context_settings={'ignore_unknown_options': True,"
        " 'allow_extra_args': True})(command)\n"
        "DEFAULT_COMMANDS['fake'] = DefaultCommand('A test.', 'lab.fake')\n"
        "sys.exit(shell.main())\n"
    )
    out = tmp_path / "out"
    call = ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-c", script, "fake", str(out)]
    subprocess.run(call, cwd=CHECKOUT, check=True)
    assert int(out.read_text()) > 2


def test_a_full_disk_is_one_error() -> None:
    call = ["sh", "-c", '"$@" >/dev/full', "sh", sys.executable, "-c", SCRIPT, "validate", CONFIG]
    done = subprocess.run(call, capture_output=True, text=True, cwd=CHECKOUT, check=False)
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")
