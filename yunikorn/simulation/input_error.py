"""Input of a simulation that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yunikorn.errors import Problem, YunikornError

SHOWN = 20
"""So many problems are written out; the number of the others is said."""

LINES_SHOWN = 5
"""So many bad lines of a trace are written out when they are skipped; the number of the others is said."""


class InputError(YunikornError):
    """A workload or node file that cannot be used; carries every problem found, with its place."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems: tuple[Problem, ...] = tuple(problems)
        lines = [describe(file, problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"{file}: and {len(self.problems) - SHOWN} more")
        super().__init__("\n".join(lines))

    @classmethod
    def joined(cls, errors: Sequence[InputError]) -> InputError:
        """What is wrong in several files, as one error that names the first of them; `errors` are some."""
        error = cls(errors[0].file, [problem for one in errors for problem in one.problems])
        error.args = ("\n".join(map(str, errors)),)
        return error


def remarks_on(file: str, problems: Sequence[Problem]) -> list[str]:
    """What to tell of lines of a trace that were skipped: the first few, and how many there are more."""
    remarks = [describe(file, problem) for problem in problems[:LINES_SHOWN]]
    if len(problems) > LINES_SHOWN:
        remarks.append(f"{file}: {len(problems) - LINES_SHOWN} more lines like these")
    return remarks


def describe(file: str, problem: Problem) -> str:
    """`FILE: line 7, column 3: PATH: MESSAGE`, as far as these are known."""
    place = f"line {problem.line}" if problem.line else ""
    if problem.column:
        place += f", column {problem.column}"
    return ": ".join(filter(None, (file, place, problem.path, problem.message)))
