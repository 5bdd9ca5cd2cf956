"""`yunikorn replay`: play a recording, or a file written by hand, into a new core.

Exit status: 0 when the replay has the responses in the file, 1 when a response differs, 2 when the call, the
file or the configuration cannot be used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yunikorn.config.load import load_config
from yunikorn.errors import ConfigError, printable
from yunikorn.framework.registry import Registry
from yunikorn.text import number_of
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of, read_config
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import name_of
from yunikorn_commands.input_source import InputError
from yunikorn_commands.load_plugins import LOAD_PLUGINS
from yunikorn_commands.output import echo, notes
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import CodePermission, trusting

if TYPE_CHECKING:
    from yunikorn.interface.messages import UpdateResponse
    from yunikorn_service.recording.recorded_entry import RecordedEntry
    from yunikorn_service.recording.replay_comparison import Counts
    from yunikorn_service.recording.replayer import Replay

DIFFERENT = 1


@click.command("replay")
@click.argument("files", type=INPUT, nargs=-1, required=True, metavar="FILE...")
@click.option("--config", type=INPUT, help="Replay with this queues.yaml for every RM (what-if).")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, in the recording's form."
)
@click.option("--load-plugins", "--plugins-from", "load_plugins", **LOAD_PLUGINS)
@click.option("--quiet", is_flag=True, help="Print no responses, only the summary.")
def command(
    files: tuple[Path, ...],
    config: Path | None,
    as_json: bool,
    load_plugins: tuple[Path | str, ...],
    quiet: bool,
) -> int:
    """Replay FILE in a new core on a virtual clock, and print every response in order.

    If a recording has several files, give all of them, oldest first.

    With the recorded configuration, the responses are compared with the recorded ones, and the first
    difference is printed. With another configuration the replay is a what-if. docs/replay.md describes
    the format.
    """
    with importing_extra("grpc", "to replay"):
        from yunikorn_service.recording.recording_reader import read_recording
        from yunikorn_service.recording.replayer import Replay
    registry = load_registry()
    text = None
    if config is None:
        # The recording does not have the folders of its files: they are looked up in the first one.
        folders = [one for one in load_plugins if isinstance(one, Path)]
        code = CodePermission.of_data(folders[0] if folders else None, load_plugins)
        registry = registry.permitting(code)
    else:
        registry = trusting(registry, folder_of(config))
        text = _read_config(config, registry)
    recording = read_recording(*files)
    notes(recording.remarks)
    printer = _Printer(as_json, quiet)
    replay = Replay(recording.lines, registry, printer, text)
    replay.run()
    then = _counted(line.content for line in recording.lines if line.kind == "response")
    printer.sum_up(replay, then)
    return DIFFERENT if replay.comparison.first is not None else 0


def _read_config(path: Path, registry: Registry) -> str:
    text = read_config(path, registry)
    try:
        load_config(text, registry)
    except ConfigError as error:
        raise InputError(name_of(path), error.problems) from error
    return text


def _counted(responses: Iterable[UpdateResponse]) -> Counts:
    from yunikorn_service.recording.replay_comparison import Counts

    counts = Counts()
    for response in responses:
        counts.add(response)
    return counts


class _Printer:
    """Listener that prints the events of a replay."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self._as_json, self._quiet = as_json, quiet
        self._now = _counted(())
        self._refused = 0

    def on_begin(self, at: int, line: RecordedEntry | None) -> None:
        """Print the start of a core, to separate the cores of a file."""
        if line is not None and not self._quiet:
            if self._as_json:
                self._print(at, {"recording": {"start": line.content.start}})
            else:
                echo(f"a core starts at {line.content.start}")

    def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
        """Print a response."""
        from yunikorn_service.recording.replay_comparison import response_lines
        from yunikorn_service.wire import v0_11
        from yunikorn_service.wire.json_form import to_json

        self._now.add(response)
        if self._quiet:
            return
        if self._as_json:
            self._print(at, {"rm": rm_id, "response": to_json(v0_11.UPDATE_RESPONSE.to_wire(response))})
            return
        for line in response_lines(response):
            echo(f"{_seconds(at):>14} s  {printable(rm_id)}  {line}")

    def on_refused(self, at: int, line: RecordedEntry, reason: str) -> None:
        """Print a call that the core refused."""
        self._refused += 1
        self._remark(at, line, f"{line.kind} was refused: {reason}", "refused")

    def on_note(self, at: int, line: RecordedEntry, remark: str) -> None:
        """Print a remark about something that cannot be played."""
        self._remark(at, line, remark, "note")

    def _remark(self, at: int, line: RecordedEntry, text: str, kind: str) -> None:
        if self._as_json and not self._quiet:
            where = {"file": line.file} if line.file else {}
            self._print(at, {kind: {**where, "line": line.number, "text": text}})
        else:
            echo(f"note: {printable(line.place)}: {printable(text)}", err=True)

    @staticmethod
    def _print(at: int, content: dict[str, Any]) -> None:
        echo(f'{{"at": {_seconds(at)}, {json.dumps(content, ensure_ascii=False)[1:]}')

    def sum_up(self, replay: Replay, then: Counts) -> None:
        """Print a summary of the replay."""
        comparison, replayed_rm = replay.comparison, replay.replayed_rm
        if self._as_json:
            first = comparison.first
            echo(
                json.dumps(
                    {
                        "replay": {
                            **_of(self._now),
                            "identical": _verdict(replay),
                            "difference": None if first is None else str(first),
                            "beyond": comparison.beyond,
                        }
                    }
                )
            )
            return
        echo(str(self._now))
        if replayed_rm is not None:
            if then.responses:
                echo(f"recorded: {then}")
            if replayed_rm.unknown:
                echo(f"{replayed_rm.unknown} recorded releases had no allocation in the replay")
        elif comparison.first is not None:
            echo(f"differs from the recording, first in {printable(str(comparison.first))}")
        elif comparison.is_possible:
            echo(f"identical to the recording: {comparison.equal} responses")
        if comparison.beyond:
            behind = number_of(comparison.beyond, "response")
            echo(f"the recording is cut off: {behind} after its end could not be compared")
        if replay.answers.unknown:
            echo(f"{replay.answers.unknown} predicate calls have no recorded answer: all nodes pass")


def _of(counts: Counts) -> dict[str, int]:
    import attrs

    return attrs.asdict(counts)


def _verdict(replay: Replay) -> bool | None:
    comparison = replay.comparison
    return comparison.first is None if comparison.is_possible else None


def _seconds(at: int) -> str:
    from yunikorn_service.recording.recorded_values import write_seconds

    return write_seconds(at)
