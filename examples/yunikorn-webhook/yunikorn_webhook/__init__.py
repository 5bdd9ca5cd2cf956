"""An event sink for YuniKorn: events by HTTP, with retries and a bounded buffer.

events:
  sinks:
    - name: webhook
      url: https://events.example.org/yunikorn
      headers: {Authorization: Bearer abc}

Events are posted as JSON lists by a thread of the sink's own, so that the scheduler never waits for the
network. What cannot be delivered is tried again at growing distances; what finds the buffer full is dropped.
Both are counted, and what is dropped is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import attrs

from yunikorn.api import Context, Event, EventSink, hookimpl
from yunikorn_webhook.courier import Counts, Courier, Retries
from yunikorn_webhook.post import post_to


def _is_http(_: object, __: attrs.Attribute[str], url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"expected http://... or https://..., got '{url}'")


@attrs.define(eq=False)
class Webhook(EventSink):
    """Events as JSON lists, posted to a URL."""

    name = "webhook"
    url: str = attrs.field(validator=_is_http)
    headers: dict[str, str] = attrs.field(factory=dict, repr=False)
    """What is sent along, such as a token."""
    capacity: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))
    """Events that wait at the most; what comes then is dropped."""
    batch: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    """Events in one request at the most."""
    retries: int = attrs.field(default=8, validator=attrs.validators.ge(0))
    """How often a request is tried again before its events are dropped."""
    first_wait: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
    """Seconds before the first retry; each further one waits twice as long."""
    longest_wait: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    timeout: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))
    """Seconds that a request may take."""
    patience: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
    """Seconds at the end in which what still waits may be delivered."""
    _courier: Courier | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Start the thread."""
        retries = Retries(self.retries, self.first_wait, self.longest_wait)
        post = post_to(self.url, self.headers, self.timeout)
        self._courier = Courier(post, context.report, self.capacity, self.batch, retries)
        self._courier.start()

    def send(self, batch: Sequence[Event]) -> None:
        """Put them into the buffer, as many as have room; never waits."""
        if self._courier is not None:
            self._courier.take(batch)

    def closed(self) -> None:
        """Deliver what waits, for a while; then drop it."""
        if self._courier is not None:
            self._courier.stop(self.patience)

    @property
    def counts(self) -> Counts:
        """What became of the events so far."""
        return Counts() if self._courier is None else self._courier.counts


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """What this package offers."""
    return [Webhook]
