"""Calls of workload readers, which are plugins: the failures of a reader concern its own pods only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from yunikorn.clock import SECOND, stopwatch
from yunikorn.containment import WrongAnswer, describe_error, entries_of, safe_repr, text_or_none
from yunikorn.errors import CONTAINED
from yunikorn_kubernetes.workloads.workload_reader import WorkloadGang, WorkloadReader, WorkloadRole

if TYPE_CHECKING:
    from yunikorn_kubernetes.objects import Json, Pod

T = TypeVar("T")
Report = Callable[[str, str, BaseException | str], object]
"""Reports a failure: plugin, operation and cause."""
SLOW = SECOND // 10
"""Time (ns) from which a call counts as slow. All calls of readers only look fields up."""
MOST_SLOW = 2 * SECOND
"""Time (ns) that the slow calls of a reader may take together. The event loop does nothing else meanwhile."""
MOST_PODS = 1_000_000
"""Largest size of a role."""


class ReaderCalls:
    """A reader in use, with answers that can be relied on."""

    def __init__(
        self,
        reader: WorkloadReader,
        name: str = "",
        origin: str = "",
        report: Report = lambda plugin, operation, cause: None,
        now: Callable[[], int] = stopwatch,
    ) -> None:
        """Take a reader, its name in settings, and its name in messages."""
        self._reader, self.name, self.origin = reader, name, origin
        self._report, self._now = report, now
        self._slow = 0
        """Time (ns) of all slow calls."""

    @property
    def kind(self) -> str:
        """Kind of the owners that the reader reads."""
        return self._reader.kind

    @property
    def place(self) -> tuple[str, str]:
        """API group and kind of these owners."""
        return self._reader.group, self._reader.kind

    @property
    def plural(self) -> str:
        """Name of the resource in paths of the API."""
        return self._reader.plural

    @property
    def name_label(self) -> str:
        """Label of the pods with the name of the owner."""
        return self._reader.name_label

    @property
    def is_off(self) -> bool:
        """True once the reader has been too slow; it is not called any more."""
        return self._slow > MOST_SLOW

    def recognises(self, pod: Pod) -> bool:
        """Return True if a pod may belong to a gang."""
        return self._answer("recognises", _flag, lambda _: False, pod)

    def part(self, pod: Pod) -> str:
        """Return the name of the pod's gang among those of the owner."""
        return self._answer("part", _text, lambda _: "", pod)

    def role(self, pod: Pod) -> str:
        """Return the name of the pod's role; empty, which no role is called, after a failure."""
        return self._answer("role", _text, lambda _: "", pod)

    def number(self, pod: Pod) -> int:
        """Return the number of a pod in its gang; 0 without one."""
        text = pod.metadata.labels.get(self._reader.index_label, "")
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of a pod, or why the pod starts by itself."""
        return self._answer("gang", _gang, lambda why: f"its reader {self.origin} fails: {why}", owner, pod)

    def _answer(
        self, method: str, checked: Callable[[Any], T], failed: Callable[[str], T], *arguments: object
    ) -> T:
        """Return an answer that is `checked`; that of `failed` if the reader raises, or is too slow."""
        if self.is_off:
            return failed("it is too slow")
        began = self._now()
        try:
            return checked(getattr(self._reader, method)(*arguments))
        except CONTAINED as error:
            self._report(self.origin, f"calling {method}", error)
            return failed(describe_error(error))
        finally:
            self._count(method, self._now() - began)

    def _count(self, method: str, time: int) -> None:
        if time > SLOW:
            self._slow += time
            end = "; it is not called any more, and its pods start by themselves" if self.is_off else ""
            self._report(self.origin, f"calling {method}", f"it took {time / SECOND:.1f} s{end}")


def _flag(answer: object) -> bool:
    if type(answer) is not bool:
        raise WrongAnswer(f"{safe_repr(answer)} is neither True nor False")
    return answer


def _text(answer: object) -> str:
    text = text_or_none(answer)
    if text is None:
        raise WrongAnswer(f"{safe_repr(answer)} is no text")
    return text


def _gang(answer: object) -> WorkloadGang | str:
    if not isinstance(answer, WorkloadGang):
        return _text(answer)
    roles = tuple(_role(role) for role in entries_of(answer.roles))
    if len({role.name for role in roles}) < len(roles):
        raise WrongAnswer(f"several roles have one name: {safe_repr([role.name for role in roles])}")
    return WorkloadGang(roles, _text(answer.reason), _flag(answer.has_started))


def _role(answer: object) -> WorkloadRole:
    if not isinstance(answer, WorkloadRole):
        raise WrongAnswer(f"{safe_repr(answer)} is no WorkloadRole")
    return WorkloadRole(
        _text(answer.name),
        _size(answer.size),
        None if answer.minimum is None else _size(answer.minimum),
        _size(answer.step),
    )


def _size(answer: object) -> int:
    if type(answer) is not int or answer > MOST_PODS:
        raise WrongAnswer(f"{safe_repr(answer)} is no number of pods")
    return answer
