"""A plugin that registers an RM while it is opened or closed is refused, and no session is lost."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import EventSink
from yunikorn.errors import UsageError
from yunikorn.interface.messages import RegisterResourceManagerRequest

CONFIG = configuration(queue("a"))


@pytest.mark.parametrize("moment", ["opened", "closed"])
def test_a_registration_within_a_registration_is_refused(moment: str) -> None:
    class Registers(EventSink):
        """Registers its RM once more in `opened` or `closed`."""

        name = "registers"
        rm: ClassVar[RM]
        refused: ClassVar[list[str]] = []
        live: ClassVar[list[EventSink]] = []

        def send(self, events: Any) -> None:
            """Ignore the events."""

        def opened(self, context: Any) -> None:
            """Increment the count."""
            self.live.append(self)
            self.again("opened")

        def closed(self) -> None:
            """Decrement the count."""
            self.live.remove(self)
            self.again("closed")

        def again(self, now: str) -> None:
            """Register the RM."""
            if now == moment and hasattr(self, "rm") and not self.refused:
                with pytest.raises(UsageError, match="must not register") as refused:
                    self.rm.scheduler.register_resource_manager(
                        RegisterResourceManagerRequest("rm", config=CONFIG), self.rm
                    )
                self.refused.append(str(refused.value))

    text = configuration(queue("a"))[:-1] + ', "events": {"sinks": [{"name": "registers"}]}}'
    rm = Registers.rm = RM(text, with_plugins(event_sinks=[Registers]))
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=text), rm)
    assert Registers.refused
    assert len(Registers.live) == 1
    assert len(list(rm.scheduler.sessions())) == 1
    rm.scheduler.close()
    assert Registers.live == []
