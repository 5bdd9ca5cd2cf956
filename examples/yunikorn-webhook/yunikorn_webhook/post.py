"""HTTP client that posts events as JSON, with the standard library only."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from yunikorn.api import Event
from yunikorn_webhook.courier import Post, Refused, TryLater

PASSING = {408, 425, 429}
"""Status codes below 500 of temporary failures."""


def post_to(url: str, headers: Mapping[str, str], timeout: float) -> Post:
    """Return a function that posts a batch to this URL."""

    def post(batch: Sequence[Event]) -> None:
        body = json.dumps([as_record(event) for event in batch]).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                response.read()
        except urllib.error.HTTPError as error:
            error.close()
            passing = error.code >= 500 or error.code in PASSING
            raise (TryLater if passing else Refused)(f"HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise TryLater(f"{type(error).__name__}: {error}") from None
        except ValueError as error:
            raise Refused(f"the request cannot be sent: {error}") from None

    return post


def as_record(event: Event) -> dict[str, Any]:
    """Return an event as JSON types, with the field names of YuniKorn's event records."""
    return {
        "timestampNano": event.timestamp,
        "type": event.type,
        "objectID": event.object_id,
        "referenceID": event.reference_id,
        "eventChangeType": event.change,
        "eventChangeDetail": event.detail,
        "message": event.message,
        "resource": None if event.resource is None else dict(event.resource),
    }
