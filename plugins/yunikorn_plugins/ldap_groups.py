"""User-group resolver `ldap`, for applications without groups; needs the extra `yunikorn[ldap]`.

    partitions:
      - name: default
        usergroupresolver:
          type: ldap            # settings from the files in /run/secrets/ldap, as in YuniKorn 1.9
          ca: /etc/ssl/ldap.pem
          host: ldap.example.org    # replaces the file Host

A look-up binds as the service user, searches the entries of the user and returns the values of their group
attribute. Connections are kept for later look-ups, which may come from several threads.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import attrs

from yunikorn.api import Context, UserGroupResolver, hookimpl
from yunikorn_plugins.ldap_settings import LdapSettings, read_settings

SECRETS = Path("/run/secrets/ldap")
"""Folder from which YuniKorn 1.9 reads the settings."""
LONGEST = 8.0
"""Maximum seconds for a look-up; a core that is blocked for ten seconds is reported as hanging."""
READING = "reading the settings again (the old ones stay in use)"

_log = logging.getLogger("yunikorn.ldap")


@attrs.define
class Ldap(UserGroupResolver):
    """The groups that an LDAP directory has for a user."""

    name = "ldap"
    calls_at_once = 4
    secrets: Path = SECRETS
    """Folder with a file for each setting: `Host`, `Port`, `BaseDN`, `Filter`, `GroupAttr`, `BindUser`,
    `BindPassword`, `SSL`, `Insecure`. The options below replace files, except for the password."""
    host: str | None = None
    port: int | None = None
    basedn: str | None = None
    """Distinguished name below which entries are searched."""
    filter: str | None = None
    """Search filter, in which `%s` stands for the name of the user."""
    groupattr: str | None = None
    """Attribute that contains the groups; `memberOf` by default."""
    binduser: str | None = None
    ssl: bool | None = None
    """True for a port that expects TLS from the start (`ldaps`)."""
    insecure: bool | None = None
    """True to accept any certificate."""
    starttls: bool = False
    """True to change to TLS after connecting."""
    ca: Path | None = None
    """Certificates of the authorities to trust (PEM); by default those of the system."""
    timeout: float = attrs.field(
        default=3.0, validator=[attrs.validators.gt(0.0), attrs.validators.le(LONGEST)]
    )
    """Seconds for one look-up, including a connection that has to be made."""
    owngroup: bool = True
    """True to put a group with the name of the user first, as in YuniKorn 1.9."""
    unknown: Literal["reject", "accept"] = "reject"
    """Effect of a user without an entry: no such user, or, as in YuniKorn 1.9, a user without groups."""
    _directory: Any = attrs.field(init=False, default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse a configuration that cannot work because the extra is not installed."""
        if find_spec("ldap3") is None:
            raise ImportError("the package ldap3 is not installed: pip install 'yunikorn[ldap]'")

    def opened(self, context: Context) -> None:
        """Read and check the settings; the first look-up connects.

        Raises `ValueError` with all problems of the settings.
        """
        self._directory = self._open()

    def reloaded(self, context: Context) -> None:
        """Read the settings again, and continue with the old ones if there is a problem."""
        try:
            directory = self._open()
        except (ValueError, OSError) as error:
            context.report(READING, error)
            return
        self._directory, old = directory, self._directory
        old.close()

    def closed(self) -> None:
        """Close the connections."""
        if self._directory is not None:
            self._directory.close()

    def groups(self, user: str) -> Sequence[str] | None:
        """Search the directory. Raises an exception if it does not answer in time, or refuses."""
        if not user:
            return None
        found = self._directory.groups(user)
        if found is None and self.unknown == "reject":
            return None
        own = [user] if self.owngroup else []
        return list(dict.fromkeys([*own, *(found or ())]))

    def _open(self) -> Any:
        # Imported here, because ldap3 is an extra, and slow to import.
        from yunikorn_plugins.ldap_client import Directory

        settings = self._settings()
        made = Directory(settings)
        if not (settings.ssl or settings.starttls):
            _log.warning(
                "the password for %s is sent without encryption: use ssl or starttls", settings.address
            )
        elif settings.insecure:
            _log.warning("the certificate of %s is not checked: insecure is set", settings.address)
        return made

    def _settings(self) -> LdapSettings:
        given: dict[str, str | int | bool | None] = {
            "Host": self.host,
            "Port": self.port,
            "BaseDN": self.basedn,
            "Filter": self.filter,
            "GroupAttr": self.groupattr,
            "BindUser": self.binduser,
            "SSL": self.ssl,
            "Insecure": self.insecure,
        }
        return read_settings(self.secrets, given, starttls=self.starttls, ca=self.ca, timeout=self.timeout)


@hookimpl
def yunikorn_user_group_resolvers() -> list[type[UserGroupResolver]]:
    """Return the only resolver."""
    return [Ldap]
