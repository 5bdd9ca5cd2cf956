"""Users of a kubeconfig whose credentials come from a program or from a service: exec plugins and providers.

The library `kubernetes` calls them; nothing else of it is used. Its import takes longer than a start should,
so only what has such a user imports this module.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.kube_config import KubeConfigLoader

_LIBRARY_LOG = logging.getLogger("kubernetes.aio.config.kube_config")


@attrs.frozen
class PluginAnswer:
    """Answer of a plugin."""

    authorization: str = attrs.field(repr=False)
    """Value of the header, or empty."""
    certificate: bytes | None
    key: bytes | None = attrs.field(repr=False)
    expires: bool
    """True if the plugin has to be asked again later; the library knows when."""
    errors: tuple[str, ...]


class CredentialPlugin:
    """Plugin of one user."""

    def __init__(self, user: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> None:
        """Create for the entries of a kubeconfig in `folder`."""
        config = {
            "current-context": "used",
            "contexts": [{"name": "used", "context": {"cluster": "used", "user": "used"}}],
            "clusters": [{"name": "used", "cluster": {"server": cluster.get("server")}}],
            "users": [{"name": "used", "user": user}],
        }
        self._loader: Any = KubeConfigLoader(config, config_base_path=str(folder))

    async def ask(self) -> PluginAnswer:
        """Return the credentials, for which the plugin is called unless they are valid still."""
        configuration = Configuration()
        with _logged_errors() as errors:
            await self._loader.load_and_set(configuration)
        return PluginAnswer(
            configuration.api_key.get("BearerToken", ""),
            _content(configuration.cert_file),
            _content(configuration.key_file),
            hasattr(self._loader, "exec_plugin_expiry"),
            tuple(errors),
        )


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None


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
