"""Plugins from files and modules: what a configuration may load, and how the code of a file is executed.

Data never runs code (`docs/decisions/0195`): a `CodePermission` says what a configuration may load. The
module of a file is named after its path and content: a file that did not change is executed once, so its
plugin objects survive a reload, and a changed file becomes another module.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.util
import logging
import os
import re
import shlex
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import attrs

from yunikorn.containment import contained, describe_error
from yunikorn.errors import UnknownPlugin, printable
from yunikorn.framework.creation import same_folder
from yunikorn.framework.installed import timed
from yunikorn.framework.plugin_code import FROM_RM, LoadedPlugin, NotLoaded, check_form, is_file
from yunikorn.framework.registry import Registry

_log = logging.getLogger("yunikorn.plugins")
_loading = threading.Lock()
"""Held while the module of a file is looked up, because configurations are loaded by several threads."""
UNFINISHED = 5.0
"""Seconds for which a thread waits for another one that executes the same file, and then gives up."""


FROM_DATA = (
    "{name} was not loaded, because that runs its code and this configuration was not given as --config. If"
    " you trust it, add --load-plugins {what}"
)
"""Refusal of a command; `what` is the folder of the file, or the module."""


@attrs.frozen
class CodePermission:
    """Plugins that a configuration may load; by default none."""

    base: Path | None = None
    """Folder to which names of files are relative; None if it is unknown."""
    trusts_all: bool = False
    """True for a configuration that a person has named, or that a service was started with."""
    named: tuple[Path | str, ...] = ()
    """Folders and modules from which other configurations may load, as a person has named them."""
    in_use: tuple[LoadedPlugin, ...] = ()
    """Plugins that were loaded before, and are used again as they were then."""
    refusal: str = FROM_RM
    may_skip: bool = False
    """True if a plugin that must not be loaded is left out, because the configuration is only read."""

    @classmethod
    def of_operator(cls, folder: Path) -> CodePermission:
        """Return the permission of a configuration of the operator in this folder, which may load all."""
        return cls(folder, trusts_all=True)

    @classmethod
    def of_data(
        cls, folder: Path | None, named: tuple[Path | str, ...] = (), *, may_skip: bool = False
    ) -> CodePermission:
        """Return the permission of a configuration that a command reaches through data."""
        return cls(folder, named=named, refusal=FROM_DATA, may_skip=may_skip)

    def with_loaded(self, in_use: tuple[LoadedPlugin, ...]) -> CodePermission:
        """Return a permission that has these plugins as they were loaded before."""
        return attrs.evolve(self, in_use=in_use)

    def load(self, name: str, stopwatch: Callable[[], float] | None = None) -> LoadedPlugin:
        """Import a module, or execute a file. Raises `UnknownPlugin`, or `NotLoaded` if that is not allowed.

        With a stopwatch, an import that takes long is logged.
        """
        check_form(name)
        if before := self._loaded_before(name):
            return attrs.evolve(before, name=name)
        try:
            path = self._allowed(name)
            what = f"importing plugin {printable(name)}"
            with timed(what, stopwatch), _named_while_it_lasts(what, stopwatch):
                if path is not None:
                    return _load_file(name, path)
                return LoadedPlugin(name, "", importlib.import_module(name))
        except NotLoaded:
            raise
        except contained() as error:
            raise UnknownPlugin(f"plugin {name} cannot be loaded: {describe_error(error)}") from None

    def _path(self, name: str) -> Path:
        # With `..` as it is written: after a link, `..` is not the folder that contains the link.
        return ((self.base or Path()) / name).absolute()

    def _loaded_before(self, name: str) -> LoadedPlugin | None:
        """Return the plugin of this module or file among those in use."""
        if not is_file(name):
            return next((one for one in self.in_use if one.name == name), None)
        # Names are equal if they lead to one file now: a link may have been changed since.
        real = os.path.realpath(self._path(name))
        return next((one for one in self.in_use if one.path and os.path.realpath(one.path) == real), None)

    def _allowed(self, name: str) -> Path | None:
        """Return the path of a file, or None for a module; raises `NotLoaded`."""
        if not is_file(name):
            if self.trusts_all or name in self.named:
                return None
            raise NotLoaded(self.refusal.format(name=name, what=name))
        path = self._path(name)
        if self.trusts_all:
            return path
        # Links and `..` are followed first: a name must not lead out of the folder.
        folders = [one for one in self.named if isinstance(one, Path)]
        path = path.resolve()
        if any(path.is_relative_to(folder.resolve()) for folder in folders):
            return path
        if folders and self.base is not None:
            what = " or ".join(map(str, folders))
            raise NotLoaded(f"{name} was not loaded: {path} is not below {what} (--load-plugins)")
        where = shlex.quote(str(path.parent)) if self.base is not None else "FOLDER, the folder of its file"
        raise NotLoaded(self.refusal.format(name=name, what=where))


def trusting(registry: Registry, folder: Path) -> Registry:
    """Return the registry for configurations of the operator in this folder, which may load plugins."""
    return registry.permitting(CodePermission.of_operator(folder))


def _load_file(name: str, path: Path) -> LoadedPlugin:
    source = path.read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    identity = hashlib.sha256(f"{path.resolve()} {digest}".encode()).hexdigest()
    called = f"yunikorn_file_{re.sub('[^A-Za-z0-9]', '_', path.stem)}_{identity[:16]}"
    loader = _SourceOf(str(path), source)
    with _loading:
        module = sys.modules.get(called)
        if module is None:
            spec = importlib.util.spec_from_loader(called, loader)
            assert spec is not None
            new = importlib.util.module_from_spec(spec)
            loader.executing.acquire()
            sys.modules[called] = new  # attrs and dataclasses look types up there
    if module is not None:
        _wait_for(module)
        return LoadedPlugin(name, digest, module, str(path))
    if doubt := _doubt(path):
        _log.warning("plugin %s %s", printable(str(path)), doubt)
    # Without `_loading`: a file that never ends must not stop others.
    try:
        with same_folder():
            loader.exec_module(new)
    except ModuleNotFoundError as error:
        del sys.modules[called]
        raise _explained(error, path) from None
    except BaseException:
        del sys.modules[called]
        raise
    finally:
        loader.executing.release()
    return LoadedPlugin(name, digest, new, str(path))


def _explained(error: ModuleNotFoundError, path: Path) -> ImportError:
    """Return an error that says what to do about a module beside the file that imports it."""
    first = (error.name or "").partition(".")[0]
    beside = [path.parent / f"{first}.py", path.parent / first / "__init__.py"]
    if not first or not any(one.is_file() for one in beside):
        return error
    return ImportError(
        f"{error}. It is beside {path.name}, but a file of plugins.load imports nothing from its folder,"
        " because two folders may have modules of one name. Write both in one file, or install them as a"
        " package, and load that as package.module",
        name=error.name,
    )


def _doubt(path: Path) -> str:
    """Return a remark if users other than the owner, root and this process may change a file, or ""."""
    if os.name != "posix":
        return ""
    trusted = 0, os.geteuid()
    for place in (path, path.resolve().parent):
        found = place.stat()
        # In a folder with the sticky bit, users change only their own files. A group with the number of the
        # owner has no other members on most systems.
        shared = stat.S_IWOTH | (stat.S_IWGRP if found.st_gid not in (0, found.st_uid) else 0)
        if found.st_uid not in trusted:
            who = f"belongs to user {found.st_uid}"
        elif found.st_mode & shared and not (place is not path and found.st_mode & stat.S_ISVTX):
            who = "may be changed by other users"
        else:
            continue
        what = "it" if place is path else f"its folder {place}"
        return f"runs with the rights of this process, but {what} {who}: chmod go-w, or chown it"
    return ""


@contextmanager
def _named_while_it_lasts(what: str, stopwatch: Callable[[], float] | None) -> Iterator[None]:
    """Log that an import has not ended, so that a file which never does is named; only with a stopwatch."""
    if stopwatch is None:
        yield
        return
    timer = threading.Timer(UNFINISHED, _log.warning, ("%s has not ended after %g s", what, UNFINISHED))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wait_for(module: ModuleType) -> None:
    """Wait until another thread has executed a file; raises an exception if that does not end."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    if not isinstance(loader, _SourceOf):
        return
    if not loader.executing.acquire(timeout=UNFINISHED):
        raise TimeoutError("it was begun before, and has not ended: change the file, or restart the process")
    loader.executing.release()
    if sys.modules.get(module.__name__) is not module:
        raise ImportError("it failed in another thread")


class _SourceOf(importlib.abc.SourceLoader):
    """Loader of one source text; bytecode is neither read nor written, since it may be out of date."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        self.executing = threading.RLock()
        """Held by the thread that executes the file."""

    def get_filename(self, fullname: str) -> str:
        """Return the path that tracebacks show."""
        return self._path

    def get_data(self, path: str) -> bytes:
        """Return the source."""
        if path != self._path:
            raise OSError(path)
        return self._source
