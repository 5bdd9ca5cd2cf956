"""Reloading of configurations at run time: all of them are used, or none (`docs/decisions/0011`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from yunikorn.errors import UsageError, YunikornError
from yunikorn.framework.registry import Registry
from yunikorn.interface.async_scheduler import AsyncScheduler
from yunikorn.interface.scheduler import Scheduler
from yunikorn.service.config_files import ConfigFiles, LoadedConfigurations

Texts = Mapping[str, str | bytes]
"""Configurations by policy group."""

_log = logging.getLogger("yunikorn.config")


class Reloading:
    """Reloader of the configuration files of a running core."""

    def __init__(
        self,
        files: ConfigFiles,
        configurations: LoadedConfigurations,
        core: AsyncScheduler,
        registry: Registry,
        given: Texts,
    ) -> None:
        self._files, self._configurations = files, configurations
        self._core, self._registry = core, registry
        self._given = given
        """Texts that come from no file."""
        self._lock = asyncio.Lock()

    async def reload(self, why: str) -> bool:
        """Use the current files; returns False, with the reasons in the log, if nothing was changed."""
        async with self._lock:
            try:
                texts: dict[str, str | bytes] = {**self._given}
                texts |= await asyncio.to_thread(self._files.read, self._registry, self._configurations.texts)
                changed = await self._core.carry_out(lambda core: _use(core, self._configurations, texts))
            except YunikornError as error:
                _log.error(
                    "%s: the new configuration was rejected, the old configuration stays in use:\n%s",
                    why,
                    error,
                )
                return False
        names = ", ".join(changed) or "no resource manager"
        _log.info("%s: the configuration was reloaded; changed for: %s", why, names)
        return True


def _use(core: Scheduler, configurations: LoadedConfigurations, texts: Texts) -> list[str]:
    """Use these texts for all sessions, and return the ids of the RMs whose configuration has changed.

    Raises `UsageError` with the problems of all sessions, and changes nothing then.
    """
    new = LoadedConfigurations(texts)
    wanted: dict[str, bytes | str] = {}
    problems: list[str] = []
    for session in core.sessions():
        if session.policy_group is None:
            continue
        try:
            wanted[session.rm_id] = new.read(session.policy_group)
            core.check_configuration(session.rm_id, wanted[session.rm_id])
        except YunikornError as error:
            problems.append(f"resource manager {session.rm_id}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    configurations.replace(texts)
    return [rm_id for rm_id in wanted if core.reload_configuration(rm_id)]
