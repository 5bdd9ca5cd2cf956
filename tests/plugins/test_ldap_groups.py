"""The `ldap` user-group resolver, against a scripted server."""

from __future__ import annotations

import logging
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.plugins.ldap_server import Entry, LdapServer, elements
from yunikorn.api import Context
from yunikorn.errors import OptionError, PluginError
from yunikorn.framework.kinds import RESOLVER
from yunikorn.framework.registry import Registry
from yunikorn_plugins import ldap_client
from yunikorn_plugins.ldap_groups import READING, Ldap
from yunikorn_plugins.ldap_settings import group_of, read_settings
from yunikorn_testing import MakeScheduler, application, assert_queue, assert_rejected_because

pytestmark = pytest.mark.net

SETTINGS = {
    "Host": "127.0.0.1",
    "BaseDN": "dc=example,dc=org",
    "Filter": "(&(objectClass=person)(sAMAccountName=%s))",
    "BindUser": "cn=reader,dc=example,dc=org",
    "BindPassword": "secret\n",
    "ReturnAttr": "memberOf",
}
ANN: Entry = (
    "cn=Ann,ou=people,dc=example,dc=org",
    {
        "memberOf": [
            b"CN=staff,OU=groups,DC=example,DC=org",
            b"cn=science,ou=groups,dc=example,dc=org",
            b"CN=science,OU=other,DC=example,DC=org",
        ],
        "cn": [b"Ann"],
    },
)

Open = Callable[..., Ldap]


@pytest.fixture
def server() -> Iterator[LdapServer]:
    with LdapServer({"ann": [ANN], "bob": [("cn=Bob", {})]}) as made:
        yield made


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    for name, text in SETTINGS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def resolver(server: LdapServer, secrets: Path) -> Iterator[Open]:
    """Return a function that makes an opened resolver; all are closed at the end."""
    made = []

    def make(**options: Any) -> Ldap:
        one = Ldap(secrets=secrets, port=options.pop("port", server.port), **options)
        one.opened(Context("default", lambda: 0))
        made.append(one)
        return one

    yield make
    for one in made:
        one.closed()


# -- look-ups ------------------------------------------------------------------------------------------


def test_groups_are_the_first_parts_of_member_of_after_the_own_group(
    server: LdapServer, resolver: Open
) -> None:
    assert resolver().groups("ann") == ["ann", "science", "staff"]
    assert server.binds == [(b"cn=reader,dc=example,dc=org", b"secret")]
    assert server.asked_for == [[b"memberOf"]]


def test_user_without_entry_is_unknown_unless_accepted(resolver: Open) -> None:
    assert resolver().groups("cid") is None
    assert resolver().groups("") is None
    assert resolver(unknown="accept").groups("cid") == ["cid"]


def test_user_without_groups_has_the_own_group(resolver: Open) -> None:
    assert resolver().groups("bob") == ["bob"]
    assert resolver(owngroup=False).groups("bob") == []
    assert resolver(owngroup=False).groups("ann") == ["science", "staff"]


def test_several_entries_are_united_and_group_entries_have_plain_names(
    server: LdapServer, resolver: Open
) -> None:
    server.entries["ann"] = [("cn=a", {"CN": [b"role=admin"]}), ("cn=b", {"cn;lang-de": [b"b", b"a"]})]
    found = resolver(groupattr="cn", filter="(&(objectClass=posixGroup)(memberUid=%s))").groups("ann")
    assert found == ["ann", "a", "b", "role=admin"]


def shape(encoded: bytes, user: str) -> list[Any]:
    """Return the elements of a filter, with `NAME` instead of the name of the user."""
    return [
        (tag, shape(content, user) if tag & 0x20 else "NAME" if content == user.encode() else content)
        for tag, content in elements(encoded)
    ]


@pytest.mark.parametrize("user", ["*", "ann)(objectClass=*", "a\\2a", "\x00", "(", "ä ö", "x" * 300, "ann*"])
def test_user_name_cannot_change_the_filter(user: str, server: LdapServer, resolver: Open) -> None:
    one = resolver(filter="(&(100%%=x)(uid=%s)(!(mail=%s)))")
    server.entries[user] = [ANN]
    assert one.groups(user) == [user, "science", "staff"]
    one.groups("plain")
    harmful, plain = server.searches
    assert shape(harmful, user) == shape(plain, "plain")
    assert str(shape(plain, "plain")).count("NAME") == 2


@pytest.mark.parametrize(
    ("value", "group"),
    [
        ("CN=science,OU=groups", "science"),
        ("cn = science , ou=x", "science"),
        ("CN=a\\,b,OU=x", "a,b"),
        ("CN=a\\2Cb\\c3\\a4,OU=x", "a,bä"),
        ("CN=end\\ ,OU=x", "end "),
        ("cn=a+gidNumber=5,ou=x", "a"),
        ("2.5.4.3=oid,ou=x", "oid"),
        ("plain", "plain"),
        ("CN=", ""),
        ("CN=trailing\\", "trailing\\"),
        ("", ""),
    ],
)
def test_name_of_a_group_in_a_distinguished_name(value: str, group: str) -> None:
    assert group_of("memberOf", value) == group


