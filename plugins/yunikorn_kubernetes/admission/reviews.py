"""Requests and answers of admission webhooks, `admission.k8s.io/v1`.

Objects under review stay JSON: a webhook must not lose or reorder what it does not know, and it answers with
a JSON patch (RFC 6902).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from yunikorn.errors import YunikornError
from yunikorn_kubernetes.objects import ApiStruct

Operation = dict[str, Any]
Patch = list[Operation]
"""Operations of a JSON patch."""
VERSION = "admission.k8s.io/v1"


class MalformedReview(YunikornError):
    """Error for a request that is no admission review."""


class ObjectKind(ApiStruct, frozen=True):
    """Group, version and kind of an object."""

    group: str = ""
    version: str = ""
    kind: str = ""


class Submitter(ApiStruct, frozen=True):
    """User who sent the object to the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Request(ApiStruct, frozen=True):
    """Object that was sent to the API server, and what is to be done with it."""

    uid: str
    kind: ObjectKind = ObjectKind()
    operation: str = ""
    namespace: str = ""
    name: str = ""
    user_info: Submitter = Submitter()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None

    @property
    def effective_namespace(self) -> str:
        """Namespace of the object; that of the API server's default where the request names none."""
        return self.namespace or "default"


class Review(ApiStruct, frozen=True):
    """Review of a request."""

    api_version: str
    kind: str
    request: Request


class ReviewAnswer(ApiStruct, frozen=True):
    """Decision on a request."""

    allowed: bool
    reason: str = ""
    """Cause of a denial; shown to the user."""
    patch: Sequence[Operation] = ()
    warnings: tuple[str, ...] = ()
    """Texts that clients such as kubectl print; the API server cuts them at 256 characters."""


ALLOWED = ReviewAnswer(allowed=True)

_decode = msgspec.json.Decoder(Review).decode
_encode = msgspec.json.Encoder().encode


def read_review(body: bytes) -> Request:
    """Return the request of a review; raise `MalformedReview`."""
    try:
        review = _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedReview(f"the body is no admission review: {error}") from None
    if review.api_version != VERSION or review.kind != "AdmissionReview":
        given = f"{review.api_version} {review.kind}"
        raise MalformedReview(f"the body is {given}, expected {VERSION} AdmissionReview")
    return review.request


def write_review(uid: str, answer: ReviewAnswer) -> bytes:
    """Return the review with the answer to the request `uid`."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if answer.reason:
        response["status"] = {"message": answer.reason, "reason": "Forbidden", "code": 403}
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = answer.warnings
    return _encode({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response})


def put(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return the operation that sets the member at `path` of an object, whether it exists or not."""
    return {"op": "add", "path": "".join(f"/{_escaped(name)}" for name in path), "value": value}


def put_members(path: tuple[str, ...], known: object, members: dict[str, str]) -> Patch:
    """Return the operations that set `members` of the object at `path`, which now has the members `known`.

    Other members are not touched, because the webhooks of others may have changed them.
    """
    if not members:
        return []
    if not isinstance(known, dict) or not known:
        return [put(path, members)]
    return [put((*path, name), value) for name, value in members.items() if known.get(name) != value]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
