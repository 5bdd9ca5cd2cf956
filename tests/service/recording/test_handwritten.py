"""Recordings written by hand: a bug report as a single file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.kit import configuration, queue
from tests.service.recording.collecting_listener import CollectingListener
from tests.service.recording.script import TWO_QUEUES, amounts, app, ask, node, play, register, release
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import SchedulerAction, UpdateResponse
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.replayer import Replay
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.json_form import to_json

USER = {"user": "ann"}


def states(listener: CollectingListener) -> list[tuple[float, str]]:
    """Return the time (s), application and new state of all state changes."""
    return [
        (at / SECOND, one.state)
        for at, _, response in listener.responses
        for one in response.updated_applications
    ]


# -- decisions and time -----------------------------------------------------------------------------------


def test_file_without_schedule_lines_is_scheduled_completely(registry: Registry) -> None:
    listener, _ = play(registry, register(), node(memory=3), app(), ask(count=5, memory=1))
    assert listener.placed() == [("k", "n1")] * 3


def test_a_schedule_line_takes_its_number_of_decisions(registry: Registry) -> None:
    lines = [register(), node(memory=3), app(), ask(count=5, memory=1)]
    assert play(registry, *lines, {"schedule": 0})[0].placed() == []
    assert len(play(registry, *lines, {"schedule": 2})[0].placed()) == 2
    assert len(play(registry, *lines, {"schedule": 1}, {"schedule": None})[0].placed()) == 3
    # One explicit `schedule` line turns off all implicit decisions.
    assert len(play(registry, *lines, {"schedule": 1}, node("n2", memory=9))[0].placed()) == 1


def test_time_advances_by_advance_lines_and_timestamps_and_timers_fire(
    registry: Registry,
) -> None:
    listener, _ = play(
        registry,
        register(),
        node(memory=3),
        {"at": 10, **app()},
        ask(memory=1),
        {"at": 20.5, **release(allocationKey="k")},
        {"advance": "29.9s"},
        {"advance": 1},
    )
    assert states(listener)[-2:] == [(20.5, "Completing"), (50.5, "Completed")]
    listener, _ = play(registry, register(), node(memory=3), app(), ask(memory=1), {"at": 300, "schedule": 1})
    # The only decision comes at the end, so the application starts only then.
    assert [at for at, state in states(listener) if state == "Starting"] == [300]


def test_released_capacity_is_used_without_a_schedule_line(registry: Registry) -> None:
    listener, _ = play(
        registry,
        register(),
        node(memory=1),
        app(executionTimeoutMilliSeconds=5000),
        ask("short", memory=1),
        app("next"),
        ask("long", "next", memory=1),
        {"advance": 5},
        release(allocationKey="short", terminationType="TIMEOUT"),
    )
    assert listener.placed() == [("short", "n1"), ("long", "n1")]


# -- names and references ---------------------------------------------------------------------------------


def test_one_file_may_contain_multiple_resource_managers(registry: Registry) -> None:
    listener, _ = play(
        registry,
        register(),
        {"rm": "two", "register": {"config": TWO_QUEUES}},
        {"rm": "rm", **node(memory=1)},
        {"rm": "two", **node("other", memory=1)},
    )
    assert [(rm, response.accepted_nodes[0].node_id) for _, rm, response in listener.responses] == [
        ("rm", "n1"),
        ("two", "other"),
    ]


def test_newer_layout_is_accepted(registry: Registry) -> None:
    listener, _ = play(
        registry,
        register(),
        {
            "update_node": {
                "nodes": [{"nodeID": "n1", "action": "CREATE", "schedulableResource": amounts(v=2)}]
            }
        },
        {"update_application": {"new": [{"applicationID": "app", "queueName": "root.a", "ugi": USER}]}},
        {
            "update_allocation": {
                "allocations": [
                    {"allocationKey": "k", "applicationID": "app", "resourcePerAlloc": amounts(v=1)}
                ]
            }
        },
    )
    assert listener.placed() == [("k", "n1")]


def test_policy_groups_use_the_preceding_configurations(registry: Registry) -> None:
    batch = configuration(queue("batch"))
    listener, _ = play(
        registry,
        {"configuration": {"group": "batch", "text": batch}},
        {"register": {"rmID": "rm", "policyGroup": "batch"}},
        app(queue_name="root.batch"),
        app("b", "root.later"),
        {"configuration": {"group": "batch", "text": configuration(queue("batch"), queue("later"))}},
        {"reload": None},
        app("c", "root.later"),
    )
    assert [
        one.application_id for _, _, reported in listener.responses for one in reported.accepted_applications
    ] == [
        "app",
        "c",
    ]


def test_reload_may_contain_its_text(registry: Registry) -> None:
    later = configuration(queue("later"))
    listener, _ = play(registry, register(), {"reload": later}, app(queue_name="root.later"))
    assert listener.responses[0][2].accepted_applications


def test_answers_of_an_rm_may_be_given_and_default_to_yes(registry: Registry) -> None:
    asked = configuration(queue("a"), predicates=[{"name": "rm"}])
    answer = {"method": "predicates", "application": "app", "allocation": "k", "nodes": ["n1"]}
    lines: list[dict[str, Any]] = [
        {**register(asked), "callback": ["predicates"]},
        node("n1", memory=4),
        node("n2", memory=4),
        app(),
        ask(memory=1),
    ]
    listener, replay = play(registry, *lines, {"answer": {**answer, "refused": {"n1": "dark"}}})
    assert listener.placed() == [("k", "n2")]
    assert replay.answers.unknown == 1
    listener, replay = play(registry, *lines, {"answer": {**answer, "raised": "OSError: gone"}})
    assert listener.placed() == [("k", "n2")]
    listener, replay = play(registry, *lines)
    assert (listener.placed(), replay.answers.unknown) == ([("k", "n1")], 1)


def test_all_other_calls_can_be_written(registry: Registry) -> None:
    listener, _ = play(
        registry,
        register(),
        node(memory=9),
        app(),
        {"stop_queue": {"queue": "root.a", "lasting": True}},
        ask(memory=1),
        {"start_queue": {"queue": "root.a"}},
        {"stop_partition": {}},
        ask("more", memory=1),
        {"start_partition": {}},
        {"drain_node": {"node": "n1"}},
        {"undrain_node": {"node": "n1"}},
        {"fail_application": {"application": "app", "reason": "enough"}},
        {"update_configuration": {"configs": configuration(queue("c"))}},
        {"use_callback": ["predicates"]},
        {"pause": "gone"},
        {"reconnect": []},
        {"resync": "to be sure"},
        {"stop": True},
        {"close": True},
    )
    assert listener.refusals == []
    assert listener.placed() == [("k", "n1")]
    resyncs = [response for _, _, response in listener.responses if response.action == SchedulerAction.RESYNC]
    assert len(resyncs) == 2


def test_plugin_calls_are_reported_as_code(registry: Registry) -> None:
    listener, _ = play(registry, register(), {"register_plugin": "mine"})
    assert listener.remarks == [(2, "plugin 'mine' of rm is ignored: recordings contain no code")]


def test_gap_in_a_call_of_a_callback_is_reported(registry: Registry) -> None:
    response = {"response": {"acceptedNodes": [{"nodeID": "n1"}]}}
    gap = {"gap": "update with a value that no message can represent", "within": True}
    listener, _ = play(registry, register(), node(memory=1), response, gap, app())
    (remark,) = listener.remarks
    assert remark == (4, f"the recording has a gap here: {gap['gap']}")
    assert len(listener.responses) == 2


def test_refused_call_is_reported_with_its_line_and_the_replay_continues(registry: Registry) -> None:
    listener, _ = play(
        registry,
        {"rm": "ghost", "update": {}},
        register("partitions: 5"),
        register(),
        node(memory=1),
    )
    assert [line for line, _ in listener.refusals] == [1, 2]
    assert "no resource manager 'ghost' is registered" in listener.refusals[0][1]
    assert "partitions" in listener.refusals[1][1]
    assert len(listener.responses) == 1


# -- expectations -----------------------------------------------------------------------------------------

BOOKS = [register(), node(memory=3), app(), ask(memory=1)]


def with_responses(registry: Registry) -> list[dict[str, Any]]:
    """Return the lines of `BOOKS`, each followed by its responses."""
    lines: list[dict[str, Any]] = []
    for length in range(1, len(BOOKS) + 1):
        before, _ = play(registry, *BOOKS[: length - 1]) if length > 1 else (CollectingListener(), None)
        listener, _ = play(registry, *BOOKS[:length])
        lines.append(BOOKS[length - 1])
        lines += [to_line(*one) for one in listener.responses[len(before.responses) :]]
    return lines


def to_line(at: int, rm_id: str, response: Any) -> dict[str, Any]:
    """Return a response as a line."""
    return {"rm": rm_id, "response": to_json(v0_11.UPDATE_RESPONSE.to_wire(response))}


def test_written_responses_are_compared(registry: Registry) -> None:
    lines = with_responses(registry)
    assert sum("response" in line for line in lines) == 4
    _, replay = play(registry, *lines)
    assert (replay.comparison.first, replay.comparison.equal) == (None, 4)
    assert replay.comparison.is_possible


PLACED = '"nodeID": "n1", "applicationID": "app"'


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (
            lambda text: text.replace(
                '"nodeID": "n1", "applicationID": "app"', '"nodeID": "n7", "applicationID": "app"'
            ),
            "newAllocations[0].nodeID was 'n7', and is now 'n1'",
        ),
        (lambda text: text.replace('"Accepted"', '"Running"', 1), "was 'Running', and is now 'Accepted'"),
    ],
)
def test_first_difference_is_reported_with_its_line(registry: Registry, change: Any, reported: str) -> None:
    lines = with_responses(registry)
    changed = [json.loads(change(json.dumps(line))) for line in lines]
    (number,) = [n for n, (was, now) in enumerate(zip(lines, changed, strict=True), 1) if was != now]
    _, replay = play(registry, *changed)
    first = replay.comparison.first
    assert first is not None
    assert first.line == number
    assert reported in first.what


def test_missing_or_additional_response_is_a_difference(registry: Registry) -> None:
    lines = with_responses(registry)
    shorter = [line for line in lines if "maxAllocations" not in json.dumps(line)]
    _, replay = play(registry, *shorter)
    assert str(replay.comparison.first) == f"line {len(shorter) - 1}: the recorded response to rm is missing"
    _, replay = play(registry, *lines[:-1])
    assert str(replay.comparison.first) == "a response to rm at 0 s is new"
    fewer = [line for line in lines if "acceptedNodes" not in json.dumps(line)]
    _, replay = play(registry, *fewer)
    assert str(replay.comparison.first) == "line 4: a response to rm at 0 s is new"


def test_a_response_to_another_rm_is_a_difference(registry: Registry) -> None:
    lines = [
        {**line, "rm": "two"} if "acceptedNodes" in json.dumps(line) else line
        for line in with_responses(registry)
    ]
    _, replay = play(registry, *lines)
    assert str(replay.comparison.first) == "line 3: a response to two is now a response to rm"


def test_failing_listener_ends_the_replay_and_is_not_an_rm_failure(
    registry: Registry,
) -> None:
    class Gone(CollectingListener):
        def on_response(self, at: int, rm_id: str, response: UpdateResponse) -> None:
            raise BrokenPipeError

    text = "".join(json.dumps(line) + "\n" for line in BOOKS)
    replay = Replay(parse_recording(text.encode(), "f").lines, registry, Gone())
    with pytest.raises(BrokenPipeError) as failed:
        replay.run()
    assert failed.value.__notes__ == ["while replaying line 2 of the recording"]
