"""Verdict of a comparison: what each variant changes, compared with the first."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn_lab.reporting.comparison_result import Comparison, make_rows
from yunikorn_lab.reporting.comparison_texts import equal_rows, judge_comparison, whole_table
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.provenance import WORKLOAD, ProvenanceDifference
from yunikorn_lab.reporting.sections.comparison_sections import comparison_sections
from yunikorn_lab.reporting.variants import Variant

Observe = Callable[..., FullReport]
QUEUES = "          - {{name: a, resources: {{max: {{vcore: {0}}}}}}}\n          - {{name: b}}"
SCENARIO = "nodes: [{name: n, resources: {vcore: 4}}]\napplications:\n" + "".join(
    f"  - {{id: {queue}{number}, queue: root.{queue}, "
    f"tasks: [{{count: 2, resources: {{vcore: 1}}, runtime: 10m}}]}}\n"
    for queue in "ab"
    for number in range(4)
)


def compared(observe: Observe, *limits: int, until: float | None = None) -> Comparison:
    """Compare runs in which queue a may use this many cores."""
    variants = [
        Variant(f"{limit} cores", [observe(SCENARIO, QUEUES.format(limit), until=until)]) for limit in limits
    ]
    return Comparison("test", [], variants, make_rows(variants), [])


def test_the_queues_that_gain_and_lose_most_are_named(observe: Observe) -> None:
    comparison = compared(observe, 4, 1)
    (sentence,) = judge_comparison(comparison)
    waits = [
        {queue.name: queue.whole_wait.mean for queue in variant.results[0].figures.queues if queue.whole_wait}
        for variant in comparison.variants
    ]
    assert waits[1]["root.a"] > waits[0]["root.a"]
    assert sentence.startswith("1 cores, compared with 4 cores: applications wait ")
    assert "root.b gains most: its applications wait " in sentence
    assert "root.a loses most: its applications wait " in sentence
    assert sentence.endswith("; the work is done 40m 0s later, after 1h 20m.")


def test_figures_of_different_workloads_are_not_judged(observe: Observe) -> None:
    other = ProvenanceDifference(WORKLOAD, "a.yaml", "b.yaml")
    comparison = attrs.evolve(compared(observe, 4, 1), differences=[("1 cores", [other])])
    assert judge_comparison(comparison) == [
        "1 cores has another workload or other nodes than 4 cores: figures say little. "
        "Compare runs of one workload on the same nodes."
    ]


def test_equal_variants_have_no_notable_difference(observe: Observe) -> None:
    assert judge_comparison(compared(observe, 4, 4)) == [
        "No notable difference in waits and makespan from 4 cores: 4 cores."
    ]


def repeated(observe: Observe, *limits: int) -> Comparison:
    """Compare runs with 4 cores for queue a in each draw with runs that have these limits."""
    results = {limit: observe(SCENARIO, QUEUES.format(limit)) for limit in {4, *limits}}
    variants = [
        Variant("4 cores", [results[4]] * len(limits)),
        Variant("other", [results[limit] for limit in limits]),
    ]
    return Comparison("test", list(range(len(limits))), variants, make_rows(variants), [])


def test_few_seeds_are_too_few_to_tell(observe: Observe) -> None:
    assert judge_comparison(repeated(observe, 4, 4, 1)) == [
        "3 seeds are too few to tell whether waits and makespan differ from 4 cores: other. "
        "Run more with --seeds."
    ]
    assert judge_comparison(repeated(observe, 4))[0].startswith("One seed is too few to tell")
    assert judge_comparison(repeated(observe, 4, 4, 4))[0].startswith("No notable difference")


def test_runs_that_are_not_complete_are_named_first(observe: Observe) -> None:
    cut = compared(observe, 4, 1, until=60)
    first, *_ = judge_comparison(attrs.evolve(cut, unfinished=2))
    assert first == (
        "2 runs were not finished: the figures are those of the others. "
        "The same call with --out again runs only those that are missing."
    )
    assert judge_comparison(cut)[0] == (
        "Not simulated to the end: 4 cores, 1 cores. Waits of unfinished work are not counted. "
        "Without --until, or with a later one, they are."
    )


def test_equal_figures_are_counted_and_shown_on_request(observe: Observe) -> None:
    comparison = compared(observe, 4, 1)
    equal = equal_rows(comparison)
    names = {f"  {row.name}" for row in comparison.rows}
    (short,), (full,) = whole_table(comparison), whole_table(comparison, all_figures=True)
    assert "tasks ended" in {row.name for row in equal}
    assert len(full.rows) - len(short.rows) >= len(equal)
    assert {row[0] for row in full.rows} >= names
    assert "  tasks ended" not in {row[0] for row in short.rows}
    assert short.note.endswith(
        f"; {len(equal)} figures are equal under all variants, and not shown (--all-figures)"
    )
    assert "not shown" not in full.note
    section = next(one for one in comparison_sections(comparison) if one.key == "figures")
    ((name, text),) = section.details
    assert name == f"Figures that are equal under all variants ({len(equal)})"
    assert "totals: tasks ended: 16" in text


def test_equal_variants_show_all_figures(observe: Observe) -> None:
    comparison = compared(observe, 4, 4)
    (table,) = whole_table(comparison)
    assert "  tasks ended" in {row[0] for row in table.rows}
    assert not equal_rows(comparison)
