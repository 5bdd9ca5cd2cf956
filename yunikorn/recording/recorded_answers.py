"""Recorded answers and configurations, which replace those of live RMs in a replay."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from yunikorn.errors import UsageError
from yunikorn.interface.configurations import Configurations
from yunikorn.interface.messages import UpdateConfigurationResponse
from yunikorn.recording.recorded_entry import RecordedEntry
from yunikorn.recording.recording_entries import GroupConfiguration, RecordedAnswer

Place = tuple[str, str, str, str, bool]
"""RM, application, allocation key, node, and True for an allocation or False for a reservation."""


class Useless:
    """Substitute for an invalid answer, with the same `repr`."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return self._shown


class RecordedAnswers:
    """Recorded answers of all RMs, in order per question; the last answer to a question is repeated."""

    def __init__(self, lines: Iterable[RecordedEntry]) -> None:
        self.unknown = 0
        """Number of questions about nodes without a recorded answer; they are answered with yes."""
        self._nodes: dict[Place, deque[RecordedAnswer]] = defaultdict(deque)
        self._saves: dict[str, deque[RecordedAnswer]] = defaultdict(deque)
        for line in lines:
            if line.kind == "answer":
                self._learn(line.rm_id, line.content)

    def _learn(self, rm_id: str, answer: RecordedAnswer) -> None:
        if answer.method == "update_configuration":
            self._saves[rm_id].append(answer)
        for node in answer.nodes:
            place = (rm_id, answer.application, answer.allocation, node, answer.allocate)
            self._nodes[place].append(answer)

    def refusals(
        self, rm_id: str, application: str, allocation: str, nodes: Iterable[str], allocate: bool
    ) -> Mapping[str, str] | Useless:
        """Return the nodes that must not take a request; raises the exception that was recorded instead."""
        refused: dict[str, str] = {}
        raised: RecordedAnswer | None = None
        for node in nodes:
            answers = self._nodes.get((rm_id, application, allocation, node, allocate))
            if not answers:
                self.unknown += 1
                continue
            answer = _next(answers)
            raised = raised or (answer if answer.raised is not None or answer.useless is not None else None)
            if node in answer.refused:
                refused[node] = answer.refused[node]
        if raised is not None:
            return _what_was_wrong(raised)
        return refused

    def save(self, rm_id: str) -> UpdateConfigurationResponse | Useless:
        """Return the RM's answer to saving a configuration, by default a yes; raises a recorded exception."""
        answers = self._saves.get(rm_id)
        if not answers:
            return UpdateConfigurationResponse(True)
        answer = _next(answers)
        if answer.raised is not None or answer.useless is not None:
            return _what_was_wrong(answer)
        return UpdateConfigurationResponse(answer.success, "", answer.reason)


def _next(answers: deque[RecordedAnswer]) -> RecordedAnswer:
    return answers.popleft() if len(answers) > 1 else answers[0]


def _what_was_wrong(answer: RecordedAnswer) -> Useless:
    """Raise a recorded exception under its name, or return the substitute for an invalid answer."""
    if answer.useless is not None:
        return Useless(answer.useless)
    raise recreated(answer.raised or "")


class RaisedThen(Exception):
    """Substitute for an exception that was raised during the recording."""


def recreated(raised: str) -> RaisedThen:
    """Return an exception with the type name and text of one that was recorded as `TYPE: TEXT`."""
    name, _, text = raised.partition(": ")
    kind = type(name if name.isidentifier() else "Exception", (RaisedThen,), {})
    error: RaisedThen = kind(text)
    return error


class RecordedConfigurations(Configurations):
    """Configurations of policy groups, as recorded up to the current line."""

    def __init__(self, groups: Iterable[str], *, allow_rm_config: bool) -> None:
        self._known: dict[str, GroupConfiguration] = {}
        super().__init__(
            {group: lambda group=group: self._text(group) for group in groups},  # type: ignore[misc]
            allow_rm_config=allow_rm_config,
        )

    def learn(self, configuration: GroupConfiguration) -> None:
        """Use this configuration for its group from now on."""
        self._known[configuration.group] = configuration

    def _text(self, group: str) -> str | bytes:
        known = self._known.get(group)
        if known is None:
            raise UsageError(f"the recording has no configuration of policy group '{group}' before this line")
        if known.error is not None:
            raise UsageError(known.error)
        if known.hex is not None:
            return bytes.fromhex(known.hex)
        return known.text or ""


class OneConfiguration(Configurations):
    """One configuration for all RMs, whatever policy group or configuration they send."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__({"": text}, allow_rm_config=False)

    def find(self, group: str) -> str:
        """Return the only group."""
        return ""
