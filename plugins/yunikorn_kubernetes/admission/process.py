"""Process of the admission controller: from credentials to the signal that ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn_kubernetes.admission.controller import ADVICE, AdmissionController, AdmissionOptions
from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import find_credentials
from yunikorn_kubernetes.api_server.back_off import from_system
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_service.background import begin_shared

__all__ = ["AdmissionOptions", "run"]

_log = logging.getLogger("yunikorn.admission")

RETRY = 5.0
"""Seconds to the next attempt while the API server is away."""


def run(
    options: AdmissionOptions,
    kubeconfig: str,
    context: str,
    user_agent: str,
    announce: Callable[[int], None],
) -> int:
    """Serve until a signal arrives; returns the exit status. `announce` is called with the port when ready.

    Raises `UsageError` for credentials or an address that cannot be used, and for missing rights.
    """
    return asyncio.run(_run(options, kubeconfig, context, user_agent, announce))


async def _run(
    options: AdmissionOptions,
    kubeconfig: str,
    context: str,
    user_agent: str,
    announce: Callable[[int], None],
) -> int:
    options.check()
    credentials = find_credentials(kubeconfig, context, environment=os.environ)
    connection = ApiConnection(credentials, user_agent=user_agent)
    await connection.access()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    serving = begin_shared(_serve(ApiServer(connection), options, announce))
    ending = begin_shared(over.wait())
    try:
        await asyncio.wait((serving, ending), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
    finally:
        for task in (serving, ending):
            task.cancel()
        await asyncio.gather(serving, ending, return_exceptions=True)
        await connection.close()
    return 0


async def _serve(server: ApiServer, options: AdmissionOptions, announce: Callable[[int], None]) -> None:
    """Serve until cancelled; while the API server is away, try again."""
    while True:
        controller = AdmissionController(server, options, random=from_system(), clock=SystemClock())
        try:
            async with controller.serving() as port:
                announce(port)
                await asyncio.Event().wait()
        except ApiError as error:
            if error.status in (401, 403):
                raise UsageError(f"the API server refuses what is needed: {error}\n{ADVICE}") from error
            _log.warning("the webhooks cannot be announced yet: %s", error)
        await asyncio.sleep(RETRY)
