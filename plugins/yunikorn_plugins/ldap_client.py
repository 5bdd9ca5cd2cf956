"""Searches in an LDAP server by `ldap3`, for the resolver `ldap`.

May be used from several threads: a connection is used by one search at a time and belongs to no thread. A
search is bounded in time as a whole, because a server may answer each read in time and yet never end.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import warnings
from contextlib import suppress
from types import TracebackType
from typing import Any

from yunikorn_plugins.ldap_settings import LdapSettings, group_of

with warnings.catch_warnings():
    # ldap3 2.9 uses names that pyasn1 has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import ldap3
    from ldap3.core.exceptions import LDAPException, LDAPOperationResult
    from ldap3.core.results import RESULT_SUCCESS
    from ldap3.operation.search import parse_filter
    from ldap3.utils.conv import escape_filter_chars

MOST_IDLE = 4
"""Maximum number of connections that are kept for later searches."""
MOST_ENTRIES = 10_000
"""Maximum number of entries that the server may return for a user."""

connect, server_at = ldap3.Connection, ldap3.Server
"""Makers of connections and of servers; a test replaces the first by a directory in memory."""

_PERCENT = re.compile("%[%s]")


class DirectoryFailed(Exception):
    """The directory did not answer, or refused; the text never contains the password."""


class Directory:
    """An LDAP server, and the connections that are kept to it."""

    def __init__(self, settings: LdapSettings) -> None:
        """Check the settings, without a connection.

        Raises `ValueError` for an invalid filter or host, `OSError` for an unusable CA file.
        """
        self._settings = settings
        self._context = _tls_context(settings) if settings.ssl or settings.starttls else None
        self._lock = threading.Lock()
        self._idle: list[ldap3.Connection] = []
        self._closed = False
        try:
            self._server()
            parse_filter(self._filter_for("user"), None, True, True, None, False)  # type: ignore[no-untyped-call]
        except LDAPException as error:
            raise ValueError(f"invalid setting: {error}") from None

    def groups(self, user: str) -> list[str] | None:
        """Return the sorted groups of all entries for a user, or None if there is no entry.

        Raises `DirectoryFailed`.
        """
        with Deadline(self._settings.timeout) as deadline:
            try:
                return self._groups(user, deadline)
            except Exception as error:
                raise DirectoryFailed(
                    f"{self._settings.address}: {self._describe(error, deadline)}"
                ) from None

    def close(self) -> None:
        """Close all idle connections now, and the others when their search ends."""
        with self._lock:
            self._closed = True
        self._close_idle()

    def _groups(self, user: str, deadline: Deadline) -> list[str] | None:
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            try:
                return self._search(idle, user, deadline)
            except Exception:
                if deadline.passed:
                    raise
                # A server closes idle connections: the others are probably unusable, too.
                self._close_idle()
        return self._search(self._open(deadline), user, deadline)

    def _search(self, connection: ldap3.Connection, user: str, deadline: Deadline) -> list[str] | None:
        """Search with this connection, and keep it; it is closed if the search fails."""
        settings = self._settings
        try:
            deadline.watch(connection)
            connection.search(
                settings.base,
                self._filter_for(user),
                ldap3.SUBTREE,
                dereference_aliases=ldap3.DEREF_NEVER,
                attributes=[settings.attribute],
                size_limit=MOST_ENTRIES,
                time_limit=_whole(settings.timeout),
            )
            deadline.watch(None)
            _check_complete(connection)
        except BaseException:
            _close(connection)
            raise
        entries = [found for found in connection.response or () if found["type"] == "searchResEntry"]
        self._keep(connection)
        if not entries:
            return None
        return sorted({group for entry in entries for group in _groups_in(entry, settings.attribute)})

    def _open(self, deadline: Deadline) -> ldap3.Connection:
        """Return a new connection after a successful bind."""
        settings = self._settings
        server = self._server()
        # ldap3 tries all addresses of a name in turn, each with this time limit.
        server.connect_timeout = settings.timeout / max(1, len(server.candidate_addresses()))  # type: ignore[no-untyped-call]
        connection = connect(
            server,
            settings.bind_user,
            settings.password(),
            authentication=ldap3.SIMPLE,
            client_strategy=ldap3.SYNC,
            auto_referrals=False,
            check_names=False,
            read_only=True,
            raise_exceptions=True,
            receive_timeout=_whole(settings.timeout),
        )
        try:
            deadline.watch(connection)
            connection.open(read_server_info=False)
            if settings.starttls:
                connection.start_tls(read_server_info=False)
                # `bind` would open a closed connection again, without TLS.
                if not connection.tls_started or connection.closed:
                    raise DirectoryFailed("the connection could not be encrypted")
            if not connection.bind(read_server_info=False):
                raise DirectoryFailed(f"the bind failed: {connection.result['description']}")
        except BaseException:
            _close(connection)
            raise
        return connection

    def _server(self) -> ldap3.Server:
        """Return a new object for the server: that of ldap3 has state of its connection."""
        settings = self._settings
        return server_at(
            settings.host,
            settings.port,
            use_ssl=settings.ssl,
            tls=None if self._context is None else Tls(self._context, settings.host.strip("[]")),
            get_info=ldap3.NONE,
            connect_timeout=settings.timeout,
        )

    def _keep(self, connection: ldap3.Connection) -> None:
        with self._lock:
            kept = not self._closed and len(self._idle) < MOST_IDLE
            if kept:
                self._idle.append(connection)
        if not kept:
            _close(connection)

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)

    def _filter_for(self, user: str) -> str:
        """Return the filter for a user, whose name cannot change the meaning of the filter."""
        escaped = escape_filter_chars(user)
        return _PERCENT.sub(lambda found: escaped if found.group() == "%s" else "%", self._settings.filter)

    def _describe(self, error: Exception, deadline: Deadline) -> str:
        if deadline.passed:
            return f"no answer within {self._settings.timeout:g} seconds"
        if isinstance(error, LDAPOperationResult):
            return f"the server refused: {error.description} {error.message or ''}".rstrip()
        if isinstance(error, DirectoryFailed):
            return str(error)
        return f"{type(error).__name__}: {error}"


class Deadline:
    """Time limit of a look-up: when it has passed, the watched connection is cut."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._connection: ldap3.Connection | None = None
        self.passed = False

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def watch(self, connection: ldap3.Connection | None) -> None:
        """Cut this connection when the time has passed. Raises `TimeoutError` if it already has."""
        with self._lock:
            self._connection = connection
            if self.passed:
                raise TimeoutError

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            connected = self._connection and self._connection.socket
        if connected:
            with suppress(OSError):  # it is closed, or not yet connected; connecting has a limit of its own
                connected.shutdown(socket.SHUT_RDWR)


