"""Owner of a pod: the annotation `yunikorn.apache.org/user.info`, and who may set it.

The scheduler takes the user and the groups of an application from this annotation. It is written from the
identity that the API server has authenticated. Only submitters that the settings trust may set it, for
example the controller that makes the pods of a Job from a template, which has the annotation already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from yunikorn_kubernetes.admission.admission_rules import may_name_owner
from yunikorn_kubernetes.admission.reviews import Submitter
from yunikorn_kubernetes.names import USER_INFO
from yunikorn_kubernetes.shim_settings import AdmissionSettings


def owner_text(submitter: Submitter) -> str:
    """Return the value of the annotation for a submitter."""
    return json.dumps({"user": submitter.username, "groups": list(submitter.groups)}, separators=(",", ":"))


def refusal(annotations: Mapping[str, str], submitter: Submitter, settings: AdmissionSettings) -> str:
    """Return why the owner that an object names is not accepted; "" if it is, or if none is named."""
    if settings.bypass_auth or USER_INFO not in annotations:
        return ""
    if not may_name_owner(settings, submitter.username, submitter.groups):
        groups = ", ".join(submitter.groups) or "none"
        return (
            f"user {submitter.username} (groups: {groups}) may not set the annotation {USER_INFO}; remove it,"
            " or have an administrator add the user to admissionController.accessControl.externalUsers"
        )
    fault = _fault(annotations[USER_INFO])
    return f"annotation {USER_INFO}: {fault}" if fault else ""


def _fault(text: str) -> str:
    try:
        owner = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"
    if not isinstance(owner, dict):
        return 'expected an object such as {"user": "jane", "groups": ["staff"]}'
    user, groups = owner.get("user"), owner.get("groups", [])
    if not isinstance(user, str) or not user:
        return "'user' has to be a name"
    if groups is not None and not (isinstance(groups, list) and all(isinstance(one, str) for one in groups)):
        return "'groups' has to be a list of names"
    return ""


def is_missing(annotations: Mapping[str, str], settings: AdmissionSettings) -> bool:
    """Return True if the annotation has to be written."""
    return not settings.bypass_auth and USER_INFO not in annotations
