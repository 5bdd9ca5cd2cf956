"""Contract test of plugins that worker threads may call: resolvers, submit and admission policies."""

from __future__ import annotations

import threading
from typing import Any

from yunikorn.containment import contained
from yunikorn.framework.kinds import ADMISSION
from yunikorn.testing.answers_contract import AnswersContract


class WorkerContract(AnswersContract):
    """Tests of all kinds that workers may call; derive from the contract of the plugin's kind."""

    def test_answers_are_the_same_in_another_thread(self) -> None:
        """Check that a plugin opened in one thread answers in another, as in a service."""
        plugin = self.fresh()
        if getattr(plugin, "blocking", self.kind is not ADMISSION) is False:
            return
        here, there = self._answers(plugin), _in_a_thread(lambda: self._answers(plugin))
        assert not isinstance(there, BaseException), (
            f"{type(there).__name__} in another thread than that of opened(): {there}; a service calls the "
            "plugin in worker threads, so open a connection that is bound to a thread there"
        )
        self._compare(
            here,
            there,
            "in another thread: a service calls the plugin in worker threads; use no threading.local",
        )


def _in_a_thread(call: Any) -> Any:
    """Return the result of a call in another thread, or the exception that it raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except contained() as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    return found[0]
