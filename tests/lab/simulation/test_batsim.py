"""Workloads of Batsim: jobs, profiles, and messages for what cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.batsim import BatsimOptions, read_batsim
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import Workload

EXAMPLE = Path(__file__).parents[3] / "examples" / "batsim"
JOB = {"id": 1, "subtime": 0, "res": 1, "profile": "d"}
PROFILES = {"d": {"type": "delay", "delay": 10}}


def read(*jobs: Any, profiles: Any = PROFILES, options: BatsimOptions | None = None, **more: Any) -> Workload:
    """Read jobs, given as changes of `JOB`."""
    listed = [{**JOB, **job} if isinstance(job, dict) else job for job in jobs]
    text = json.dumps({"nb_res": 4, "jobs": listed, "profiles": profiles, **more})
    return read_batsim(text, "w.json", "w.json", options or BatsimOptions(), [])


def refusal(*jobs: Any, **more: Any) -> str:
    """Return the message of the refusal of jobs."""
    with pytest.raises(InputError) as caught:
        read(*jobs, **more)
    return str(caught.value)


def test_resources_are_nodes_and_a_job_is_a_rigid_application() -> None:
    found = read({"id": "w!7", "subtime": 5.25, "res": 3}, {"id": 8, "subtime": 2})
    assert [node.name for node in found.nodes] == ["node-1", "node-2", "node-3", "node-4"]
    assert {node.resources["vcore"] for node in found.nodes} == {1000}
    first, second = found.applications
    assert (first.id, first.submit, first.gang, first.size) == ("job-8", 0, "", 1)
    assert (second.id, second.submit, second.gang, second.size) == ("job-w!7", 3.25 * SECOND, "Atomic", 3)
    assert (found.origin, found.format) == (2, "batsim")
    assert "each of the 4 resources (nb_res) is a node" in found.remarks[0]


def test_walltime_ends_a_job() -> None:
    found = read({"walltime": 4.5}, {"id": 2, "walltime": 60}, {"id": 3, "walltime": -1})
    assert [job.tasks[0].runtime for job in found.applications] == [4.5 * SECOND, 10 * SECOND, 10 * SECOND]
    assert found.counts == {"jobs ended by their walltime": 1}


@pytest.mark.parametrize(
    ("sequence", "delay"), [("SequentialCompositionProfile", "DelayProfile"), ("composed", "delay")]
)
def test_sequences_of_delays_are_summed(sequence: str, delay: str) -> None:
    profiles = {
        "a": {"type": delay, "delay": 0.1},
        "b": {"type": delay, "delay": 2},
        "inner": {"type": sequence, "seq": ["a", "a", "b"]},
        "d": {"type": sequence, "repeat": 3, "seq": ["inner", "a"]},
    }
    assert read({}, profiles=profiles).applications[0].tasks[0].runtime == 6_900_000_000


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=5), st.integers(1, 9))
def test_time_of_a_sequence_does_not_depend_on_nesting(delays: list[int], repeat: int) -> None:
    profiles: dict[str, Any] = {f"p{n}": {"type": "delay", "delay": delay} for n, delay in enumerate(delays)}
    nested = "p0"
    for n in range(1, len(delays)):
        profiles[f"n{n}"] = {"type": "composed", "seq": [nested, f"p{n}"]}
        nested = f"n{n}"
    profiles["d"] = {"type": "composed", "repeat": repeat, "seq": [nested]}
    assert read({}, profiles=profiles).applications[0].tasks[0].runtime == sum(delays) * repeat * SECOND


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            {"type": "parallel_homogeneous", "cpu": 1, "com": 0},
            'run time of type "parallel_homogeneous" depends on',
        ),
        ({"type": "TraceReplayProfile"}, 'type "TraceReplayProfile" depends on the platform'),
        ({}, "the type is missing; delays and sequences"),
        ({"type": "delay"}, "expected seconds from 0 to 9000000000 in 'delay', got nothing"),
        ({"type": "delay", "delay": "5"}, 'got "5"'),
        ({"type": "composed", "seq": ["d"]}, "the sequence contains itself: d > d"),
        ({"type": "composed", "seq": ["smpi"]}, "in 'smpi': the run time of type \"smpi\""),
        ({"type": "composed", "seq": ["nil"]}, "in 'nil': there is no such profile"),
        ({"type": "composed", "seq": 3}, "expected a list of names"),
        ({"type": "composed", "seq": ["ok"], "repeat": 0}, "expected a whole number from 1"),
        ({"type": "composed", "seq": ["ok"], "repeat": 9_000_000_000}, "takes longer than"),
        ("delay", 'expected an object, got "delay"'),
    ],
)
def test_unreadable_profile_is_refused_with_its_job(profile: Any, message: str) -> None:
    profiles = {"d": profile, "smpi": {"type": "smpi"}, "ok": {"type": "delay", "delay": 60}}
    text = refusal({"id": 17}, {"id": 18}, {"id": 19, "profile": "ok"}, profiles=profiles)
    assert message in text
    assert text.startswith("w.json: profiles.d: ")
    assert text.endswith("first used by job '17'")


def test_unused_profiles_do_not_matter() -> None:
    assert len(read({}, profiles={**PROFILES, "unused": {"type": "smpi"}}).applications) == 1


BAD_JOBS = [
    (7, "jobs[0]: expected an object, got 7"),
    ({"id": None}, "expected an 'id' that is a text or a whole number, got nothing"),
    ({"id": True}, "got true"),
    ({"subtime": -1}, "expected seconds from 0 to 9000000000 in 'subtime', got -1"),
    ({"subtime": 1e300}, "got 1e+300"),
    ({"res": 0}, "expected a whole number from 1 to 10000000 in 'res', got 0"),
    ({"res": 1.5}, "got 1.5"),
    ({"walltime": 0}, "expected a 'walltime' above 0"),
    ({"profile": 3}, "expected the name of a profile in 'profile', got 3"),
]


@pytest.mark.parametrize(("job", "message"), BAD_JOBS)
def test_bad_job_is_skipped_with_a_remark_or_refused(job: Any, message: str) -> None:
    good = {"id": "good"}
    found = read(job, good)
    assert [each.id for each in found.applications] == ["job-good"]
    assert message in found.remarks[0]
    assert found.counts == {"jobs skipped": 1}
    text = json.dumps(
        {
            "nb_res": 1,
            "jobs": [{**JOB, **job} if isinstance(job, dict) else job, {**JOB, **good}],
            "profiles": PROFILES,
        }
    )
    with pytest.raises(InputError) as caught:
        read_batsim(text, "w.json", "w", BatsimOptions(), [], strict=True)
    assert message in str(caught.value)


def test_repeated_id_is_skipped() -> None:
    assert "the id '1' was already used" in read({}, {}).remarks[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nb_res": 1, "jobs": [}', "is not valid JSON: Expecting value"),
        ('{"jobs": [{"subtime": NaN}], "profiles": {}}', "NaN is no number of JSON"),
        ('{"jobs": 1, "profiles": {}}', "expected an array 'jobs' and an object 'profiles'"),
        ('{"jobs": [], "profiles": {}}', "contains no jobs"),
        ("[1]", "expected an object, got [1]"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_other_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=r"^w.json: ") as caught:
        read_batsim(text, "w.json", "w", BatsimOptions(), [])
    assert message in str(caught.value)


def test_missing_number_of_resources_asks_for_nodes() -> None:
    assert "specify the nodes with --nodes FILE" in refusal({}, nb_res=None)


def test_templates_use_profile_and_extra_data() -> None:
    options = BatsimOptions("root.{queue}.{profile}", "{user}")
    found = read(
        {"queue": "fast", "user": "ann"},
        {"id": 2, "extra_data": '{"queue": "a.b c", "user": "bob"}'},
        {"id": 3, "extra_data": "no JSON"},
        options=options,
    )
    assert [(each.queue, each.user) for each in found.applications] == [
        ("root.fast.d", "ann"),
        ("root.a_dot_b_c.d", "bob"),
        ("root.unknown.d", "unknown"),
    ]
    with pytest.raises(UsageError, match=r"--batsim-queue uses the unknown field '\{qos\}'"):
        read({}, options=BatsimOptions("{qos}"))


def test_dependencies_are_followed() -> None:
    found = read(
        {"id": 1},
        {"id": "a", "dependencies": [1]},
        {"id": 3, "extra_data": {"dependencies": ["w0!1", "a"]}},
        {"id": 4, "extra_data": '{"dependencies": []}'},
    )
    after = {each.id: each.after for each in found.applications}
    assert after == {"job-1": (), "job-a": ("job-1",), "job-3": ("job-1", "job-a"), "job-4": ()}
    assert not any("job" in remark and "ignored" in remark for remark in found.remarks)


def test_dependencies_and_ids_may_have_the_name_of_the_workload() -> None:
    found = read(
        {"id": "w!1"},
        {"id": "w!2", "dependencies": ["1", "w!1"]},
        {"id": "v!3"},
        {"id": "w!3"},
        {"id": "w!4", "dependencies": ["v!3", 3]},
    )
    after = {each.id: each.after for each in found.applications if each.after}
    assert after == {"job-w!2": ("job-w!1",), "job-w!4": ("job-v!3",)}
    assert "job w!4 follows job 3" in "\n".join(found.remarks)


def test_dependencies_that_cannot_be_followed_are_named() -> None:
    found = read(
        {"id": 1, "dependencies": [7, 4]},
        {"id": 2, "dependencies": [3, 4]},
        {"id": 3, "dependencies": [2]},
        {"id": 4, "dependencies": [4]},
        {"id": 5, "dependencies": "4"},
    )
    after = {each.id: each.after for each in found.applications}
    assert after == {"job-1": ("job-4",), "job-2": ("job-4",), "job-3": (), "job-4": ()}
    text = "\n".join(found.remarks)
    assert "1 predecessors that are not in the workload, ignored: job 1 follows job 7" in text
    assert "3 predecessors in a circle, ignored: " in text
    assert "job 4 follows itself" in text
    assert "wait for each other" in text
    assert "jobs[4]: expected a list of ids of jobs in 'dependencies'" in text
    assert found.counts["predecessors in a circle, ignored"] == 3


def test_format_is_detected_and_the_example_runs(registry: Registry, tmp_path: Path) -> None:
    plain = EXAMPLE / "workload.json"
    packed = tmp_path / "jobs.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    options = BatsimOptions("root.{profile}", "{user}")
    for path in (plain, packed):
        workload = read_workload(path, batsim=options)
        assert workload.format == "batsim"
        report = simulate((EXAMPLE / "queues.yaml").read_text(), workload, registry)
        assert report.applications.finished == 12
    with pytest.raises(UsageError, match="a seed has no effect"):
        read_workload(plain, seed=1)


def test_scenario_in_json_is_still_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    scenario = {
        "nodes": [{"name": "n", "resources": {"vcore": 1}}],
        "applications": [{"id": "a", "tasks": [{"resources": {"vcore": 1}, "runtime": 1}]}],
    }
    path.write_text(json.dumps(scenario))
    assert read_workload(path).format == "scenario"
