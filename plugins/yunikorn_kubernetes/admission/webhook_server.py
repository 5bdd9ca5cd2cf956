"""HTTPS server of the webhooks, and its certificate."""

from __future__ import annotations

import errno
import logging
import ssl
from collections.abc import Awaitable, Callable

import attrs
from aiohttp import web

from yunikorn.errors import UsageError
from yunikorn_kubernetes.admission.reviews import (
    MalformedReview,
    Request,
    ReviewAnswer,
    read_review,
    write_review,
)
from yunikorn_kubernetes.admission.webhook_certificates import ServerCertificate
from yunikorn_kubernetes.admission.webhooks import MUTATE_PATH, VALIDATE_PATH
from yunikorn_kubernetes.api_server.key_pairs import load_key_pair

_log = logging.getLogger("yunikorn.admission")

LARGEST_BODY = 16 << 20
"""Maximum size of a review in bytes; the API server accepts objects of 3 MiB, and an update has two."""
Reviewer = Callable[[Request], Awaitable[ReviewAnswer]]


@attrs.frozen
class WebhookHealth:
    """State of the webhooks."""

    problem: str = ""
    """Problem that an administrator has to solve; empty if there is none."""
    serves: bool = True
    """False if the API server cannot get answers any more."""


HEALTHY = WebhookHealth()


class WebhookServer:
    """Server of the webhooks; the certificate can be replaced while it serves."""

    def __init__(
        self, mutate: Reviewer, validate: Reviewer, health: Callable[[], WebhookHealth] = lambda: HEALTHY
    ) -> None:
        """Create what does not serve yet; `health` is asked by each probe."""
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        application = web.Application(client_max_size=LARGEST_BODY)
        application.add_routes(
            [
                web.get("/health", _probe(health)),
                web.post(MUTATE_PATH, _handler(mutate)),
                web.post(VALIDATE_PATH, _handler(validate)),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True)

    def use(self, certificate: ServerCertificate) -> None:
        """Use a certificate for new connections."""
        load_key_pair(self._tls, certificate.certificate, certificate.key)

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port. Raises `UsageError` if the address cannot be used."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            reason = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                reason = "the address is in use. Choose another with --listen"
            raise UsageError(f"cannot listen at {host}:{port}: {reason}") from error
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Answer the requests in progress, and end."""
        await self._runner.cleanup()


def _probe(health: Callable[[], WebhookHealth]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def probe(_: web.Request) -> web.Response:
        found = health()
        status = 200 if found.serves else 503
        return web.Response(status=status, text=f"{found.problem or 'OK'}\r\n")

    return probe


def _handler(reviewer: Reviewer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return web.Response(status=415, text="the Content-Type has to be application/json\n")
        try:
            review = read_review(await request.read())
        except MalformedReview as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            answer = await reviewer(review)
        except Exception:
            # The API server goes on without an answer, as its configuration of the webhook says.
            _log.exception("a bug: no answer to the review of %s %s", review.kind.kind, review.name)
            return web.Response(status=500, text="the admission controller failed; see its log\n")
        if not answer.allowed:
            _log.info("denied: %s %s/%s: %s", *_named(review), answer.reason)
        body = write_review(review.uid, answer)
        return web.Response(body=body, content_type="application/json")

    return handle


def _named(review: Request) -> tuple[str, str, str]:
    return review.kind.kind, review.effective_namespace, review.name or "(name to be generated)"
