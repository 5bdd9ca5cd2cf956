"""Validation of the scheduler's ConfigMaps before the API server stores them.

The scheduler itself validates `queues.yaml`, because its image may have plugins that this process lacks. The
other keys are validated here. As in Apache YuniKorn, an update is accepted while the scheduler cannot be
asked, and the submitter is warned; `admissionController.webHook.requireValidation` refuses it instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import aiohttp
import attrs
import msgspec

from yunikorn.errors import ConfigError
from yunikorn_kubernetes.admission.reviews import ALLOWED, Request, ReviewAnswer
from yunikorn_kubernetes.api_server.api_connection import text_of
from yunikorn_kubernetes.config_maps import NAMES, YAML, merge
from yunikorn_kubernetes.objects import ConfigMap
from yunikorn_kubernetes.shim_config_maps import read_config
from yunikorn_kubernetes.shim_settings import OVER_TLS, read_settings

_log = logging.getLogger("yunikorn.admission")

PATIENCE = 5.0
"""Seconds to wait for the scheduler; the API server waits for twice as long."""
MISDIRECTED = 421
"""Status for a `Host` header that the scheduler does not know."""
UNKNOWN = (401, 403)
"""Statuses for missing or insufficient credentials."""
LOCAL = "localhost"
"""Name that every scheduler knows."""
LARGEST_WARNING = 250
"""Length of a warning; the API server cuts longer ones."""


@attrs.frozen
class ConfigMapVerdict:
    """Result of a validation."""

    problems: tuple[str, ...] = ()
    unasked: str = ""
    """Reason why the scheduler could not be asked; empty if it was."""


class ValidatingScheduler(Protocol):
    """Scheduler that validates its `queues.yaml`."""

    async def validate(self, text: str) -> ConfigMapVerdict:
        """Return the problems of a `queues.yaml`, or why the scheduler cannot be asked."""
        ...


class RestScheduler:
    """Scheduler behind its REST interface, `POST /ws/v1/validate-conf`."""

    def __init__(self, session: aiohttp.ClientSession, address: str, token_file: Path | None = None) -> None:
        """Create for an address as in the settings.

        `token_file` has a token for a scheduler whose readers need credentials.
        """
        self._session = session
        self._address = address
        self._token_file = token_file

    async def validate(self, text: str) -> ConfigMapVerdict:
        """Return the problems of a `queues.yaml`, or why the scheduler cannot be asked.

        A scheduler on a loopback address, behind a proxy that leads from the service to it, knows itself as
        `localhost` only: this protects it from pages of foreign sites, which cannot choose the `Host` header.
        """
        base = self._address if self._address.startswith(OVER_TLS) else f"http://{self._address}"
        url = f"{base}/ws/v1/validate-conf"
        content = text.encode()
        try:
            headers = await asyncio.to_thread(self._credentials)
            async with asyncio.timeout(PATIENCE):
                status, body = await self._post(url, content, headers)
                if status == MISDIRECTED:
                    status, body = await self._post(url, content, {**headers, "Host": LOCAL})
            if status in UNKNOWN:
                return _unasked(f"{url} answered with status {status}: see --token-file")
            if status // 100 != 2:
                return _unasked(f"{url} answered with status {status}")
            answer = json.loads(body)
        except aiohttp.ClientConnectorCertificateError as error:
            return _unasked(
                f"{url}: its certificate is not trusted, see SSL_CERT_FILE: {error.certificate_error}"
            )
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

    def _credentials(self) -> dict[str, str]:
        """Return the header with the token; raises `OSError` if the file cannot be read."""
        if self._token_file is None:
            return {}
        return {"Authorization": f"Bearer {self._token_file.read_text('ascii', 'replace').strip()}"}

    async def _post(self, url: str, content: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        async with self._session.post(url, data=content, headers=headers) as response:
            return response.status, await response.read()


def _unasked(why: str) -> ConfigMapVerdict:
    text = f"queues.yaml was not validated, because the scheduler could not be asked: {why}"
    return ConfigMapVerdict(unasked=text)


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
    *,
    required: bool = False,
) -> ReviewAnswer:
    """Return the answer to the creation or update of a ConfigMap.

    `known` has the ConfigMaps of the scheduler's namespace by name. All problems are listed. With `required`,
    a `queues.yaml` that the scheduler could not validate is one of them.
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
    verdict = await scheduler.validate(merged.queues) if merged.queues else ConfigMapVerdict()
    problems, warnings = [*merged.problems, *verdict.problems], [*merged.warnings]
    if verdict.unasked:
        outcome = "refused" if required else "accepted"
        _log.warning("a ConfigMap is %s: %s", outcome, verdict.unasked)
        (problems if required else warnings).append(verdict.unasked)
    warnings = [text[:LARGEST_WARNING] for text in warnings]
    if not problems:
        return ReviewAnswer(allowed=True, warnings=tuple(warnings))
    return ReviewAnswer(allowed=False, reason="\n".join(problems), warnings=tuple(warnings))


def _name(content: Mapping[str, object]) -> str:
    metadata = content.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
