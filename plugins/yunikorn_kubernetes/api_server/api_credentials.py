"""Credentials for an API server: from a kubeconfig file, or those of a pod inside the cluster.

The library `kubernetes` reads files and calls exec plugins; nothing else of it is used. It is imported with
this module, so only what connects to a cluster may import this module.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from yunikorn.errors import CONTAINED, YunikornError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of the credentials of a pod."""
_LIBRARY_LOG = logging.getLogger("kubernetes.aio.config.kube_config")


class CredentialsError(YunikornError):
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


class TLSContexts:
    """TLS context of the latest certificates; a new one is made only when a file has other contents."""

    def __init__(self) -> None:
        self._key: tuple[bytes | None, ...] = ()
        self._made: ssl.SSLContext | None = None

    def context(self, configuration: Configuration) -> ssl.SSLContext:
        """Return the context for a configuration. Raises `CredentialsError` for unusable certificates."""
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        try:
            key = (
                *(Path(path).read_bytes() if path else None for path in paths),
                bytes([configuration.verify_ssl]),
            )
            if self._made is None or key != self._key:
                self._made, self._key = self._make(configuration), key
        except (OSError, ssl.SSLError) as error:
            named = ", ".join(path for path in paths if path)
            raise CredentialsError(f"unusable certificates ({named}): {error}") from error
        return self._made

    @staticmethod
    def _make(configuration: Configuration) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        # Python 3.13 refuses authorities without a key identifier, which many clusters have.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not configuration.verify_ssl:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        if configuration.cert_file:
            made.load_cert_chain(configuration.cert_file, configuration.key_file)
        return made


def access_of(configuration: Configuration, contexts: TLSContexts, namespace: str) -> ServerAccess:
    """Return what a configuration of the library says. Raises `CredentialsError`."""
    authorization = " ".join(configuration.api_key.get("BearerToken", "").split())
    kind, _, secret = authorization.partition(" ")
    return ServerAccess(
        url=configuration.host.rstrip("/"),
        tls=contexts.context(configuration) if configuration.host.startswith("https:") else None,
        authorization=f"Bearer {secret}" if kind == "bearer" else authorization,
        server_name=configuration.tls_server_name or "",
        proxy=configuration.proxy or "",
        namespace=namespace or "default",
    )


class InClusterCredentials:
    """Credentials that Kubernetes mounts into a pod. Their token rotates, so each `load` reads the file."""

    def __init__(self, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> None:
        self._folder = folder
        self._loader = InClusterConfigLoader(
            token_filename=str(folder / "token"),
            cert_filename=str(folder / "ca.crt"),
            try_refresh_token=False,
            environ=environment,
        )
        self._contexts = TLSContexts()

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Read the mounted files. Raises `CredentialsError`."""
        configuration = Configuration()
        try:
            self._loader.load_and_set(configuration)
            namespace = self._folder / "namespace"
            return access_of(
                configuration,
                self._contexts,
                namespace.read_text("utf-8").strip() if namespace.exists() else "",
            )
        except (ConfigException, OSError, UnicodeDecodeError) as error:
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
        self._loader: Any = None
        self._config: Any = None
        self._kept: ServerAccess | None = None
        """Credentials of an exec plugin that did not say when they expire."""

    async def load(self, *, rejected: bool = False) -> ServerAccess:
        """Return the credentials of the context. Raises `CredentialsError`."""
        try:
            if self._read_files() or rejected:
                self._kept = None
                self._check_context()
                self._loader = KubeConfigLoader(
                    config_dict=self._config, active_context=self._context or None, config_base_path=None
                )
            if self._kept is not None:
                return self._kept
            configuration = Configuration()
            with _logged_errors() as errors:
                await self._loader.load_and_set(configuration)
            return self._checked(configuration, errors)
        except CredentialsError:
            raise
        except CONTAINED as error:
            # The library reports malformed files by many types of exceptions, such as KeyError and TypeError.
            raise CredentialsError(f"{self._label}: {error or type(error).__name__}") from error

    def _read_files(self) -> bool:
        """Read the files if one has changed; return True if so."""
        files = [Path(path).expanduser() for path in self._paths.split(os.pathsep) if path]
        present = [file for file in files if file.is_file()]
        if not present:
            raise CredentialsError(f"{self._label} does not exist")
        seen = [(stat.st_mtime_ns, stat.st_size) for stat in map(Path.stat, present)]
        if seen == self._seen:
            return False
        try:
            for file in present:
                if not isinstance(yaml.safe_load(file.read_bytes()), dict):
                    raise CredentialsError(f"{self._label}: {file} has no clusters, users and contexts")
            self._config = KubeConfigMerger(os.pathsep.join(map(str, present))).config
        except yaml.YAMLError as error:
            raise CredentialsError(f"{self._label} is no YAML: {error}") from error
        self._seen = seen
        return True

    def _check_context(self) -> None:
        """Raise `CredentialsError` unless the files have the context that is to be used."""
        entries = self._config.safe_get("contexts") or ()
        known = [str(entry.safe_get("name") or "") for entry in entries]
        wanted = self._context or self._config.safe_get("current-context")
        if wanted in known:
            return
        has = f"has: {', '.join(known)}" if known else "has none"
        if not wanted:
            raise CredentialsError(
                f"{self._label} names no current context: name one with --context; it {has}"
            )
        raise CredentialsError(f"{self._label} has no context '{wanted}'; it {has}")

    def _checked(self, configuration: Configuration, errors: list[str]) -> ServerAccess:
        """Return the credentials, if the exec plugin of the context returned some."""
        context = self._loader.current_context["context"]
        user = (
            self._config["users"].get_with_name(context["user"], safe=True) if context.get("user") else None
        )
        has_plugin = user is not None and "exec" in user["user"]
        if has_plugin and errors:
            raise CredentialsError(f"{self._label}: user {context['user']}: {'; '.join(errors)}")
        access = access_of(configuration, self._contexts, context.get("namespace") or "")
        if has_plugin and not hasattr(self._loader, "exec_plugin_expiry"):
            self._kept = access
        return access


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Collect the errors of exec plugins, which the library logs instead of raising them."""
    texts: list[str] = []

    class Collector(logging.Handler):
        """Collects messages."""

        def emit(self, record: logging.LogRecord) -> None:
            """Keep the message of a record."""
            texts.append(record.getMessage())

    collector = Collector(logging.ERROR)
    _LIBRARY_LOG.addHandler(collector)
    try:
        yield texts
    finally:
        _LIBRARY_LOG.removeHandler(collector)


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
