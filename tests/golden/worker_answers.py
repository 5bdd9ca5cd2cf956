"""A recorded core whose resolver is called by workers: answers come late, too late, or never.

Failures are left out, because their messages contain the version of the package.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.core.kit import RM, configuration, queue
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource

CONFIG = configuration(
    queue("a", submitacl=" science"),
    queue("b"),
    usergroupresolver={"type": "os", "cache": {"found": "1m", "failed": "5s"}},
    submitpolicies=[{"name": "default-tags", "tags": {"team": "none"}}],
    placementrules=[{"name": "provided"}, {"name": "fixed", "value": "root.b"}],
)
SCIENCE, NO_USER = PolicyAnswer(groups=["science", "staff"]), PolicyAnswer()


class ScriptedWorkers:
    """Workers that make no calls: the script has the answers."""

    def start(self, number: int, work: Callable[[], PolicyAnswer]) -> None:
        """Leave the call to the script."""

    def abandon(self, number: int) -> str:
        """Return no place."""
        return ""


def play(core: Scheduler) -> None:
    """Play the script; the numbers of the answers are those of the calls, in their order."""
    rm = RM(CONFIG, scheduler=core)
    rm.node("n1", vcore=8)
    for number in range(3):
        rm.app(f"ann-{number}", "root.a", user="ann", groups=())
        rm.ask(f"ann-{number}", "ask", vcore=1)
    rm.app("bob", "root.b", user="bob", groups=())
    rm.app("known", "root.b", groups=("staff",))
    rm.ask("known", "ask", vcore=1)
    rm.schedule()
    rm.release_ask("ann-1", "ask")
    rm.ask("ann-1", "again", 2, vcore=1)
    rm.remove_app("ann-2")
    core.take_policy_answer(1, SCIENCE)
    rm.schedule()
    core.take_policy_answer(2, NO_USER)
    rm.app("bob", "root.b", user="bob", groups=())
    rm.app("carl", "root.a", user="carl", groups=())
    rm.app("dora", "root.b", user="dora", groups=())
    here = Allocation("here", "dora", uuid="here", resource_per_alloc=Resource(vcore=2), node_id="n1")
    rm.update(allocations=[here, Allocation("more", "dora", resource_per_alloc=Resource(vcore=1))])
    rm.remove_app("carl")
    rm.pass_time(11)
    core.take_policy_answer(3, SCIENCE)
    rm.reload(CONFIG + " ")
    core.take_policy_answer(4, SCIENCE)
    rm.pass_time(1)
    core.take_policy_answer(5, NO_USER)
    rm.app("dora", "root.b", user="dora", groups=())
    rm.app("eve", "root.a", user="eve", groups=())
    rm.ask("eve", "ask", vcore=1)
    rm.app("away", "root.b", user="away", groups=())
    rm.pass_time(6)
    core.take_policy_answer(6, SCIENCE)
    rm.schedule()
    rm.remove_app("away")
    rm.pass_time(30)
    rm.app("late", "root.a", user="late", groups=())
    rm.ask("late", "ask", vcore=1)
    core.take_policy_answer(8, SCIENCE)
    core.take_policy_answer(7, NO_USER)
    rm.schedule()
    rm.app("fred", "root.b", user="fred", groups=())
    core.close()
