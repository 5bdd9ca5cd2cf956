"""Tasks of event loops: no end goes unseen, and no code begins a task whose end would."""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from yunikorn.errors import YunikornError
from yunikorn_service.background import BackgroundTasks, begin_shared, begin_watched, repeat_until_done

CHECKOUT = Path(__file__).parent.parent
LAUNCHER = "plugins/yunikorn_service/background.py"
"""The file whose functions begin tasks for all others."""
LAUNCHES = {"create_task", "ensure_future"}
log = logging.getLogger("yunikorn.test")


# -- the lint ---------------------------------------------------------------------------------------------


def groups_in(function: ast.AST) -> set[str]:
    """Return the names of the task groups that a function opens, which see the ends of their tasks."""
    return {
        item.optional_vars.id
        for node in ast.walk(function)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
        and isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func) in ("asyncio.TaskGroup", "TaskGroup")
    }


def unwatched(code: str) -> list[str]:
    """Return the calls and references in a file that begin a task outside of a task group."""
    found: list[str] = []

    def visit(node: ast.AST, groups: set[str]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            groups = groups | groups_in(node)
        if isinstance(node, ast.Attribute) and node.attr in LAUNCHES:
            if not (isinstance(node.value, ast.Name) and node.value.id in groups):
                found.append(f"{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module in ("asyncio", "asyncio.tasks"):
            found.extend(f"{node.lineno} {one.name}" for one in node.names if one.name in LAUNCHES)
        for child in ast.iter_child_nodes(node):
            visit(child, groups)

    visit(ast.parse(code), set())
    return found


def sources() -> Iterator[Path]:
    """Yield all files of the packages."""
    for root in ("yunikorn", "plugins", "policies"):
        yield from sorted((CHECKOUT / root).rglob("*.py"))


def test_every_task_begins_where_its_end_is_seen() -> None:
    places = [
        f"{path.relative_to(CHECKOUT)}:{place}"
        for path in sources()
        if path != CHECKOUT / LAUNCHER
        for place in unwatched(path.read_text("utf-8"))
    ]
    assert places == [], "begin these tasks by yunikorn_service.background, or in an asyncio.TaskGroup"


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.create_task(work())",
        "self.task = asyncio.get_running_loop().create_task(work())",
        "asyncio.ensure_future(work())",
        "begin = loop.create_task",
        "from asyncio import create_task as begin",
        "group.create_task(work())",
    ],
)
def test_the_lint_finds_tasks_that_are_not_watched(line: str) -> None:
    assert len(unwatched(f"async def f(self, group, loop):\n    {line}\n")) == 1


def test_the_lint_accepts_task_groups() -> None:
    code = "async def f():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(work())\n"
    assert unwatched(code) == []


# -- the functions ----------------------------------------------------------------------------------------


async def failing() -> None:
    raise KeyError("field")


def test_the_error_of_a_watched_task_is_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[BaseException]:
        errors: list[BaseException] = []
        task = begin_watched(failing(), "the renewal", log, failed=errors.append)
        await asyncio.wait([task])
        await asyncio.sleep(0)
        return errors

    (error,) = asyncio.run(main())
    assert isinstance(error, KeyError)
    assert "bug: the renewal failed: KeyError: 'field'" in caplog.text
    assert "Traceback" in caplog.text


def test_expected_errors_and_cancellations_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        expected = begin_watched(failing(), "the renewal", log, expected=(KeyError,))
        cancelled = begin_watched(asyncio.sleep(3600), "the pause", log)
        await asyncio.wait([expected])
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await asyncio.sleep(0)

    asyncio.run(main())
    assert not caplog.records


def test_an_error_while_an_error_is_handled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def restore(_: BaseException) -> None:
        raise ValueError("state")

    async def main() -> None:
        await asyncio.wait([begin_watched(failing(), "the renewal", log, failed=restore)])
        await asyncio.sleep(0)

    asyncio.run(main())
    assert "bug: the renewal failed, and so did what follows" in caplog.text
    assert "ValueError: state" in caplog.text


def test_all_who_await_a_shared_task_get_its_error() -> None:
    async def main() -> tuple[object, object]:
        task = begin_shared(failing())
        return await asyncio.gather(asyncio.shield(task), asyncio.shield(task), return_exceptions=True)

    assert [type(found) for found in asyncio.run(main())] == [KeyError, KeyError]


def test_tasks_are_kept_by_key_until_they_end() -> None:
    async def main() -> None:
        tasks = BackgroundTasks(log)
        over = asyncio.Event()

        async def wait() -> None:
            await over.wait()

        for _ in range(2):
            tasks.begin(wait(), "the wait", key="a")
        tasks.begin(asyncio.sleep(3600), "the pause", key="b")
        assert "a" in tasks
        assert tasks.cancel("b")
        assert not tasks.cancel("b")
        over.set()
        for _ in range(4):
            await asyncio.sleep(0)
        assert "a" not in tasks

    asyncio.run(main())


def test_a_task_does_not_cancel_itself() -> None:
    async def main() -> str:
        tasks = BackgroundTasks(log)
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            tasks.cancel("a")
            assert "a" not in tasks
            await asyncio.sleep(0)
            done.set_result("ended")

        tasks.begin(work(), "the work", key="a")
        return await done

    assert asyncio.run(main()) == "ended"


def test_closing_waits_for_the_ends() -> None:
    async def main() -> list[str]:
        tasks, ends = BackgroundTasks(log), list[str]()

        async def work(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ends.append(name)

        for name in ("a", "b"):
            tasks.begin(work(name), name, key=name)
        await asyncio.sleep(0)
        await tasks.close()
        return ends

    assert sorted(asyncio.run(main())) == ["a", "b"]


def test_an_attempt_is_repeated_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [YunikornError("refused"), KeyError("field")]
    pauses: list[float] = []

    async def attempt() -> None:
        if errors:
            raise errors.pop(0)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    asyncio.run(repeat_until_done(attempt, "the pod cannot be deleted", log, 5.0, sleep))
    assert pauses == [5.0, 5.0]
    first, second = caplog.records
    assert first.getMessage() == "the pod cannot be deleted, next attempt in 5 s: refused"
    assert second.getMessage() == "the pod cannot be deleted, next attempt in 5 s: bug: KeyError: 'field'"
    assert (first.levelname, second.levelname) == ("WARNING", "ERROR")
