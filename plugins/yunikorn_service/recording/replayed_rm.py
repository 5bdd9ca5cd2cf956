"""Resource managers in a replay: their recorded answers, configurations and updates.

In a what-if, `ReplayedRM` sends the recorded updates with the allocation ids of the replay. The id of an
allocation depends on all earlier allocations, so recorded ids do not fit the decisions of a what-if. Instead,
the n-th allocation of an ask in the replay stands for its n-th allocation in the recording. Preemptions,
replacements and timeouts in the replay are confirmed at once, and recorded confirmations are ignored.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from yunikorn.errors import UsageError
from yunikorn.interface.commands import Command, RegisterResourceManager, Update
from yunikorn.interface.messages import (
    AllocationRelease,
    AllocationReleasesRequest,
    TerminationType,
    UpdateConfigurationResponse,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.recording.recorded_entry import GroupConfiguration, RecordedAnswer, RecordedEntry

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
            return _uselessness(raised)
        return refused

    def save(self, rm_id: str) -> UpdateConfigurationResponse | Useless:
        """Return the RM's answer to saving a configuration, by default a yes; raises a recorded exception."""
        answers = self._saves.get(rm_id)
        if not answers:
            return UpdateConfigurationResponse(True)
        answer = _next(answers)
        if answer.raised is not None or answer.useless is not None:
            return _uselessness(answer)
        return UpdateConfigurationResponse(answer.success, "", answer.reason)


def _next(answers: deque[RecordedAnswer]) -> RecordedAnswer:
    return answers.popleft() if len(answers) > 1 else answers[0]


def _uselessness(answer: RecordedAnswer) -> Useless:
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


CONFIRMED = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)
"""Termination types for which the scheduler waits for a confirmation."""
Ask = tuple[str, str, str, str]
"""RM, partition, application and allocation key."""


class ReplayedRM:
    """Replacement for all RMs of a recording."""

    def __init__(self) -> None:
        self.unknown = 0
        """Number of released allocations that do not exist in the what-if, or not yet."""
        self._then: dict[tuple[str, str], tuple[Ask, int]] = {}
        self._counts: dict[Ask, int] = defaultdict(int)
        self._now: dict[Ask, list[str]] = defaultdict(list)
        self._to_confirm: list[UpdateRequest] = []

    def note_recorded(self, rm_id: str, response: UpdateResponse) -> None:
        """Process a recorded response to an RM."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._then[rm_id, one.uuid] = (ask, self._counts[ask])
            self._counts[ask] += 1

    def note_replayed(self, rm_id: str, response: UpdateResponse) -> None:
        """Process a response of the replay to an RM."""
        for one in response.new_allocations:
            ask = (rm_id, one.partition_name, one.application_id, one.allocation_key)
            self._now[ask].append(one.uuid)
        ended = [one for one in response.released_allocations if one.termination_type in CONFIRMED]
        if ended:
            self._to_confirm.append(UpdateRequest(rm_id, releases=AllocationReleasesRequest(ended)))

    def confirmations(self) -> list[UpdateRequest]:
        """Return the updates that confirm releases, each once."""
        waiting, self._to_confirm = self._to_confirm, []
        return waiting

    def translate(self, command: Command[Any]) -> Command[Any]:
        """Return a recorded command for the what-if: an update with the allocation ids of the replay.

        A registration brings no configuration of its own.
        """
        if isinstance(command, Update):
            return Update(self._translated(command.request))
        if isinstance(command, RegisterResourceManager):
            return attrs.evolve(command, request=attrs.evolve(command.request, config=""))
        return command

    def _translated(self, request: UpdateRequest) -> UpdateRequest:
        for node in request.new_schedulable_nodes:
            for one in node.existing_allocations:
                # The RM reports this allocation under its recorded id, so the replay uses that id as well.
                self._then.pop((request.rm_id, one.uuid), None)
        releases = request.releases
        if not releases.allocations_to_release:
            return request
        named = [
            self._named(request.rm_id, one)
            for one in releases.allocations_to_release
            if one.termination_type not in CONFIRMED
        ]
        return attrs.evolve(request, releases=attrs.evolve(releases, allocations_to_release=named))

    def _named(self, rm_id: str, release: AllocationRelease) -> AllocationRelease:
        known = self._then.get((rm_id, release.uuid))
        if known is None:
            return release
        ask, index = known
        now = self._now[ask]
        if index >= len(now):
            self.unknown += 1
            return release
        return attrs.evolve(release, uuid=now[index])
