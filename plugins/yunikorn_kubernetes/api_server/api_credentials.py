"""Credentials for an API server: from a kubeconfig file, or those of a pod inside the cluster."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs

from yunikorn.errors import CONTAINED, UsageError
from yunikorn_kubernetes.api_server.key_pairs import load_key_pair
from yunikorn_kubernetes.api_server.kubeconfig_files import Kubeconfig, KubeconfigEntry, KubeconfigError

if TYPE_CHECKING:
    from yunikorn_kubernetes.api_server.credential_plugins import CredentialPlugin

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of the credentials of a pod."""


class CredentialsError(UsageError):
    """Unusable or missing credentials; the message names the file and what to change."""


@attrs.frozen
class ServerAccess:
    """Address of an API server, and what it needs to accept requests."""

    url: str
    tls: ssl.SSLContext | None
    """None for a server without TLS."""
    authorization: str = attrs.field(default="", repr=False)
    """Value of the header, or empty."""
    server_name: str = ""
    """Name that the certificate of the server must have, if not that of the address."""
    proxy: str = ""
    namespace: str = "default"


class ApiCredentials(Protocol):
    """Source of credentials."""

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Return the credentials that are valid now; `rejected` means that the server refused the last ones.

        Raises `CredentialsError`.
        """
        ...


@attrs.frozen
class ConnectionSettings:
    """Settings of a connection, of whatever origin."""

    url: str
    authority: bytes | None = None
    """Certificates of the authorities to trust, in PEM; None for those of the system."""
    certificate: bytes | None = None
    """Certificate of this client, in PEM."""
    key: bytes | None = attrs.field(default=None, repr=False)
    verifies: bool = True
    """False to accept any certificate of the server."""
    server_name: str = ""
    proxy: str = ""
    authorization: str = attrs.field(default="", repr=False)
    namespace: str = ""
    origin: str = ""
    """Names of the certificates, for messages."""


class TLSContexts:
    """TLS context of the latest certificates; a new one is made only when they have changed."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._made: ssl.SSLContext | None = None

    def context(self, settings: ConnectionSettings) -> ssl.SSLContext:
        """Return the context for settings. Raises `CredentialsError` for unusable certificates."""
        key = (settings.authority, settings.certificate, settings.key, settings.verifies)
        if self._made is None or key != self._key:
            try:
                self._made = self._make(settings)
            except (OSError, ValueError) as error:
                raise CredentialsError(f"unusable certificates ({settings.origin}): {error}") from error
            self._key = key
        return self._made

    @staticmethod
    def _make(settings: ConnectionSettings) -> ssl.SSLContext:
        trusted = None if settings.authority is None else settings.authority.decode("ascii", "replace")
        made = ssl.create_default_context(cadata=trusted)
        # Python 3.13 refuses authorities without a key identifier, which many clusters have.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.verifies:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        if settings.certificate is not None:
            load_key_pair(made, settings.certificate, settings.key or b"")
        return made


def access_of(settings: ConnectionSettings, contexts: TLSContexts) -> ServerAccess:
    """Return the access that settings describe. Raises `CredentialsError`."""
    return ServerAccess(
        url=settings.url.rstrip("/"),
        tls=contexts.context(settings) if settings.url.startswith("https:") else None,
        authorization=settings.authorization,
        server_name=settings.server_name,
        proxy=settings.proxy,
        namespace=settings.namespace or "default",
    )


