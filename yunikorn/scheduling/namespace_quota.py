"""Namespace quotas: quotas in the tags of an application, applied to its dynamic queue.

The tags are those of YuniKorn 1.9.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from yunikorn.resources import INT64_MAX, Resource, above_zero

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.model.queue import Queue

_log = logging.getLogger("yunikorn.placement")

MAX_TAG = "namespace.resourcequota"
GUARANTEED_TAG = "namespace.resourceguaranteed"
APPS_TAG = "namespace.resourcemaxapps"
DIGITS = 20
"""Maximum number of digits of the application limit: no 64-bit integer has more."""


def apply_namespace_quota(queue: Queue, tags: Mapping[str, str]) -> None:
    """Apply the quota tags to a dynamic queue; an unreadable tag is ignored with a warning."""
    if not tags:
        return
    lower = {name.lower(): value for name, value in tags.items()}
    quota, guaranteed = _amount(lower, MAX_TAG), _amount(lower, GUARANTEED_TAG)
    if quota is not None or guaranteed is not None:
        queue.set_quota(
            queue.guaranteed if guaranteed is None else guaranteed, queue.max if quota is None else quota
        )
    apps = lower.get(APPS_TAG, "")
    if apps.isdecimal() and len(apps) <= DIGITS and int(apps):
        queue.max_applications = int(apps)
        queue.check_full()


def _amount(tags: Mapping[str, str], name: str) -> Resource | None:
    text = tags.get(name)
    if not text:
        return None
    try:
        # Clients that write these tags omit values of 0.
        amounts = json.loads(text)["resources"].items()
        amount = Resource({key: _whole(value.get("value", 0)) for key, value in amounts})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("tag %s is ignored, %.200r is not a resource: %s", name, text, error)
        return None
    return amount if above_zero(amount) else None


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) > INT64_MAX:
        raise ValueError(f"{value!r:.40} is not a whole number of 64 bits")
    return value
