"""Test kit of changes over REST: three operators with a role each, and a certificate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import httpx
from starlette.types import Receive, Scope, Send

from tests.core.kit import RM
from tests.rest.kit import DirectCore, Rest
from yunikorn_rest.app import rest_app
from yunikorn_rest.audit import Audit
from yunikorn_rest.guards import Throttle
from yunikorn_rest.operator_actions import OperatorChanges
from yunikorn_rest.operator_credentials import hash_of, parse_credentials
from yunikorn_rest.route_access import CERTIFICATE, AccessGate
from yunikorn_rest.routes.all_routes import ENDPOINTS

VIEWER, OPERATOR, ADMIN = "token-of-vera", "token-of-otto", "token-of-anna"
TOKENS = {"view": VIEWER, "operate": OPERATOR, "admin": ADMIN}
FILE = f"""
- {{name: vera, role: view, groups: [dev], token: '{hash_of(VIEWER)}'}}
- {{name: otto, role: operate, token: '{hash_of(OPERATOR)}'}}
- {{name: anna, role: admin, token: '{hash_of(ADMIN)}'}}
- {{name: carl, role: operate, certificate: carl.example.org}}
"""


class Steered(Rest):
    """REST interface with operators, on the scheduler of a test's resource manager."""

    def __init__(
        self, rm: RM, audit_log: Path | None = None, *, reading_is_open: bool = True, **parts: Any
    ) -> None:
        super().__init__(rm)
        self.time = 0
        """Stopwatch (ns)."""
        self.audit = Audit(audit_log, lambda: self.time)
        self.gate = AccessGate(
            parse_credentials(FILE), reading_is_open, self.audit, Throttle(lambda: self.time)
        )
        steering = OperatorChanges(DirectCore(rm.scheduler), self.audit)
        self.context = attrs.evolve(self.context, gate=self.gate, steering=steering, **parts)
        self.app = rest_app(self.context, ENDPOINTS)

    def ask(
        self,
        method: str,
        path: str,
        token: str = "",
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
        address: str = "127.0.0.1",
        certificate: str = "",
    ) -> httpx.Response:
        """Return the answer to a request with a token, or of a client with a certificate."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope["client"] = (address, 1234)
            scope["state"] = {CERTIFICATE: certificate}
            await self.app(scope, receive, send)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9080") as client:
                whole = path if path.startswith("/") else f"/ws/v1/{path}"
                shown = [("authorization", f"Bearer {token}")] if token else []
                more = list(headers.items()) if isinstance(headers, Mapping) else headers or []
                return await client.request(method, whole, headers=[*shown, *more], content=content)

        return asyncio.run(send())

    def change(self, path: str, token: str = ADMIN, **body: Any) -> Any:
        """Return the JSON body of a POST that succeeds."""
        answer = self.ask("POST", path, token, content=json.dumps(body).encode() if body else b"")
        assert answer.status_code == 200, answer.text
        return answer.json()


def entries(file: Path) -> list[dict[str, Any]]:
    """Return the entries of an audit log."""
    return [json.loads(line) for line in file.read_text().splitlines()]