class Tls(ldap3.Tls):
    """TLS by a context of Python, which also checks the host name in the certificate."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        super().__init__(validate=context.verify_mode)
        self._context = context
        self._host = host

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Add TLS to the connection; the deadline can cut it during the handshake."""
        wrapped = self._context.wrap_socket(
            connection.socket, server_hostname=self._host, do_handshake_on_connect=False
        )
        connection.socket = wrapped
        wrapped.do_handshake()


def _tls_context(settings: LdapSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca)
    except OSError as error:
        raise OSError(f"unusable CA file {settings.ca}: {error}") from None
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check_complete(connection: ldap3.Connection) -> None:
    """Raise `DirectoryFailed` unless the search succeeded: ldap3 also returns a part of the entries."""
    result = connection.result
    if result["result"] != RESULT_SUCCESS:
        raise DirectoryFailed(f"the search was not completed: {result['description']}")


def _groups_in(entry: Any, attribute: str) -> list[str]:
    wanted = attribute.lower()
    values = [
        value.decode("utf-8", "replace")
        for name, found in entry["raw_attributes"].items()
        if name.partition(";")[0].lower() == wanted
        for value in found
    ]
    return [group for value in values if (group := group_of(attribute, value))]


def _close(connection: ldap3.Connection) -> None:
    connected = connection.socket
    with suppress(Exception):  # the connection is given up in any case
        connection.unbind()
    # ldap3 leaves the socket of a connection open that could not be opened in full.
    if connected:
        connected.close()


def _whole(seconds: float) -> int:
    """Return whole seconds, rounded up, as ldap3 requires."""
    return -int(-seconds // 1)
