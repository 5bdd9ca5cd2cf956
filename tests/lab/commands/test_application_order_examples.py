"""The policies of examples/application-order: their contracts, and the waits that docs/plugins show."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.rest.commands.operator_kit import Run
from tests.testing.test_contract_violations import broken_promises

EXAMPLES = Path(__file__).parents[3] / "examples" / "application-order"


def module(name: str) -> ModuleType:
    """Return the module of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    # The types of options are looked up there.
    sys.modules[spec.name] = found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def waits(run: Run, tmp_path: Path, example: str, policy: str, **options: str) -> dict[str, float]:
    """Return the mean wait in seconds until the last task starts, by user, of a run under a policy."""
    report = simulated(run, tmp_path, example, policy, "workload", **options)
    return {user["name"]: round(user["whole_wait"]["mean"]) for user in report["figures"]["users"]}


def simulated(
    run: Run, tmp_path: Path, example: str, policy: str, workload: str, **options: str
) -> dict[str, Any]:
    """Return the report of a run under a policy."""
    text = (EXAMPLES / f"{example}.yaml").read_text("utf-8").replace("./", f"{EXAMPLES}/")
    head, found, tail = text.partition("application.sort.policy: ")
    assert found
    lines = [f"              application.sort.policy.{name}: '{value}'" for name, value in options.items()]
    file = tmp_path / "queues.yaml"
    file.write_text("\n".join([head + found + policy, *(lines or tail.splitlines()[1:])]), "utf-8")
    status, out, err = run(
        *("simulate", "--config", str(file), "--workload", str(EXAMPLES / f"{workload}.yaml"), "--json")
    )
    assert status == 0, err
    report: dict[str, Any] = json.loads(out)
    assert report["plugin_faults"] == []
    return report


@pytest.mark.parametrize(
    ("policy", "ann", "bob"),
    [("fifo", 2160, 1890), ("least-attained", 3080, 58), ("shortest-remaining", 2400, 58)],
)
def test_short_work_passes_long_work(run: Run, tmp_path: Path, policy: str, ann: float, bob: float) -> None:
    assert waits(run, tmp_path, "least_attained", policy) == {"ann": ann, "bob": bob}


def test_past_service_decays(run: Run, tmp_path: Path) -> None:
    found = waits(run, tmp_path, "least_attained", "least-attained", half_life="30")
    assert found == {"ann": 3000, "bob": 58}


def test_users_take_turns(run: Run, tmp_path: Path) -> None:
    assert waits(run, tmp_path, "user_turns", "user-turns") == {"ann": 2330, "bob": 52}


@pytest.mark.parametrize(
    ("policy", "options", "end", "wait"),
    [
        ("fifo", {}, 420, 34.9),
        ("expected-time", {"longest_first": "false"}, 420, 37.7),
        ("expected-time", {"longest_first": "true"}, 300, 44.6),
    ],
)
def test_requests_go_by_expected_time(
    run: Run, tmp_path: Path, policy: str, options: dict[str, str], end: float, wait: float
) -> None:
    report = simulated(run, tmp_path, "expected_time", policy, "tasks", **options)
    assert (report["times"]["makespan"], round(report["task_wait"]["mean"], 1)) == (end, wait)


@pytest.mark.parametrize(
    ("weights", "ann", "bob"),
    [("age=1000", 2460, 217), ("fair-share=1000, age=100", 3080, 58), ("size=1000", 2880, 1890)],
)
def test_factors_weigh_age_use_and_size(
    run: Run, tmp_path: Path, weights: str, ann: float, bob: float
) -> None:
    assert waits(run, tmp_path, "deadline", "multifactor", weights=weights) == {"ann": ann, "bob": bob}


def test_a_policy_is_a_factor(run: Run, tmp_path: Path) -> None:
    assert waits(run, tmp_path, "weighted_service", "multifactor") == {"ann": 2680, "bob": 195}


def test_a_factor_of_our_own_joins_the_sum(run: Run, tmp_path: Path) -> None:
    options = {"weights": "size=100, deadline=1000", "favor_small": "true"}
    found = waits(run, tmp_path, "deadline", "multifactor-deadline", **options)
    assert found == {"ann": 2330, "bob": 52}


@pytest.mark.parametrize(
    ("example", "name", "options"),
    [
        ("least_attained", "LeastAttained", {}),
        ("least_attained", "LeastAttained", {"half_life": 600.0}),
        ("least_attained", "ShortestRemaining", {}),
        ("user_turns", "UserTurns", {}),
        ("expected_time", "ExpectedTime", {}),
        ("expected_time", "ExpectedTime", {"longest_first": False}),
        ("deadline", "MultifactorWithDeadline", {"weights": {"deadline": 2.0, "age": 1.0}}),
        ("slurm_priority", "SlurmPriority", {}),
        ("slurm_priority", "SlurmPriority", {"shares": {"bio": 60.0, "bio/ann": 2.0}, "damping": 3.0}),
    ],
)
def test_policies_pass_their_contract(example: str, name: str, options: dict[str, Any]) -> None:
    assert broken_promises(getattr(module(example), name)(**options)) == {}
