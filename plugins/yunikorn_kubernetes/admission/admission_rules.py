"""Rules of the admission controller: its settings, with compiled regular expressions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import re2

from yunikorn_kubernetes.shim_settings import AdmissionSettings


class Expressions:
    """List of regular expressions."""

    def __init__(self, patterns: Iterable[Any] = ()) -> None:
        self._patterns = tuple(patterns)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, name: str) -> bool:
        """Return True if an expression matches anywhere in `name`."""
        return any(pattern.search(name) is not None for pattern in self._patterns)


def _compiled(patterns: Iterable[str]) -> Expressions:
    return Expressions(re2.compile(pattern) for pattern in patterns)


NONE = Expressions()


@attrs.frozen
class Rules:
    """Rules of one admission controller."""

    process_namespaces: Expressions = NONE
    """Namespaces whose pods are scheduled by YuniKorn; none means all."""
    bypass_namespaces: Expressions = NONE
    label_namespaces: Expressions = NONE
    """Namespaces whose pods get labels; none means all."""
    no_label_namespaces: Expressions = NONE
    generate_unique_app_id: bool = False
    bypass_auth: bool = False
    """True to neither write nor check who submits pods."""
    trust_controllers: bool = True
    """True to let system users, such as controllers, submit pods for others."""
    system_users: Expressions = NONE
    external_users: Expressions = NONE
    external_groups: Expressions = NONE

    @classmethod
    def of(cls, settings: AdmissionSettings) -> Rules:
        """Return the rules of checked settings."""
        return cls(
            process_namespaces=_compiled(settings.process_namespaces),
            bypass_namespaces=_compiled(settings.bypass_namespaces),
            label_namespaces=_compiled(settings.label_namespaces),
            no_label_namespaces=_compiled(settings.no_label_namespaces),
            generate_unique_app_id=settings.unique_app_ids,
            bypass_auth=settings.bypass_auth,
            trust_controllers=settings.trust_controllers,
            system_users=_compiled(settings.system_users),
            external_users=_compiled(settings.external_users),
            external_groups=_compiled(settings.external_groups),
        )

    def processes(self, namespace: str, override: bool | None) -> bool:
        """Return True if pods of a namespace are scheduled by YuniKorn; `override` is its annotation."""
        if override is not None:
            return override
        selected = not self.process_namespaces or self.process_namespaces.match(namespace)
        return selected and not self.bypass_namespaces.match(namespace)

    def labels(self, namespace: str, override: bool | None) -> bool:
        """Return True if pods of a namespace get labels; `override` is its annotation."""
        if override is not None:
            return override
        selected = not self.label_namespaces or self.label_namespaces.match(namespace)
        return selected and not self.no_label_namespaces.match(namespace)

    def may_name_owner(self, user: str, groups: Iterable[str]) -> bool:
        """Return True if this submitter may say on whose behalf a pod runs."""
        if self.trust_controllers and self.system_users.match(user):
            return True
        return self.external_users.match(user) or any(self.external_groups.match(one) for one in groups)
