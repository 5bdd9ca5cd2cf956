"""The choice among workload readers, and readers that fail: they are reported, and harm no other pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kubernetes.shim.owned_pods import DEFAULTS, OwnedCluster, room, run
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import WORKLOAD_READER
from yunikorn.framework.registry import Registry
from yunikorn_kubernetes.objects import Json, ObjectMeta, OwnerReference, Pod
from yunikorn_kubernetes.workloads.chosen_readers import WorkloadReaders, choose_readers
from yunikorn_kubernetes.workloads.job_readers import JobReader
from yunikorn_kubernetes.workloads.reader_calls import ReaderCalls
from yunikorn_kubernetes.workloads.workload_reader import WorkloadGang, WorkloadReader, WorkloadRole

TWO = WorkloadGang((WorkloadRole("members", 2),), "a tandem has two")


class Tandem(WorkloadReader):
    """Two pods."""

    name = "tandem"
    group, kind, plural = "lab.example.com", "Tandem", "tandems"

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return a gang of two."""
        return TWO


class OtherTandem(Tandem):
    """Another reader of tandems."""

    name = "other"


class SameName(Tandem):
    """Another reader of tandems, of the same name."""


class OwnJob(JobReader):
    """Another reader of Jobs, of the name of the default one."""


class OwnSet(Tandem):
    """Another reader of pods with the label of JobSets."""

    name, kind, name_label = "own-set", "OwnSet", "jobset.sigs.k8s.io/jobset-name"


def registry_with(**readers: type[WorkloadReader]) -> Registry:
    """Return the default plugins, and a package with each of these readers."""
    registry = Registry.load(third_party=False)
    for package, cls in readers.items():

        class Module:
            @api.hookimpl
            def yunikorn_workload_readers(
                self, cls: type[WorkloadReader] = cls
            ) -> list[type[WorkloadReader]]:
                return [cls]

        assert registry.register(Module(), package, f"{package}-dist", "1.2"), registry.broken
    return registry


def chosen(registry: Registry, *entries: str) -> WorkloadReaders:
    """Return the readers that a setting chooses."""
    return choose_readers(registry, entries, lambda *_: None)


def reader(
    registry: Registry, *entries: str, kind: str = "Tandem", group: str = "lab.example.com"
) -> ReaderCalls | None:
    """Return the reader of the pods of a kind."""
    owner = OwnerReference(api_version=f"{group}/v1", kind=kind, name="x", uid="1", controller=True)
    return chosen(registry, *entries).reader_of(Pod(metadata=ObjectMeta(owner_references=(owner,))))


def used(registry: Registry, *entries: str, kind: str = "Tandem", group: str = "lab.example.com") -> str:
    """Return the name of the reader of the pods of a kind; empty if there is none."""
    found = reader(registry, *entries, kind=kind, group=group)
    return "" if found is None else found.name


# -- the choice -------------------------------------------------------------------------------------------


def test_a_reader_of_another_package_is_used() -> None:
    registry = registry_with(mine=Tandem)
    assert used(registry, "all") == "tandem"
    assert chosen(registry, "all").plurals["lab.example.com", "Tandem"] == "tandems"
    # A namespace may switch on what the cluster has not.
    assert used(registry, "none") == used(registry, "Job") == "tandem"
    assert used(registry, "all", "-tandem") == ""


def test_the_default_reader_goes_first_until_the_setting_says_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = registry_with(mine=OwnJob)
    caplog.set_level("INFO", "yunikorn.kubernetes.workloads")
    for entries, expected in {
        ("all",): "yunikorn",
        ("Job",): "yunikorn",
        ("all", "Job@mine-dist"): "mine-dist",
        ("Job@mine-dist", "JobSet"): "mine-dist",
        ("all", "-Job@yunikorn"): "mine-dist",
    }.items():
        found = reader(registry, *entries, kind="Job", group="batch")
        assert found is not None
        assert f"({expected} " in found.origin
    assert (
        "workload reader Job of mine (mine-dist 1.2) is not used: Job of yunikorn_kubernetes." in caplog.text
    )


