"""Rules of the admission controller, in the terms of its settings."""

from __future__ import annotations

from collections.abc import Iterable

from yunikorn_kubernetes.patterns import matches
from yunikorn_kubernetes.shim_settings import AdmissionSettings


def processes(settings: AdmissionSettings, namespace: str, override: bool | None) -> bool:
    """Return True if pods of a namespace are scheduled by YuniKorn; `override` is its annotation."""
    return _selects(settings.process_namespaces, settings.bypass_namespaces, namespace, override)


def gives_labels(settings: AdmissionSettings, namespace: str, override: bool | None) -> bool:
    """Return True if pods of a namespace get labels; `override` is its annotation."""
    return _selects(settings.label_namespaces, settings.no_label_namespaces, namespace, override)


def _selects(
    chosen: tuple[str, ...], without: tuple[str, ...], namespace: str, override: bool | None
) -> bool:
    if override is not None:
        return override
    return (not chosen or matches(chosen, namespace)) and not matches(without, namespace)


def may_name_owner(settings: AdmissionSettings, user: str, groups: Iterable[str]) -> bool:
    """Return True if this submitter may say on whose behalf a pod runs."""
    if settings.trust_controllers and matches(settings.system_users, user):
        return True
    return matches(settings.external_users, user) or any(
        matches(settings.external_groups, one) for one in groups
    )