# -- connections ---------------------------------------------------------------------------------------


def test_connection_is_used_again_and_from_any_thread(server: LdapServer, resolver: Open) -> None:
    one = resolver()
    found = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: found.append(one.groups("ann")))
        thread.start()
        thread.join()
    one.groups("bob")
    assert found == [["ann", "science", "staff"]] * 3
    assert server.connections == 1


def test_several_threads_have_a_connection_each(server: LdapServer, resolver: Open) -> None:
    one, found = resolver(), []
    for _ in range(3):
        threads = [threading.Thread(target=lambda: found.append(one.groups("ann"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [["ann", "science", "staff"]] * 24
    one.closed()
    assert one.groups("ann") == ["ann", "science", "staff"]  # of a thread that began before the end
    assert one._directory._idle == []


def test_connection_that_the_server_closed_is_replaced(server: LdapServer, resolver: Open) -> None:
    server.hang_up_after = 2
    one = resolver()
    for number in range(1, 4):
        assert one.groups("ann") == ["ann", "science", "staff"]
        assert server.connections == number


def test_changed_password_needs_no_reload(server: LdapServer, secrets: Path, resolver: Open) -> None:
    one = resolver()
    (secrets / "BindPassword").write_text("wrong")
    with pytest.raises(Exception, match=r"ldap://127.0.0.1:\d+: the server refused: invalidCredentials"):
        one.groups("ann")
    (secrets / "BindPassword").write_text("secret")
    assert one.groups("ann") == ["ann", "science", "staff"]


# -- failures ------------------------------------------------------------------------------------------


def test_server_that_is_away_fails(server: LdapServer, resolver: Open) -> None:
    one = resolver()
    server._server.shutdown()
    server._server.server_close()
    with pytest.raises(Exception, match="Connection refused"):
        one.groups("ann")


@pytest.mark.parametrize("phase", ["bind", "search", "tls"])
def test_look_up_is_bounded_in_time(phase: str, server: LdapServer, resolver: Open) -> None:
    if phase == "search":
        server.dripping = threading.Event()
    else:
        server.silent = True
    one = resolver(timeout=0.1, ssl=phase == "tls", insecure=True)
    with pytest.raises(Exception, match=r"no answer within 0\.1 seconds"):
        one.groups("ann")


def test_addresses_of_a_name_share_the_time(
    server: LdapServer, resolver: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, limits = resolver(timeout=2.0), []
    known = ldap_client.server_at.candidate_addresses

    def four(self: Any) -> Any:
        return known(self) * 4  # type: ignore[no-untyped-call]

    def unreachable(self: Any, address: object, *arguments: object, **options: object) -> None:
        limits.append(self.connection.server.connect_timeout)
        raise OSError("unreachable")

    monkeypatch.setattr(ldap_client.server_at, "candidate_addresses", four)
    monkeypatch.setattr("ldap3.strategy.base.BaseStrategy._open_socket", unreachable)
    with pytest.raises(Exception, match="unreachable"):
        one.groups("ann")
    assert limits == [0.5] * 4


@pytest.mark.parametrize("code", [3, 4, 10, 32, 51])
def test_incomplete_search_fails(code: int, server: LdapServer, resolver: Open) -> None:
    server.search_result = code
    with pytest.raises(Exception, match=r"the (server refused|search was not completed): "):
        resolver().groups("ann")


def test_failure_rejects_the_application_and_the_password_is_nowhere(
    server: LdapServer, secrets: Path, scheduler: MakeScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.password = b"another"
    (secrets / "BindPassword").write_text("pass-phrase")
    options = f"{{type: ldap, secrets: {secrets}, port: {server.port}, cache: {{failed: 5s}}}}"
    cluster = scheduler(
        f"partitions: [{{name: default, usergroupresolver: {options}, "
        "queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]",
        failures="expected",
    )
    cluster.submit(application("first", "root.a", user="ann", groups=()))
    assert_rejected_because(cluster, "first", "invalidCredentials")
    server.password = b"pass-phrase"
    cluster.submit(application("soon", "root.a", user="ann", groups=()))
    assert_rejected_because(cluster, "soon", "invalidCredentials")
    cluster.advance(5)
    cluster.submit(application("later", "root.a", user="ann", groups=()))
    assert_queue(cluster, "later", "root.a")
    (failure,) = cluster.failures
    shown = "".join([*caplog.messages, str(failure), repr(cluster.rejected)])
    assert "pass-phrase" not in shown
    assert "without encryption" in shown


# -- TLS -----------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, Path]:
    made = trustme.CA()
    path = tmp_path / "ca.pem"
    made.cert_pem.write_to_path(str(path))
    return made, path


def certified(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


@pytest.mark.parametrize("mode", ["ssl", "starttls"])
def test_encryption(
    mode: str, server: LdapServer, resolver: Open, authority: tuple[trustme.CA, Path]
) -> None:
    server.tls, server.implicit_tls = certified(authority[0], "127.0.0.1"), mode == "ssl"
    one = resolver(**{mode: True}, ca=authority[1])
    assert one.groups("ann") == one.groups("ann") == ["ann", "science", "staff"]
    assert server.encrypted == server.connections == 1


@pytest.mark.parametrize("mode", ["ssl", "starttls"])
@pytest.mark.parametrize("fault", ["name", "authority"])
def test_certificate_is_checked_unless_insecure(
    mode: str, fault: str, server: LdapServer, resolver: Open, authority: tuple[trustme.CA, Path]
) -> None:
    made, ca = authority
    server.tls = certified(*((made, "ldap.example.org") if fault == "name" else (trustme.CA(), "127.0.0.1")))
    server.implicit_tls = mode == "ssl"
    with pytest.raises(Exception, match="certificate verify failed"):
        resolver(**{mode: True}, ca=ca).groups("ann")
    assert not server.binds
    one = resolver(**{mode: True}, ca=ca, insecure=True)
    assert one.groups("ann") == ["ann", "science", "staff"]


def test_nothing_is_sent_if_the_server_has_no_tls(server: LdapServer, resolver: Open) -> None:
    with pytest.raises(Exception, match="protocolError"):
        resolver(starttls=True, insecure=True).groups("ann")
    assert not server.binds


# -- settings ------------------------------------------------------------------------------------------


def test_settings_are_read_from_files_which_options_replace(secrets: Path) -> None:
    (secrets / "SSL").write_text("True\n")
    (secrets / "Insecure").write_text("0")
    read = read_settings(secrets, {"Host": "other", "BaseDN": None, "GroupAttr": None}, timeout=1.0)
    assert (read.host, read.base, read.attribute) == ("other", "dc=example,dc=org", "memberOf")
    assert (read.address, read.insecure, read.password()) == ("ldaps://other:636", False, "secret")
    assert read_settings(secrets, {"SSL": False}, timeout=1.0).address == "ldap://127.0.0.1:389"
    assert "secret" not in repr(read)


def test_all_problems_of_the_settings_are_reported_without_contents(tmp_path: Path) -> None:
    (tmp_path / "Port").write_text("65536")
    (tmp_path / "SSL").write_text("maybe")
    (tmp_path / "Filter").write_text("(uid=%%s)")
    (tmp_path / "BindPassword").write_bytes(b"caf\xe9")
    (tmp_path / "BaseDN").mkdir()
    (tmp_path / "BindUser").write_text("x" * 70_000)
    with pytest.raises(ValueError, match="Port must be") as caught:
        read_settings(tmp_path, {"Host": None}, timeout=1.0)
    for part in (
        "not '65536'",
        "SSL must be true or false",
        "Filter must contain %s",
        "BindPassword is not UTF-8",
        "Is a directory",
        "more than 65536 bytes",
        "Host, and the option 'host' is not set",
    ):
        assert part in str(caught.value)
    (tmp_path / "BindPassword").write_text("\n")
    with pytest.raises(ValueError, match="BindPassword is empty"):
        read_settings(tmp_path, {}, starttls=True, timeout=1.0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"filter": "(uid=%s"}, "invalid setting"),
        ({"filter": "uid=%s"}, "invalid setting"),
        ({"ca": Path("/missing.pem"), "ssl": True}, "unusable CA file /missing.pem"),
        ({"ssl": True, "starttls": True}, "use either SSL"),
        ({"host": "a://b"}, "invalid setting"),
    ],
)
def test_invalid_setting_refuses_the_configuration(
    options: dict[str, Any], problem: str, resolver: Open
) -> None:
    with pytest.raises((ValueError, OSError), match=problem):
        resolver(**options)


def test_reload_reads_the_settings_again_and_keeps_them_if_they_are_wrong(
    secrets: Path, server: LdapServer, resolver: Open
) -> None:
    one, reports = resolver(), []
    context = Context("default", lambda: 0, None, lambda operation, cause: reports.append(operation))
    one.groups("ann")
    (secrets / "BindUser").write_text("cn=other")
    one.reloaded(context)
    one.groups("ann")
    assert [name for name, _ in server.binds] == [b"cn=reader,dc=example,dc=org", b"cn=other"]
    (secrets / "BindUser").unlink()
    one.reloaded(context)
    assert one.groups("ann") == ["ann", "science", "staff"]
    assert reports == [READING]


def test_options_are_checked(registry: Registry) -> None:
    for options in ({"timeout": "9"}, {"timeout": "0"}, {"unknown": "maybe"}, {"bindpassword": "x"}):
        with pytest.raises(OptionError):
            registry.make(RESOLVER, "ldap", options)
    made = registry.make(RESOLVER, "ldap", {"port": "389", "ssl": "yes", "ca": "/ca.pem", "timeout": "8"})
    assert (made.port, made.ssl, made.ca, made.secrets) == (
        389,
        True,
        Path("/ca.pem"),
        Path("/run/secrets/ldap"),
    )


def test_missing_extra_is_one_clear_error(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ldap3", None)
    with pytest.raises(PluginError, match=r"ldap3 is not installed: pip install 'yunikorn\[ldap\]'"):
        registry.make(RESOLVER, "ldap", {})
