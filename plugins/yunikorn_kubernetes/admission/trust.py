"""Authorities in a secret, and the configurations by which the API server trusts and calls the webhooks.

Several replicas share the secret. Each one reads it, completes it if necessary, and writes it with the
version that it has read, so that only one of two simultaneous changes succeeds; the other reads again.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from yunikorn.clock import SECOND, Clock
from yunikorn.containment import describe_error
from yunikorn.errors import CONTAINED, YunikornError
from yunikorn_kubernetes.admission.webhook_certificates import (
    Authority,
    ServerCertificate,
    complete,
    names,
    read_authorities,
    server_certificate,
)
from yunikorn_kubernetes.admission.webhooks import (
    LABELS,
    MUTATIONS,
    VALIDATIONS,
    Json,
    Reachable,
    mutations,
    needs_repair,
    validations,
)
from yunikorn_kubernetes.api_server.access_reviews import Right
from yunikorn_kubernetes.api_server.api_resources import ApiResource
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer

_log = logging.getLogger("yunikorn.admission")

SECRET = "admission-controller-secrets"
INTERVAL = 60.0
"""Seconds between two checks of the secret and of the configurations of the webhooks."""
RETRY = 5.0
"""Seconds to the next check after one that failed."""
UNCHECKED = "certificates and configurations of the webhooks were not checked"
TRIES = 10
"""Attempts to write the secret while other replicas write it, too."""
_REGISTRATION = "admissionregistration.k8s.io"
SECRETS: ApiResource[Json] = ApiResource("", "v1", "secrets", "Secret", True, dict[str, Any])
MUTATING: ApiResource[Json] = ApiResource(
    _REGISTRATION,
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
    dict[str, Any],
)
VALIDATING: ApiResource[Json] = ApiResource(
    _REGISTRATION,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
    dict[str, Any],
)


async def has_secret(server: ApiServer, namespace: str) -> bool:
    """Return True if a namespace has the secret, as far as this process may know. Raises `ApiError`."""
    try:
        await server.get(SECRETS, namespace, SECRET)
    except ApiError as error:
        if error.is_temporary:
            raise
        return False
    return True


def needed(namespace: str, *, creates_secret: bool) -> list[Right]:
    """Return the rights to the secret of a namespace, and to the configurations of the webhooks."""
    found = [Right(SECRETS, "create", namespace=namespace)] if creates_secret else []
    found += [Right(SECRETS, verb, namespace=namespace, name=SECRET) for verb in ("get", "update")]
    for resource, name in ((MUTATING, MUTATIONS), (VALIDATING, VALIDATIONS)):
        found.append(Right(resource, "create"))
        found += [Right(resource, verb, name=name) for verb in ("get", "update")]
    return found


class ContestedSecret(YunikornError):
    """Error for a secret that others change again and again."""


class Trust:
    """Authorities, certificate, and configurations of the webhooks of one replica."""

    def __init__(
        self,
        server: ApiServer,
        reachable: Callable[[], Reachable],
        clock: Clock,
        is_required: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create what is empty until `refresh`; `reachable` and `is_required` follow the settings.

        `is_required` returns True if the API server has to refuse ConfigMaps that could not be checked.
        """
        self._server = server
        self._where = reachable
        self._clock = clock
        self._is_required = is_required
        self._authorities: list[Authority] = []
        self._hosts: list[str] = []
        self._renewal = self.now()
        """Time from which another certificate is needed."""
        self._end: datetime.datetime | None = None
        """End of the certificate in use."""
        self.problem = ""
        """Failure of the latest check; empty if it succeeded."""

    @property
    def _reachable(self) -> Reachable:
        return self._where()

    def now(self) -> datetime.datetime:
        """Return the time of the clock."""
        seconds = self._clock.now() // SECOND
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)

    async def keep(
        self,
        use: Callable[[ServerCertificate], object],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> NoReturn:
        """Renew the certificate and repair the configurations until cancelled.

        `use` is called with each new certificate. A failure of any kind is logged, visible in `problem`, and
        tried again.
        """
        while True:
            try:
                await self.check(use)
            except CONTAINED as error:
                is_bug = not isinstance(error, YunikornError)
                self.problem = f"bug: {describe_error(error)}" if is_bug else str(error)
                _log.error("%s: %s", UNCHECKED, self.problem, exc_info=is_bug)
                await sleep(RETRY)
            else:
                await sleep(INTERVAL)

    async def check(self, use: Callable[[ServerCertificate], object]) -> None:
        """Pass a new certificate on if one is due, and repair the configurations. Raises as both do."""
        await self.renew(use)
        await self.repair()
        self.problem = ""

    async def renew(self, use: Callable[[ServerCertificate], object]) -> None:
        """Pass a new certificate on if one is due; raises as `refresh` does."""
        certificate = await self.refresh()
        if certificate is not None:
            use(certificate)
            self._end = certificate.end

    @property
    def is_expired(self) -> bool:
        """True if no one trusts the certificate in use any more."""
        return self._end is not None and self.now() >= self._end

    async def refresh(self) -> ServerCertificate | None:
        """Read the authorities, replace those near their end, and return a certificate if a new one is due.

        To be called from time to time: another replica may have replaced an authority. Raises `ApiError` if
        the secret cannot be read or written, and `ContestedSecret`.
        """
        for _ in range(TRIES):
            authorities = await self._authorities_of_secret()
            if authorities is not None:
                return self._use(authorities)
        raise ContestedSecret(
            f"secret {SECRET} was changed by others {TRIES} times in a row; see who writes it"
        )

    def _use(self, authorities: list[Authority]) -> ServerCertificate | None:
        known = [one.pem for one in self._authorities]
        hosts = self._reachable.hosts
        is_same = [one.pem for one in authorities] == known and hosts == self._hosts
        if is_same and self.now() < self._renewal:
            return None
        self._authorities, self._hosts = authorities, hosts
        certificate = server_certificate(authorities, hosts, self.now())
        self._renewal = certificate.renewal
        return certificate

    async def _authorities_of_secret(self) -> list[Authority] | None:
        """Return the authorities, stored; None if another replica has changed the secret meanwhile."""
        secret = await self._secret()
        data = _decoded(secret.get("data"))
        found = read_authorities(data, self.now())
        authorities = [one for one in found if one is not None]
        if len(authorities) == len(found):
            return authorities
        authorities = complete(found, self.now())
        for number, authority in enumerate(authorities, 1):
            certificate_name, key_name = names(number)
            data[certificate_name], data[key_name] = authority.pem, authority.key_pem
        secret["data"] = {name: base64.b64encode(value).decode() for name, value in data.items()}
        return authorities if await self._store(secret) else None

    async def _secret(self) -> Json:
        if (found := await self._server.find(SECRETS, self._reachable.namespace, SECRET)) is not None:
            return found
        metadata = {"name": SECRET, "namespace": self._reachable.namespace, "labels": LABELS}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}

    async def _store(self, secret: Json) -> bool:
        """Write the secret; return False if another replica was faster."""
        namespace = self._reachable.namespace
        try:
            if "resourceVersion" in secret["metadata"]:
                await self._server.replace(SECRETS, namespace, SECRET, secret)
            else:
                await self._server.create(SECRETS, namespace, secret)
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                return False
            raise
        _log.info("secret %s/%s: new certificate authority", namespace, SECRET)
        return True

    async def repair(self) -> bool:
        """Create or repair both configurations; return True if one was written. Raises `ApiError`."""
        bundle = b"".join(one.pem for one in self._authorities)
        changed = await self._repair(MUTATING, mutations(self._reachable, bundle))
        wanted = validations(self._reachable, bundle, required=self._is_required())
        return await self._repair(VALIDATING, wanted) or changed

    async def _repair(self, resource: ApiResource[Json], wanted: Json) -> bool:
        name = wanted["metadata"]["name"]
        if (found := await self._server.find(resource, "", name)) is None:
            await self._create(resource, wanted)
            return True
        if not needs_repair(found, wanted):
            return False
        metadata = {**found["metadata"], "labels": {**_labels(found), **LABELS}}
        try:
            await self._server.replace(resource, "", name, {**found, **wanted, "metadata": metadata})
        except ApiError as error:
            if error.is_conflict:
                # Another client has written it; the next call looks at the result.
                return False
            raise
        _log.info("%s %s was repaired", resource.kind, name)
        return True

    async def _create(self, resource: ApiResource[Json], wanted: Json) -> None:
        try:
            await self._server.create(resource, "", wanted)
            _log.info("%s %s was created", resource.kind, wanted["metadata"]["name"])
        except ApiError as error:
            # Another replica has created it.
            if not error.is_conflict:
                raise


def _labels(found: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    return labels


def _decoded(data: object) -> dict[str, bytes]:
    """Return the data of a secret; members that are damaged are left out, and replaced later."""
    decoded: dict[str, bytes] = {}
    for name, text in (data or {}).items() if isinstance(data, dict) else ():
        try:
            decoded[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            _log.warning("secret %s: %s is damaged", SECRET, name)
    return decoded
