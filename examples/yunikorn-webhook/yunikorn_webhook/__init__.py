"""An event sink for YuniKorn that posts events by HTTP, with retries and a bounded buffer.

events:
  sinks:
    - name: webhook
      url: https://events.example.org/yunikorn
      headers: {Authorization: Bearer abc}

A thread of the sink posts events as JSON lists, so that the scheduler never waits for the network. Failed
requests are retried with increasing delays. Events that do not fit into the buffer are dropped. Retries and
dropped events are counted, and dropped events are reported.
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
    """HTTP headers, such as a token."""
    capacity: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))
    """Maximum number of undelivered events; further events are dropped."""
    batch: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    """Maximum number of events per request."""
    retries: int = attrs.field(default=8, validator=attrs.validators.ge(0))
    """Maximum number of retries of a request before its events are dropped."""
    first_wait: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
    """Seconds before the first retry; the delay doubles with each further retry."""
    longest_wait: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    timeout: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))
    """Timeout of a request in seconds."""
    patience: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
    """Maximum time to deliver the remaining events when the sink is closed, in seconds."""
    _courier: Courier | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Start the delivery thread."""
        retries = Retries(self.retries, self.first_wait, self.longest_wait)
        post = post_to(self.url, self.headers, self.timeout)
        self._courier = Courier(post, context.report, self.capacity, self.batch, retries)
        self._courier.start()

    def send(self, batch: Sequence[Event]) -> None:
        """Append events to the buffer as far as they fit; never blocks."""
        if self._courier is not None:
            self._courier.take(batch)

    def closed(self) -> None:
        """Deliver the remaining events for up to `patience` seconds, then drop the rest."""
        if self._courier is not None:
            self._courier.stop(self.patience)

    @property
    def counts(self) -> Counts:
        """Numbers of events by outcome so far."""
        return Counts() if self._courier is None else self._courier.counts


@hookimpl
def yunikorn_event_sinks() -> list[type[EventSink]]:
    """Return the sink of this package."""
    return [Webhook]
