"""Changes over REST of `yunikorn serve`: credentials from a file, certificates, reload, and the audit log."""

from __future__ import annotations

import json
import signal
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.rest.served.test_rest import address_of
from tests.service.kit import PATIENCE
from tests.service.process import Service, Start
from tests.service.test_server import Certificates
from yunikorn.cli.main import main
from yunikorn.errors import UsageError
from yunikorn_rest.operator_credentials import hash_of
from yunikorn_rest.rest_access import RestAccess
from yunikorn_rest.rest_settings import RestSettings
from yunikorn_service.host_address import HostAddress
from yunikorn_service.service_settings import ServerTls

FREE = "127.0.0.1:0"
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
NODE = "ws/v1/partition/default/node/node-1"


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """Write a file with an operator and an administrator."""
    file = tmp_path / "credentials.yaml"
    file.write_text(
        f"- {{name: otto, role: operate, token: '{hash_of('otto')}'}}\n"
        f"- {{name: anna, role: admin, token: '{hash_of('anna')}'}}\n"
    )
    return file


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Create certificates for each test."""
    return Certificates(tmp_path)


def ask(
    url: str, token: str = "", method: str = "POST", context: ssl.SSLContext | None = None, body: bytes = b""
) -> tuple[int, Any]:
    """Return status and JSON body of an answer."""
    request = urllib.request.Request(url, body or None, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def demo(start: Start, *options: str) -> tuple[Service, str]:
    """Start the demo with its nodes, and return its address."""
    service = start("--demo", "--grpc", "off", "--rest", FREE, *options)
    address = address_of(service)
    service.wait_for("runs on node-1")
    return service, address


@UNIX
def test_changes_reload_and_audit_log(start: Start, credentials: Path, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    credentials.chmod(0o666)
    service, address = demo(start, "--rest-credentials", str(credentials), "--audit-log", str(audit))
    assert any("every user may write the file" in line for line in service.log)
    status, change = ask(f"{address}/{NODE}/drain", "otto")
    assert (status, change["changed"]) == (200, True)
    assert ask(f"{address}/{NODE}/drain", "wrong")[0] == 401
    service.wait_for("otto (operate, 127.0.0.1): drain node")
    assert [json.loads(line)["outcome"] for line in audit.read_text().splitlines()] == [
        "begun",
        "done",
        "refused",
    ]
    credentials.write_text("- {name: otto, role: boss}\n- {name: anna}\n")
    service.signal(signal.SIGHUP)
    service.wait_for("the old credentials stay in use")
    assert "line 1, column" in service.wait_for("unknown role; known: view, operate, admin")
    service.wait_for("(line 2, column 3): `role` is missing")
    assert ask(f"{address}/{NODE}/undrain", "otto")[0] == 200
    credentials.write_text(f"- {{name: anna, role: admin, token: '{hash_of('anna')}'}}\n")
    service.wait_for("the credentials were reloaded")
    assert ask(f"{address}/{NODE}/drain", "otto")[0] == 401
    assert ask(f"{address}/ws/v1/whoami", "anna", "GET")[1]["role"] == "admin"
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    assert not any("sha256:" in line for line in service.log)


@UNIX
def test_certificate_of_a_client_is_a_credential(
    start: Start, certificates: Certificates, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials.yaml"
    credentials.write_text("- {name: carl, role: operate, certificate: carl of the operators}\n")
    service, address = demo(
        start,
        *("--tls-cert", str(certificates.certificate), "--tls-key", str(certificates.key)),
        *("--tls-client-ca", str(certificates.client_authority)),
        *("--rest-credentials", str(credentials)),
    )
    for name, status in (("carl of the operators", 200), ("carl", 401)):
        context = ssl.create_default_context(cadata=certificates.roots.decode())
        leaf = certificates.clients.issue_cert("carl.example.org", common_name=name)
        leaf.configure_cert(context)
        assert ask(f"{address}/{NODE}/drain", context=context)[0] == status
        assert ask(f"{address}/ws/v1/partitions", method="GET", context=context)[0] == 200
    service.signal(signal.SIGTERM)
    assert service.end() == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--rest-credentials", "/no/such/file"), "--rest-credentials /no/such/file: cannot be read"),
        (("--rest-credentials", "FILE", "--audit-log", "/no/such/file"), "--audit-log /no/such/file: cannot"),
        (("--audit-log", "audit"), "--audit-log needs --rest-credentials"),
        (("--rest", "off", "--rest-credentials", "FILE"), "--rest-credentials needs REST"),
    ],
)
def test_options_that_cannot_be_used(
    options: tuple[str, ...], text: str, credentials: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(credentials) if option == "FILE" else option for option in options]
    rest = () if "--rest" in options else ("--rest", FREE)
    assert main(["serve", "--demo", "--grpc", "off", *rest, *given]) == 2
    assert text in capsys.readouterr().err


TLS, AUTHORITY = ServerTls(Path("c"), Path("k")), ServerTls(Path("c"), Path("k"), Path("a"))


@pytest.mark.parametrize(
    ("address", "tls", "is_open", "insecure", "with_file", "reading_is_open"),
    [
        ("127.0.0.1:1", None, False, False, True, True),
        ("0.0.0.0:1", TLS, False, False, True, False),
        ("0.0.0.0:1", TLS, True, False, True, True),
        ("0.0.0.0:1", AUTHORITY, False, False, True, True),
        ("0.0.0.0:1", None, False, True, True, False),
        ("0.0.0.0:1", None, True, True, True, True),
        ("0.0.0.0:1", None, False, True, False, True),
    ],
)
def test_who_may_read(
    address: str,
    tls: ServerTls | None,
    is_open: bool,
    insecure: bool,
    with_file: bool,
    reading_is_open: bool,
    credentials: Path,
) -> None:
    settings = RestSettings(is_open=is_open, credentials=credentials if with_file else None)
    access = RestAccess(settings, tls, lambda: 0, lambda: 0)
    access.check(HostAddress.parse(address), insecure=insecure)
    assert access.gate.reading_is_open is reading_is_open


@pytest.mark.parametrize(("tls", "with_file"), [(None, True), (None, False), (TLS, False)])
def test_addresses_that_need_more(tls: ServerTls | None, with_file: bool, credentials: Path) -> None:
    access = RestAccess(
        RestSettings(credentials=credentials if with_file else None), tls, lambda: 0, lambda: 0
    )
    with pytest.raises(UsageError, match=r"--rest 0\.0\.0\.0:1 can be "):
        access.check(HostAddress.parse("0.0.0.0:1"), insecure=False)
