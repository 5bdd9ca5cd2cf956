"""Change of a configuration over REST: checked, written to its file, and used by all its resource managers.

The order is: write a new file beside the old one, prepare the change in the core, replace the file, apply the
change. Replacing is one system call between the last check and a change that nothing can prevent, so file
and core agree whatever happens before.

Changes of a configuration over REST: requests, results, and effects on what runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from yunikorn.accounting.partition import Partition
from yunikorn.config.document import decode
from yunikorn.config.load import DEFAULT_TEXT, check_config, checksum_of
from yunikorn.config.queues_yaml import SchedulerConfig
from yunikorn.errors import ConfigError, Problem, UsageError
from yunikorn.framework.plugin_code import CodeSource
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import ReloadConfiguration
from yunikorn.interface.scheduler import Scheduler
from yunikorn.text import number_of
from yunikorn_commands.differences import REMOVED, differences
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_service.config_files import NO_CODE_OVER_REST, Reloading, use
from yunikorn_service.fields import always, optional, shape_like


@attrs.frozen(kw_only=True)
class ConfigChange:
    """One difference between two configurations."""

    path: str = always("partition, queue and key in words")
    partition: str = optional("name of the partition", "")
    queue: str = optional("full path of the queue", "")
    key: str = optional("key of queues.yaml; absent if a whole queue or partition is added or removed", "")
    change: str = always("`added`, `removed` or `changed`; a key with its default counts as absent")
    before: Any = optional("value before; options of plugins without their values", None)
    after: Any = optional("value after", None)
    note: str = optional("effect on what runs, or the options that differ", "")


@attrs.frozen(kw_only=True)
class ConfigResult:
    """Result of a request to change a configuration."""

    applied: bool = always("true if the configuration is in use now")
    persisted: bool = always("true if the file of the configuration was replaced", False)
    checksum: str = always("checksum of the configuration in use before, for `If-Match`", "")
    new_checksum: str = optional("checksum of the new configuration", "")
    policy_group: str = optional("policy group that the configuration belongs to", "")
    resource_managers: tuple[str, ...] = always("ids of the resource managers that use the configuration", ())
    changes: tuple[ConfigChange, ...] = always("differences", ())
    problems: tuple[shapes.ConfigProblem, ...] = always("problems, with their places", ())
    note: str = optional("how long the configuration is used if it was not persisted", "")


@attrs.frozen(kw_only=True)
class ConfigRequest:
    """A request to change a configuration."""

    text: bytes
    policy_group: str = ""
    rm_id: str = ""
    """Resource manager whose own configuration is changed; empty for that of a policy group."""
    persist: bool = True
    dry_run: bool = False
    match: str = ""
    """Checksum that the present configuration must have; empty for any."""


@attrs.frozen
class ConfigText:
    """Text of a configuration in use, as it was given."""

    text: bytes
    checksum: str


# -- differences -----------------------------------------------------------------------------------------


def config_changes(old: SchedulerConfig, new: SchedulerConfig) -> list[ConfigChange]:
    """Return the differences, in the order of the old configuration and then of the new one."""
    return [shape_like(ConfigChange, one) for one in differences(old, new)]


HISTORY = "history"
"""Key of the door that a service opens at its start."""


# -- effects ---------------------------------------------------------------------------------------------


def with_effects(
    changes: list[ConfigChange], core: Scheduler, rm_ids: tuple[str, ...]
) -> tuple[ConfigChange, ...]:
    """Return changes with notes on what runs in queues and partitions that are removed."""
    running: dict[str, list[Partition]] = {}
    for rm_id, at in core.all_partitions():
        if rm_id in rm_ids:
            running.setdefault(at.name, []).append(at.partition)
    found = []
    for change in changes:
        note = ""
        if change.change == REMOVED and not change.key:
            note = _effect(change, running.get(change.partition, []))
        elif change.key.startswith(HISTORY) and not change.partition:
            note = "needs a restart"
        found.append(attrs.evolve(change, note=note) if note else change)
    return tuple(found)


def _effect(change: ConfigChange, partitions: list[Partition]) -> str:
    """Return what the removal of a queue or partition means for these partitions."""
    if not partitions:
        return ""
    if not change.queue:
        applications = sum(len(one.applications) for one in partitions)
        nodes = sum(len(one.nodes) for one in partitions)
        return f"ends {number_of(applications, 'application')} and removes {number_of(nodes, 'node')}"
    queues = [queue for one in partitions if (queue := one.queue(change.queue)) is not None]
    count = sum(len(each.applications) for queue in queues for each in queue.walk() if each.is_leaf)
    if not count:
        return "drains, and is removed"
    return f"drains: accepts no new applications, and is removed after its {number_of(count, 'application')}"


IN_CONFIG_MAP = (
    "is a ConfigMap, which is not rewritten: change it in the file and reload it, or give ?persist=false"
)
UNTIL_RELOAD = "in use until the next reload of the configurations, or the end of the service"
UNTIL_REGISTRATION = "in use until the resource manager registers again"


@attrs.frozen(kw_only=True)
class _Target:
    """Configuration that a request changes."""

    text: str | bytes
    """Text in use."""
    group: str | None = None
    """Policy group; None for the own configuration of a resource manager."""
    code: CodeSource = NO_CODE_OVER_REST
    """Plugins that the configuration may load: those in use."""
    file: Path | None = None
    """File of the configuration, if there is one."""
    rm_ids: tuple[str, ...] = ()
    """Resource managers that use the configuration."""


class ConfigChanges:
    """Changes of the configurations of a service."""

    def __init__(self, reloading: Reloading, source: Callable[[], str] = lambda: "") -> None:
        """Create the changes of the configurations that `reloading` reads.

        `source` returns the place of the configuration where that is neither a file nor a message of a
        resource manager, such as a ConfigMap; configurations are then compared here, and changed there.
        """
        self._files, self._configurations = reloading.files, reloading.configurations
        self._core, self._registry = reloading.core, reloading.registry
        self._reloading = reloading
        self._source = source

    async def change(self, request: ConfigRequest) -> ConfigResult:
        """Check a configuration, and use it unless it has problems or `dry_run` is set.

        Raises `RequestRefused`.
        """
        async with self._reloading.lock:
            try:
                target = await self._target(request.policy_group, request.rm_id)
                return await self._change(request, target)
            except UsageError as error:
                raise RequestRefused(409, str(error)) from error

    async def text(self, policy_group: str, rm_id: str) -> ConfigText:
        """Return the text of a policy group, or that of a resource manager itself.

        Raises `RequestRefused`.
        """
        found = (await self._target(policy_group, rm_id)).text
        text = found.encode() if isinstance(found, str) else found
        return ConfigText(text, checksum_of(_decoded(text)))

    async def _target(self, policy_group: str, rm_id: str) -> _Target:
        """Return the configuration that a request means; raises `RequestRefused`."""
        sessions = await self._core.call(lambda core: list(core.sessions()))
        source = self._source()
        if source:
            if not sessions:
                raise RequestRefused(
                    409, f"this process does not schedule yet; its configuration is {source}"
                )
            rm_id = rm_id or sessions[0].rm_id
        if rm_id:
            found = [one for one in sessions if one.rm_id == rm_id]
            if not found:
                known = ", ".join(one.rm_id for one in sessions) or "none"
                raise RequestRefused(404, f"no resource manager '{rm_id}' is registered; registered: {known}")
            if found[0].policy_group is not None and not source:
                group = found[0].policy_group
                text = f"resource manager {rm_id} has the configuration of policy group '{group}'"
                raise RequestRefused(409, f"{text}: give policyGroup={group} (--policy-group {group})")
            config = await self._core.call(lambda core: core.configuration(rm_id))
            return _Target(text=config.text, rm_ids=(rm_id,))
        try:
            group = self._configurations.find(policy_group)
        except UsageError as error:
            known = ", ".join(group or "the default group" for group in self._configurations.groups)
            what = f"no policy group is called '{policy_group}'"
            if not policy_group:
                what = "give policyGroup (--policy-group): there is no default policy group"
            raise RequestRefused(404, f"{what}; known: {known or 'none'}") from error
        users = [
            one.rm_id
            for one in sessions
            if one.policy_group is not None and self._configurations.find(one.policy_group) == group
        ]
        return _Target(
            text=self._configurations.read(group),
            group=group,
            code=self._configurations.code(group) or NO_CODE_OVER_REST,
            file=self._files.paths().get(group),
            rm_ids=tuple(users),
        )

    async def _change(self, request: ConfigRequest, target: _Target) -> ConfigResult:
        checksum = checksum_of(_decoded(target.text))
        if request.match and request.match != checksum:
            text = "the configuration has changed meanwhile: its checksum is now"
            raise RequestRefused(412, f"{text} {checksum}", {"etag": f'"{checksum}"'})
        result = ConfigResult(
            applied=False,
            checksum=checksum,
            policy_group=target.group or "",
            resource_managers=target.rm_ids,
        )
        if target.group is None:
            # Only the core's thread may use the plugins that the resource manager has registered.
            rm_id = target.rm_ids[0]
            new, problems, changes = await self._core.call(
                lambda core: _compared(request.text, target.text, core.plugins(rm_id).permitting(target.code))
            )
        else:
            registry = self._registry.permitting(target.code)
            new, problems, changes = await asyncio.to_thread(_compared, request.text, target.text, registry)
        if new is not None:
            effects, problems = await self._core.call(lambda core: _try(core, request.text, target, changes))
            result = attrs.evolve(result, changes=effects, new_checksum=new.checksum)
        if problems:
            found = tuple(shape_like(shapes.ConfigProblem, problem) for problem in problems)
            return attrs.evolve(result, problems=found)
        assert new is not None
        code = target.code.with_loaded(new.loaded)
        persists = request.persist and target.file is not None
        if not persists:
            note = UNTIL_REGISTRATION if target.group is None else UNTIL_RELOAD
            result = attrs.evolve(result, note=note)
        source = self._source()
        elsewhere = f"the configuration is {source}: change it there, and it is used at once"
        if source:
            result = attrs.evolve(result, note=elsewhere)
        in_config_map = ""
        if persists and self._files.is_embedded(target.group or ""):
            in_config_map = f"{target.file} {IN_CONFIG_MAP}"
            result = attrs.evolve(result, note=in_config_map)
        if request.dry_run:
            return result
        if source:
            raise RequestRefused(409, f"nothing was changed: {elsewhere}")
        if in_config_map:
            raise RequestRefused(409, f"nothing was changed: {in_config_map}")
        if target.group is None:
            rm_id = target.rm_ids[0]
            await self._core.carry_out(ReloadConfiguration(rm_id, request.text))
        elif persists and target.file is not None:
            await self._persist(target.group, target.file, request.text, target.text, code)
        else:
            await self._use(target.group, request.text, code, lambda: None)
        return attrs.evolve(result, applied=True, persisted=persists)

    async def _use(self, group: str, text: bytes, code: CodeSource, commit: Callable[[], object]) -> None:
        configurations = self._configurations
        texts = {**configurations.texts, group: text}
        permissions = {**configurations.permissions, group: code}
        await self._core.carry_out(lambda core: use(core, configurations, texts, permissions, commit))

    async def _persist(
        self, group: str, file: Path, text: bytes, in_use: str | bytes, code: CodeSource
    ) -> None:
        """Use a configuration and replace its file; raises `RequestRefused` or `UsageError`."""
        place = Path(os.path.realpath(file))  # a link stays a link
        try:
            if await asyncio.to_thread(place.read_bytes) != in_use:
                raise RequestRefused(
                    409,
                    f"{file} was changed but not reloaded: reload it first (SIGHUP), or give ?persist=false",
                )
            written = await asyncio.to_thread(_write_beside, place, text)
        except OSError as error:
            raise RequestRefused(409, _unwritable(file, error)) from error

        def commit() -> None:
            try:
                os.replace(written, place)
            except OSError as error:
                raise UsageError(_unwritable(file, error)) from error

        try:
            await self._use(group, text, code, commit)
        finally:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(os.unlink, written)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(_sync_folder, place.parent)


def _compared(
    text: bytes, before: str | bytes, registry: Registry
) -> tuple[SchedulerConfig | None, list[Problem], list[ConfigChange]]:
    """Return the checked configuration, or its problems, and the differences."""
    if not text.strip():
        return None, [Problem("", "the body is empty; send the text of a configuration")], []
    outcome = check_config(text, registry)
    if outcome.config is None:
        return None, list(outcome.problems), []
    old = check_config(before or DEFAULT_TEXT, registry).config
    return outcome.config, [], config_changes(old or SchedulerConfig(), outcome.config)


def _unwritable(file: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return (
        f"nothing was changed: {file} cannot be replaced: {reason}. Make its folder writable for the service,"
        " change the file in another way and reload it, or give ?persist=false"
    )


def _write_beside(file: Path, text: bytes) -> str:
    """Write a new file with the permissions and the owner of another one; raises `OSError`."""
    old = file.stat()
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(text)
            new.flush()
            if hasattr(os, "fchown"):
                own = os.fstat(new.fileno())
                if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid):
                    os.fchown(new.fileno(), old.st_uid, old.st_gid)
            os.chmod(name, stat.S_IMODE(old.st_mode))
            os.fsync(new.fileno())
    except BaseException:
        os.unlink(name)
        raise
    return name


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _try(
    core: Scheduler, text: bytes, target: _Target, changes: list[ConfigChange]
) -> tuple[tuple[ConfigChange, ...], list[Problem]]:
    """Return the changes with their effects, and what prevents them for the present state."""
    problems: list[Problem] = []
    for rm_id in target.rm_ids:
        try:
            core.check_configuration(rm_id, text, target.code)
        except ConfigError as error:
            label = f"resource manager {rm_id}: " if len(target.rm_ids) > 1 else ""
            problems += [one._replace(message=label + one.message) for one in error.problems]
        except UsageError as error:
            problems.append(Problem("", str(error)))
    return with_effects(changes, core, target.rm_ids), problems


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return decode(text)
    except ConfigError:
        return text.decode("utf-8", "replace")
