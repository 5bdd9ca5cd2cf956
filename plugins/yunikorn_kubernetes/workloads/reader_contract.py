"""Contract test of workload readers, the plugins of Kubernetes, of which `yunikorn_testing` knows nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from yunikorn.errors import CONTAINED
from yunikorn.framework.kinds import WORKLOAD_READER
from yunikorn_kubernetes.objects import Json, Pod
from yunikorn_kubernetes.workloads.workload_reader import WorkloadGang, WorkloadReader
from yunikorn_testing.plugin_contract import OfferContract

WRONG: tuple[object, ...] = (None, "text", -1, 2.5, True, [], {}, [None], [{}])
"""Values that fields may have though the reader expects others; the API server checks only known schemas."""


class WorkloadReaderContract(OfferContract):
    """Tests that a workload reader must pass; set `reader = Mine()`, and override `examples`."""

    kind = WORKLOAD_READER
    subject = "reader"
    opening = "no method: a reader answers from its arguments only"
    reader: ClassVar[WorkloadReader]

    def examples(self) -> Sequence[tuple[Json, Pod]]:
        """Return owners as JSON, each with one of its pods; at least one pod belongs to a gang."""
        return ()

    def _given(self) -> Sequence[tuple[Json, Pod]]:
        found = self.examples()
        assert found, f"{type(self).__name__} has no examples: return owners with their pods from examples()"
        return found

    def _answers(self) -> list[WorkloadGang | str]:
        return [self.reader.gang(copy.deepcopy(owner), pod) for owner, pod in self._given()]

    def test_reader_has_no_state(self) -> None:
        """Check that a reader is made without arguments, and that calls leave nothing in it."""
        before = dict(vars(type(self.reader)()))
        self._answers()
        assert vars(self.reader) == before, "the reader keeps state: answer from the arguments only"

    # -- answers --------------------------------------------------------------------------------------

    def test_an_example_is_a_gang(self) -> None:
        """Check that the examples have a gang of several pods."""
        sizes = [one.needed for one in self._answers() if isinstance(one, WorkloadGang)]
        assert any(size > 1 for size in sizes), f"no example is a gang of several pods: {self._answers()}"

    def test_answers_have_reasons_for_users(self) -> None:
        """Check the type of each answer, its reason, and its roles."""
        for answer in self._answers():
            assert isinstance(answer, WorkloadGang | str), f"gang() returned {answer!r}: a gang, or a reason"
            reason = answer.reason if isinstance(answer, WorkloadGang) else answer
            assert isinstance(reason, str), f"the reason {reason!r} is no text"
            assert reason == reason.strip() != "", "name the fields from which the sizes are"
            names = [role.name for role in answer.roles] if isinstance(answer, WorkloadGang) else []
            assert len(set(names)) == len(names), f"the roles {names} are not distinct"
            assert all(names), "give each role a name"

    def test_a_pod_of_a_gang_has_a_role_or_starts_by_itself(self) -> None:
        """Check that names of roles and gangs are texts, and that some example is a member of its gang."""
        members = 0
        for (_, pod), answer in zip(self._given(), self._answers(), strict=True):
            role, part = self.reader.role(pod), self.reader.part(pod)
            assert isinstance(role, str), f"role() returned {role!r}; return a text"
            assert isinstance(part, str), f"part() returned {part!r}; return a text"
            if isinstance(answer, WorkloadGang) and self.reader.recognises(pod):
                members += role in [one.name for one in answer.roles]
        assert members, (
            "no pod of the examples has a role of its gang: compare role() with the names of roles"
        )

    def test_equal_questions_have_equal_answers(self) -> None:
        """Check that another reader of the class answers alike: each process makes its own."""
        other = type(self.reader)()
        again = [other.gang(copy.deepcopy(owner), pod) for owner, pod in self._given()]
        assert again == self._answers(), "the answers differ: use nothing but the owner and the pod"

    def test_owner_is_not_changed(self) -> None:
        """Check that the reader leaves the object as it is."""
        for owner, pod in self._given():
            given = copy.deepcopy(owner)
            self.reader.gang(given, pod)
            assert given == owner, "the reader changes the owner, which others read as well: copy it first"

    def test_pods_without_labels_are_answered(self) -> None:
        """Check a pod without labels, as a user may make with an owner of the kind."""
        bare = Pod()
        assert isinstance(self.reader.recognises(bare), bool), "recognises() returns no bool"
        self.reader.role(bare)
        self.reader.part(bare)

    def test_wrong_fields_are_refused(self) -> None:
        """Check owners with missing and wrong fields: a gang with sizes, a reason, or an exception."""
        for owner, pod in self._given():
            for place, changed in _mutants(owner):
                try:
                    answer = self.reader.gang(changed, pod)
                except CONTAINED:
                    continue
                assert isinstance(answer, WorkloadGang | str), f"with {place}, gang() returned {answer!r}"
                if isinstance(answer, WorkloadGang):
                    for role in answer.roles:
                        for field in ("size", "minimum", "step"):
                            number = getattr(role, field)
                            assert type(number) is int or (number is None and field == "minimum"), (
                                f"with {place}, the {field} of role {role.name} is {number!r}"
                            )


def _mutants(owner: Any) -> Iterator[tuple[str, Any]]:
    """Return copies of an object, each with one field missing or wrong, and a text that says which."""
    for path in _paths(owner):
        for value in (..., *WRONG):
            changed = copy.deepcopy(owner)
            inner = changed
            for step in path[:-1]:
                inner = inner[step]
            if value is not ...:
                inner[path[-1]] = value
            elif isinstance(inner, dict):
                del inner[path[-1]]
            text = ".".join(map(str, path))
            yield f"{text} missing" if value is ... else f"{text}: {value!r}", changed


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of each field below a value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*before, step)
        yield from _paths(inner, (*before, step))