def test_a_namespace_names_a_reader_by_its_name_alone_unless_two_have_it() -> None:
    registry = registry_with(mine=OwnJob)
    assert {*chosen(registry, "all", "Job@mine-dist", "-JobSet", "PodGroup").switched_on} == {
        *("all", "Job", "PodGroup")
    }
    two = registry_with(mine=type("Job", (Tandem,), {"name": "Job"}))
    assert used(two, "all") == "Job@mine-dist"
    assert used(two, "all", kind="Job", group="batch") == "Job"


@pytest.mark.parametrize(
    ("readers", "entries", "words"),
    [
        (
            {"mine": Tandem, "yours": OtherTandem},
            ["all"],
            "service.workloadKinds: Tandem of lab.example.com is read by tandem of mine (mine-dist 1.2) and"
            " other of yours (yours-dist 1.2): name one of them, as NAME or NAME@DISTRIBUTION, or leave out"
            " the others, as -NAME or -NAME@DISTRIBUTION",
        ),
        ({"mine": Tandem, "yours": OtherTandem}, ["none"], "Tandem of lab.example.com is read by"),
        ({"mine": Tandem, "yours": OtherTandem}, ["tandem", "other"], "Tandem of lab.example.com is read by"),
        ({"mine": Tandem, "yours": SameName}, ["tandem"], "workload reader 'tandem' is offered by"),
        ({"mine": OwnSet}, ["JobSet", "own-set"], "is read by"),
        ({}, ["Jbo"], "no workload reader is called 'Jbo', did you mean 'Job'?"),
        ({}, ["all", "-Jbo"], "no workload reader is called 'Jbo'"),
    ],
)
def test_a_choice_that_is_not_clear_is_refused(
    readers: dict[str, type[WorkloadReader]], entries: list[str], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        chosen(registry_with(**readers), *entries)
    assert words in str(refused.value)


@pytest.mark.parametrize("entry", ["tandem", "-other", "tandem@mine-dist"])
def test_a_name_decides_between_two_packages(entry: str) -> None:
    registry = registry_with(mine=Tandem, yours=OtherTandem)
    assert used(registry, "all", entry) == "tandem"


def test_a_reader_that_cannot_be_made_is_left_out_or_refused_if_it_is_named() -> None:
    class Needy(Tandem):
        """A reader with an argument."""

        def __init__(self, size: int) -> None:
            self.size = size

    reports: list[tuple[Any, ...]] = []
    registry = registry_with(mine=Needy)
    readers = choose_readers(registry, ["all"], lambda *report: reports.append(report))
    assert ("lab.example.com", "Tandem") not in readers.plurals
    assert [report[:2] for report in reports] == [("tandem of mine (mine-dist 1.2)", "making it")]
    with pytest.raises(UsageError, match=r"service\.workloadKinds: .*tandem of mine \(mine-dist 1\.2\)"):
        chosen(registry, "all", "tandem")


def test_class_that_is_no_reader_is_broken() -> None:
    class Module:
        @api.hookimpl
        def yunikorn_workload_readers(self) -> list[type]:
            return [object]

    registry = Registry.load(third_party=False)
    assert not registry.register(Module(), "mine", "mine-dist", "1.2")
    assert "object is not a subclass of WorkloadReader" in registry.broken[0].reason
    assert registry.offers(WORKLOAD_READER) == DEFAULTS.offers(WORKLOAD_READER)


# -- readers that fail ------------------------------------------------------------------------------------


class Lie:
    """An answer that raises whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no answer")


def bad(**methods: Callable[..., Any]) -> type[WorkloadReader]:
    """Return a reader with other methods."""
    return type("Bad", (Tandem,), methods)


def raises(*_: object) -> Any:
    """Raise an error."""
    raise ZeroDivisionError("by zero")


def leaves(*_: object) -> Any:
    """Try to end the process."""
    raise SystemExit(3)


NONSENSE: dict[str, list[Any]] = {
    "recognises": [None, "yes", 1, Lie()],
    "part": [None, 7, b"", Lie()],
    "role": [None, 7, ["members"], Lie()],
    "gang": [
        *(None, 2, [], Lie(), WorkloadGang(Lie(), "x"), WorkloadGang((Lie(),), "x")),  # type: ignore[arg-type]
        *(WorkloadGang((WorkloadRole("m", size),), "x") for size in (None, "2", True, 2.0, 10**400)),  # type: ignore[arg-type]
        *(WorkloadGang((WorkloadRole("m", 2, least),), "x") for least in ("1", False, Lie())),  # type: ignore[arg-type]
        *(WorkloadGang((WorkloadRole("m", 2, 1, step),), "x") for step in ("1", None, Lie())),  # type: ignore[arg-type]
        WorkloadGang((WorkloadRole("m", 2), WorkloadRole("m", 1)), "x"),
        WorkloadGang((WorkloadRole("m", 2),), None),  # type: ignore[arg-type]
        WorkloadGang((WorkloadRole("m", 2),), "x", Lie()),  # type: ignore[arg-type]
    ],
}
CASES = [
    *((method, answer) for method in NONSENSE for answer in (raises, leaves)),
    *((method, lambda *_, said=said: said) for method, answers in NONSENSE.items() for said in answers),
]


@pytest.mark.parametrize(
    ("method", "answer"), CASES, ids=[f"{method}-{n}" for n, (method, _) in enumerate(CASES)]
)
def test_a_failing_reader_is_reported_and_harms_no_other_pod(method: str, answer: Callable[..., Any]) -> None:
    async def test(cluster: OwnedCluster) -> None:
        tandem = cluster.own("Tandem", "t", {}, api="lab.example.com/v1")
        job = cluster.job("train", 2)
        for number in range(2):
            cluster.owned_pod(f"t-{number}", tandem)
            cluster.job_pod(job, number)
        await cluster.settle()
        placed = await room(cluster, 4)
        assert placed == {"t-0", "t-1", "train-0", "train-1"}
        assert {report[:2] for report in cluster.reports} == {
            ("tandem of mine (mine-dist 1.2)", f"calling {method}")
        }

    run(test, registry_with(mine=bad(**{method: answer})))


@pytest.mark.parametrize("method", NONSENSE)
def test_a_slow_reader_is_reported_and_switched_off(method: str) -> None:
    class Slow(Tandem):
        """A reader whose calls of one method take half a second."""

    calls = []

    def slow(self: Slow, *arguments: Any) -> Any:
        calls.append(method)
        clusters[0].time += SECOND // 2
        return getattr(Tandem, method)(self, *arguments)

    setattr(Slow, method, slow)
    clusters: list[OwnedCluster] = []

    async def test(cluster: OwnedCluster) -> None:
        clusters.append(cluster)
        job = cluster.job("train", 2)
        for number in range(2):
            cluster.job_pod(job, number)
        for number in range(12):
            tandem = cluster.own("Tandem", f"t-{number}", {}, api="lab.example.com/v1")
            cluster.owned_pod(f"t-{number}-a", tandem)
            cluster.owned_pod(f"t-{number}-b", tandem)
            await cluster.settle()
        # Those that waited for their gang when the reader was switched off do so until their time is over.
        await cluster.pass_time()
        assert len(await room(cluster, 26)) == 26
        assert len(calls) == 5
        texts = [text for _, _, text in cluster.reports]
        assert texts[:4] == ["it took 0.5 s"] * 4
        assert texts[4:] == ["it took 0.5 s; it is not called any more, and its pods start by themselves"]

    run(test, registry_with(mine=Slow))


def test_a_reader_that_answers_at_once_stays_on_by_the_stopwatch_of_a_process() -> None:
    found = reader(registry_with(mine=Tandem), "all")
    assert found is not None
    assert [found.recognises(Pod()) for _ in range(100)] == [True] * 100