class InClusterCredentials:
    """Credentials that Kubernetes mounts into a pod. Their token rotates, so each `load` reads the file."""

    def __init__(self, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> None:
        host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
        self._url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._folder = folder
        self._contexts = TLSContexts()

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Read the mounted files. Raises `CredentialsError`."""
        namespace = self._folder / "namespace"
        try:
            token = (self._folder / "token").read_text("utf-8").strip()
            settings = ConnectionSettings(
                self._url,
                authority=(self._folder / "ca.crt").read_bytes(),
                authorization=f"Bearer {token}",
                namespace=namespace.read_text("utf-8").strip() if namespace.exists() else "",
                origin="ca.crt",
            )
            if not token:
                raise CredentialsError("the file token is empty")
            return access_of(settings, self._contexts)
        except (CredentialsError, OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"credentials of the pod in {self._folder}: {error}") from error


class KubeconfigCredentials:
    """Credentials of a context of a kubeconfig: token, token file, client certificate, or exec plugin.

    `paths` are separated as in the variable KUBECONFIG; an empty `context` is the current one. The files are
    read again after a change or a rejection. An exec plugin is called again when its credentials expire, or
    after a rejection.
    """

    def __init__(self, paths: str, context: str = "", *, origin: str = "") -> None:
        """Create credentials of files; `origin` names what has named the files, for messages."""
        self._paths = paths
        self._label = f"kubeconfig {paths}" + (f" (named by {origin})" if origin else "")
        self._context = context
        self._contexts = TLSContexts()
        self._seen: list[tuple[int, int]] = []
        """Modification time and size of each file when it was read."""
        self._files: Kubeconfig | None = None
        self._plugin: CredentialPlugin | None = None
        self._kept: ServerAccess | None = None
        """Credentials of an exec plugin that did not say when they expire."""

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Return the credentials of the context. Raises `CredentialsError`."""
        try:
            files = self._read_files(rejected=rejected)
            if self._kept is not None:
                return self._kept
            context = self._context_of(files)
            user = files.entry("users", context.text("user")) if context.text("user") else KubeconfigEntry()
            settings = _settings_of(files.entry("clusters", context.text("cluster")), user, context)
            if not PLUGINS & user.content.keys():
                return access_of(settings, self._contexts)
            settings, expires = await self._ask_plugin(settings, context, user)
            access = access_of(settings, self._contexts)
            if not expires:
                self._kept = access
            return access
        except KubeconfigError as error:
            raise CredentialsError(f"{self._label} {error}") from error
        except CredentialsError as error:
            raise CredentialsError(f"{self._label}: {error}") from error
        except CONTAINED as error:
            # The library that calls plugins reports malformed entries by many types of exceptions.
            raise CredentialsError(f"{self._label}: {error or type(error).__name__}") from error

    def _read_files(self, *, rejected: bool) -> Kubeconfig:
        """Return the entries of the files, read again if one has changed."""
        paths = [Path(path).expanduser() for path in self._paths.split(os.pathsep) if path]
        present = [file for file in paths if file.is_file()]
        if not present:
            raise KubeconfigError("does not exist")
        seen = [(stat.st_mtime_ns, stat.st_size) for stat in map(Path.stat, present)]
        if self._files is None or seen != self._seen or rejected:
            self._plugin = self._kept = None
            self._files = Kubeconfig(present)
            self._seen = seen
        return self._files

    def _context_of(self, files: Kubeconfig) -> KubeconfigEntry:
        """Return the context that is to be used. Raises `KubeconfigError`, with the contexts that exist."""
        known = files.names("contexts")
        wanted = self._context or files.current
        if wanted in known:
            return files.entry("contexts", wanted)
        has = f"has: {', '.join(known)}" if known else "has none"
        if not wanted:
            raise KubeconfigError(f"names no current context: name one with --context; it {has}")
        raise KubeconfigError(f"has no context '{wanted}'; it {has}")

    async def _ask_plugin(
        self, settings: ConnectionSettings, context: KubeconfigEntry, user: KubeconfigEntry
    ) -> tuple[ConnectionSettings, bool]:
        """Return the settings with the credentials of a plugin, and True if these have an end."""
        # Imported here because the library takes a fifth of the start.
        from yunikorn_kubernetes.api_server.credential_plugins import CredentialPlugin

        if self._plugin is None:
            self._plugin = CredentialPlugin(user.content, {"server": settings.url}, user.folder)
        answer = await self._plugin.ask()
        if answer.errors:
            raise CredentialsError(f"user {context.text('user')}: {'; '.join(answer.errors)}")
        changed = attrs.evolve(
            settings,
            authorization=answer.authorization or settings.authorization,
            certificate=answer.certificate or settings.certificate,
            key=answer.key or settings.key,
        )
        return changed, answer.expires or "exec" not in user.content


PLUGINS = {"exec", "auth-provider"}
"""Members of a user whose credentials are not in files."""


def _settings_of(
    cluster: KubeconfigEntry, user: KubeconfigEntry, context: KubeconfigEntry
) -> ConnectionSettings:
    """Return what the entries of a context say. Raises `CredentialsError` and `KubeconfigError`."""
    named = (
        (cluster, "certificate-authority"),
        (user, "client-certificate"),
        (user, "client-key"),
    )
    authority, certificate, key = (entry.data(name) for entry, name in named)
    origin = ", ".join(
        entry.text(name) or f"{name}-data"
        for entry, name in named
        if entry.text(name) or entry.text(f"{name}-data")
    )
    return ConnectionSettings(
        cluster.text("server"),
        authority,
        certificate,
        key,
        not cluster.content.get("insecure-skip-tls-verify"),
        cluster.text("tls-server-name"),
        cluster.text("proxy-url"),
        _authorization_of(user),
        context.text("namespace"),
        origin,
    )


def _authorization_of(user: KubeconfigEntry) -> str:
    """Return the header for the token, or else for the name and the password of a user."""
    if file := user.text("tokenFile"):
        try:
            token = (user.folder / Path(file).expanduser()).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"tokenFile {user.folder / file}: {error}") from error
    else:
        token = user.text("token")
    if token.strip():
        return f"Bearer {token.strip()}"
    if "username" in user.content and "password" in user.content:
        pair = f"{user.text('username')}:{user.text('password')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return ""


def find_credentials(
    kubeconfig: str = "",
    context: str = "",
    *,
    environment: Mapping[str, str],
    folder: Path = SERVICE_ACCOUNT,
) -> ApiCredentials:
    """Return the credentials in force.

    These are the named `kubeconfig`; else those of the pod that this process runs in; else the files of the
    variable KUBECONFIG; else `~/.kube/config`. A `context` without `kubeconfig` excludes those of the pod.
    Raises `CredentialsError` if there are none.
    """
    if kubeconfig:
        return KubeconfigCredentials(kubeconfig, context)
    if not context and environment.get("KUBERNETES_SERVICE_HOST") and (folder / "token").is_file():
        return InClusterCredentials(environment, folder)
    if environment.get("KUBECONFIG"):
        return KubeconfigCredentials(environment["KUBECONFIG"], context, origin="the variable KUBECONFIG")
    home = Path(environment.get("HOME") or "~").expanduser() / ".kube" / "config"
    if home.is_file():
        return KubeconfigCredentials(str(home), context)
    raise CredentialsError(
        f"no credentials for a cluster: {folder / 'token'}, which a pod would have, does not exist; "
        f"KUBECONFIG is not set; {home} does not exist. Name a kubeconfig file with --kubeconfig"
    )
