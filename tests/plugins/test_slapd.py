"""The `ldap` user-group resolver against a real server: slapd of OpenLDAP, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme

from yunikorn.api import Context
from yunikorn_plugins import ldap_client
from yunikorn_plugins.ldap_groups import Ldap

SLAPD = shutil.which("slapd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/libexec:/usr/libexec")
SCHEMAS = next(
    (path for path in map(Path, ("/etc/ldap/schema", "/etc/openldap/schema")) if path.is_dir()), None
)
MODULES = next((path for path in map(Path, ("/usr/lib/ldap", "/usr/lib64/openldap")) if path.is_dir()), None)

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.skipif(not (SLAPD and SCHEMAS and MODULES), reason="slapd of OpenLDAP is not installed"),
]

CONFIGURATION = """\
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/nis.schema
include {schemas}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
idletimeout 0
database mdb
suffix "dc=example,dc=org"
rootdn "cn=admin,dc=example,dc=org"
rootpw admin-pass-phrase
directory {folder}/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=reader,dc=example,dc=org" read by * none
"""
ENTRIES = """\
dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: cn=reader,dc=example,dc=org
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: reader-pass-phrase

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: uid=ann,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Lee

dn: uid=bob,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: Lee

dn: cn=science\\, applied,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: science, applied
member: uid=ann,ou=people,dc=example,dc=org

dn: cn=staff,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: staff
member: uid=ann,ou=people,dc=example,dc=org
member: uid=bob,ou=people,dc=example,dc=org

dn: cn=render,ou=groups,dc=example,dc=org
objectClass: posixGroup
cn: render
gidNumber: 5000
memberUid: ann
"""


@attrs.frozen
class Slapd:
    """A running server."""

    folder: Path
    port: int
    tls_port: int

    def resolver(self, **options: Any) -> Ldap:
        """Return an opened resolver for the server."""
        made = Ldap(
            self.folder / "secrets",
            host="localhost",
            port=options.pop("port", self.port),
            basedn="dc=example,dc=org",
            filter=options.pop("filter", "(&(objectClass=inetOrgPerson)(uid=%s))"),
            binduser="cn=reader,dc=example,dc=org",
            ca=self.folder / "ca.pem",
            **options,
        )
        made.opened(Context("default", lambda: 0))
        return made


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    assert SLAPD is not None
    folder = tmp_path_factory.mktemp("slapd")
    for name in ("data", "secrets"):
        (folder / name).mkdir()
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "server.key"))
    (folder / "secrets" / "BindPassword").write_text("reader-pass-phrase\n")
    configuration, entries = folder / "slapd.conf", folder / "entries.ldif"
    configuration.write_text(CONFIGURATION.format(folder=folder, schemas=SCHEMAS, modules=MODULES))
    entries.write_text(ENTRIES)
    port, tls_port = free_ports(2)
    urls = f"ldap://127.0.0.1:{port} ldaps://127.0.0.1:{tls_port}"
    # With -d the server stays in the foreground and writes a few lines.
    command = [SLAPD, "-f", str(configuration), "-h", urls, "-d", "none"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines: list[str] = []
            while lines[-1:] == [] or "slapd starting" not in lines[-1]:
                lines.append(process.stderr.readline())
                assert lines[-1], "".join(lines)
            wait_for(process, port)
            add(entries, port)
            yield Slapd(folder, port, tls_port)
        finally:
            process.terminate()


def wait_for(process: subprocess.Popen[str], port: int) -> None:
    """Wait until the server accepts connections, which is after it has said that it starts."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            raise
        return


def add(entries: Path, port: int) -> None:
    """Add the entries of a file by the protocol, so that the overlay for `memberOf` sees them."""
    with ldap_client.connect(
        ldap_client.server_at("127.0.0.1", port),
        "cn=admin,dc=example,dc=org",
        "admin-pass-phrase",
        raise_exceptions=True,
    ) as connection:
        for text in entries.read_text().split("\n\n"):
            pairs = [line.split(": ", 1) for line in text.strip().splitlines()]
            found: dict[str, list[str]] = {}
            for name, value in pairs[1:]:
                found.setdefault(name, []).append(value)
            classes = found.pop("objectClass")
            connection.add(pairs[0][1], classes, found)  # type: ignore[no-untyped-call]


def free_ports(number: int) -> list[int]:
    """Return ports of this machine that are free now."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_groups_of_a_user(slapd: Slapd) -> None:
    resolver = slapd.resolver()
    assert resolver.groups("ann") == ["ann", "science, applied", "staff"]
    assert resolver.groups("bob") == ["bob", "staff"]
    assert resolver.groups("cid") is None
    for harmful in ("*", "a*", "ann)(uid=*", "\x00", "\\2a"):
        assert resolver.groups(harmful) is None
    resolver.closed()


def test_posix_groups(slapd: Slapd) -> None:
    resolver = slapd.resolver(filter="(&(objectClass=posixGroup)(memberUid=%s))", groupattr="cn")
    assert resolver.groups("ann") == ["ann", "render"]
    resolver.closed()


def test_encryption(slapd: Slapd) -> None:
    for options in ({"ssl": True, "port": slapd.tls_port}, {"starttls": True}):
        resolver = slapd.resolver(**options)
        assert resolver.groups("bob") == ["bob", "staff"]
        resolver.closed()
    resolver = attrs.evolve(slapd.resolver(starttls=True), ca=None)
    resolver.opened(Context("default", lambda: 0))
    with pytest.raises(Exception, match="certificate verify failed"):
        resolver.groups("bob")


def test_wrong_password_and_wrong_base(slapd: Slapd) -> None:
    resolver = attrs.evolve(slapd.resolver(), basedn="dc=elsewhere")
    resolver.opened(Context("default", lambda: 0))
    with pytest.raises(Exception, match="noSuchObject"):
        resolver.groups("ann")
    resolver.closed()
    password = slapd.folder / "secrets" / "BindPassword"
    before = password.read_text()
    password.write_text("wrong")
    with pytest.raises(Exception, match="invalidCredentials"):
        slapd.resolver().groups("ann")
    password.write_text(before)
