"""Plugins that a configuration loads from a file or a module: `plugins: {load: [./mine.py, package.module]}`.

Only configurations of the operator may load code (`docs/decisions/0085`). The module of a file is named after
its path and content: a file that did not change is executed once, so its plugin objects survive a reload, and
a changed file becomes another module.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.util
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import attrs

from yunikorn.containment import contained, describe_error
from yunikorn.errors import UnknownPlugin, printable
from yunikorn.framework.installed import timed

_loading = threading.RLock()
"""Held while a file is executed, because configurations are loaded by several threads."""


@attrs.frozen
class LoadedPlugin:
    """Plugin that a configuration has loaded; equal if nothing has changed."""

    name: str
    """File or module, as written."""
    digest: str
    """SHA-256 of a file; empty for a module."""
    module: object = attrs.field(eq=False, repr=False)


_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


def is_file(name: str) -> bool:
    """Return True if an entry of `plugins.load` names a file, and False for a module."""
    return name.endswith(".py") or "/" in name or "\\" in name


def load_plugin(name: str, folder: Path, stopwatch: Callable[[], float] | None = None) -> LoadedPlugin:
    """Import a module, or execute a file relative to `folder`. Raises `UnknownPlugin` with the reason.

    With a stopwatch, an import that takes long is logged.
    """
    if not is_file(name) and not _MODULE.match(name):
        raise UnknownPlugin(
            f"{name!r} is neither a file nor a module: write a path such as ./mine.py, or package.module"
        )
    try:
        with timed(f"importing plugin {printable(name)}", stopwatch):
            if is_file(name):
                return _load_file(name, folder / name)
            return LoadedPlugin(name, "", importlib.import_module(name))
    except contained() as error:
        raise UnknownPlugin(f"plugin {name} cannot be loaded: {describe_error(error)}") from None


def _load_file(name: str, path: Path) -> LoadedPlugin:
    source = path.read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    identity = hashlib.sha256(f"{path.resolve()} {digest}".encode()).hexdigest()
    called = f"yunikorn_file_{re.sub('[^A-Za-z0-9]', '_', path.stem)}_{identity[:16]}"
    with _loading:
        module = sys.modules.get(called)
        if module is None:
            spec = importlib.util.spec_from_loader(called, _SourceOf(str(path), source))
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[called] = module  # attrs and dataclasses look types up there
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[called]
                raise
    return LoadedPlugin(name, digest, module)


class _SourceOf(importlib.abc.SourceLoader):
    """Loader of one source text; bytecode is neither read nor written, since it may be out of date."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source

    def get_filename(self, fullname: str) -> str:
        """Return the path that tracebacks show."""
        return self._path

    def get_data(self, path: str) -> bytes:
        """Return the source."""
        if path != self._path:
            raise OSError(path)
        return self._source
