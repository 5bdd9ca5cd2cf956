"""Validation of the scheduler's ConfigMaps before the API server stores them.

The scheduler itself validates `queues.yaml`, because its image may have plugins that this process lacks. The
other keys are validated here. As in Apache YuniKorn, an update is accepted while the scheduler cannot be
asked; the submitter is warned.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Protocol

import aiohttp
import attrs
import msgspec

from yunikorn.config_maps import NAMES, YAML, merge
from yunikorn.errors import ConfigError
from yunikorn_kubernetes.admission.reviews import ALLOWED, Request, ReviewAnswer
from yunikorn_kubernetes.api_server.api_connection import text_of
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_kubernetes.shim_config_maps import read_config
from yunikorn_kubernetes.shim_settings import read_settings

_log = logging.getLogger("yunikorn.admission")

PATIENCE = 5.0
"""Seconds to wait for the scheduler; the API server waits for twice as long."""
LARGEST_WARNING = 250
"""Length of a warning; the API server cuts longer ones."""


@attrs.frozen
class ConfigMapVerdict:
    """Result of a validation."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ValidatingScheduler(Protocol):
    """Scheduler that validates its `queues.yaml`."""

    async def validate(self, text: str) -> ConfigMapVerdict:
        """Return the problems of a `queues.yaml`, or a warning if the scheduler cannot be asked."""
        ...


class RestScheduler:
    """Scheduler behind its REST interface, `POST /ws/v1/validate-conf`."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def validate(self, text: str) -> ConfigMapVerdict:
        """Return the problems of a `queues.yaml`, or a warning if the scheduler cannot be asked."""
        url = f"http://{self._address}/ws/v1/validate-conf"
        limit = aiohttp.ClientTimeout(total=PATIENCE)
        content = text.encode()
        try:
            async with self._session.post(url, data=content, timeout=limit) as response:
                if response.status // 100 != 2:
                    return _unasked(f"{url} answered with status {response.status}")
                answer = json.loads(await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            return _unasked(f"{url}: {text_of(error)}")
        if not isinstance(answer, dict) or not isinstance(answer.get("allowed"), bool):
            return _unasked(f"{url} gave an answer that is no validation")
        if answer.get("checksum") not in (None, hashlib.sha256(content).hexdigest().upper()):
            _log.debug("the scheduler has another checksum for the text that it validated")
        if answer["allowed"]:
            return ConfigMapVerdict()
        return ConfigMapVerdict(
            problems=(str(answer.get("reason") or "the scheduler refuses it without a reason"),)
        )


def _unasked(why: str) -> ConfigMapVerdict:
    _log.warning("the scheduler could not validate a ConfigMap, which is therefore accepted: %s", why)
    text = f"queues.yaml was not validated, because the scheduler could not be asked: {why}"
    return ConfigMapVerdict(warnings=(text[:LARGEST_WARNING],))


@attrs.frozen
class MergedMaps:
    """Both ConfigMaps together, checked except for `queues.yaml`."""

    queues: str
    """The `queues.yaml` of the policy group; empty if there is none."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, maps: Mapping[str, ConfigMap | None]) -> MergedMaps:
        """Merge and check ConfigMaps by name."""
        entries, _, _ = merge(maps)
        settings, _ = read_settings({key: entry.text for key, entry in entries.items()})
        queues = entries.get(f"{settings.service.policy_group}{YAML}")
        text = "" if queues is None else queues.text
        try:
            return cls(text, warnings=read_config(maps).warnings)
        except ConfigError as error:
            return cls(text, problems=tuple(str(problem) for problem in error.problems))


async def review_config_map(
    request: Request,
    namespace: str,
    known: Mapping[str, ConfigMap],
    scheduler: ValidatingScheduler,
) -> ReviewAnswer:
    """Return the answer to the creation or update of a ConfigMap.

    `known` has the ConfigMaps of the scheduler's namespace by name. All problems are listed.
    """
    if request.kind.kind != "ConfigMap" or request.effective_namespace != namespace:
        return ALLOWED
    if request.object is None or (request.name or _name(request.object)) not in NAMES:
        return ALLOWED
    try:
        given = msgspec.convert(request.object, ConfigMap)
    except msgspec.ValidationError as error:
        return ReviewAnswer(allowed=False, reason=f"no ConfigMap: {error}")
    merged = MergedMaps.of({**known, (request.name or _name(request.object)): given})
    verdict = await scheduler.validate(merged.queues)
    problems = [*merged.problems, *verdict.problems]
    warnings = tuple(text[:LARGEST_WARNING] for text in (*merged.warnings, *verdict.warnings))
    if not problems:
        return ReviewAnswer(allowed=True, warnings=warnings)
    return ReviewAnswer(allowed=False, reason="\n".join(problems), warnings=warnings)


def _name(content: Mapping[str, object]) -> str:
    metadata = content.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
