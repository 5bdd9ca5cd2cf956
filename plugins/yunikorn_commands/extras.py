"""Packages of the extras of the distribution, and the error for one that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from yunikorn.errors import UsageError

EXTRAS = {
    "dask": ("dask", "distributed", "tlz"),
    "foresight": ("msgspec",),
    "grpc": ("google", "grpc", "grpc_health", "grpc_reflection"),
    "history": ("msgspec", "sqlalchemy"),
    "kubernetes": ("aiohttp", "cryptography", "kubernetes", "msgspec", "yarl"),
    "postgresql": ("msgspec", "psycopg", "sqlalchemy"),
    "parquet": ("pyarrow",),
    "web": ("anyio", "h11", "httptools", "httpx", "jinja2", "prometheus_client", "starlette", "uvicorn"),
}
"""Packages that each extra installs, as they are imported."""
DISTRIBUTIONS = {"google": "protobuf"}
"""Names under which packages are installed, where they are not the imported ones."""


class MissingExtra(UsageError):
    """Error for a package of an extra that is not installed."""


@contextmanager
def importing_extra(extra: str, purpose: str, otherwise: str = "") -> Iterator[None]:
    """Raise `MissingExtra` where the block imports a package of the extra that is not installed.

    The message says for what purpose it is needed, such as "for --rest", and what can be done `otherwise`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[extra]:
            raise
        name = DISTRIBUTIONS.get(package, package)
        raise MissingExtra(
            f"{name} is not installed, but is needed {purpose}: pip install 'yunikorn[{extra}]'{otherwise}"
        ) from error
