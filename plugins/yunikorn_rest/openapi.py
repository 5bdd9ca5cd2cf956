"""OpenAPI document of the REST interface, generated from its endpoints and shapes."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from yunikorn import __version__
from yunikorn_rest.endpoints import Endpoint
from yunikorn_rest.lookup import QUEUE_PATTERN
from yunikorn_rest.route_access import RouteAccess
from yunikorn_rest.shapes import Error
from yunikorn_service.fields import ShapeField, is_shape, members_of

_PARAMETER = re.compile(r"\{(\w+)\}")
_PARAMETERS = {
    "partition": "name of the partition, or `[RM]NAME`",
    "queue": "full path of the queue, in any case",
    "application": "id of the application",
    "node": "id of the node",
    "user": "name of the user",
    "group": "name of the group",
    "state": "`active`, `completed` or `rejected`",
    "number": "number in the history",
}
"""Descriptions of parameters of paths."""
_PATTERNS = {
    "queue": QUEUE_PATTERN,
    "user": r"^[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?$",
    "group": r"^([_a-zA-Z][a-zA-Z0-9:_.-]*|[*])$",
}
"""Valid values of parameters of paths."""
_SIMPLE: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    object: {},
}


SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "token of `yunikorn token`"},
    "basic": {"type": "http", "scheme": "basic", "description": "name and token, for reading only"},
    "certificate": {"type": "mutualTLS", "description": "certificate of the client"},
}
"""Ways to show credentials."""
_CHANGING: list[dict[str, list[str]]] = [{"token": []}, {"certificate": []}]
_READING: list[dict[str, list[str]]] = [*_CHANGING, {"basic": []}]
_SECURITY = {
    RouteAccess.OPEN: [],
    RouteAccess.READ: [{}, *_READING],
}


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    """Return the credentials that an endpoint takes; `{}` is none."""
    found = _SECURITY.get(endpoint.access)
    if found is not None:
        return found
    return _CHANGING if endpoint.changes else _READING


def _statuses(endpoint: Endpoint) -> tuple[int, ...]:
    """Return the statuses of errors of an endpoint."""
    if 301 in endpoint.errors:
        return tuple(endpoint.errors)
    refusals = {RouteAccess.OPEN: (), RouteAccess.READ: (401, 429)}.get(endpoint.access, (401, 403, 429))
    return tuple(sorted({*endpoint.errors, *refusals, 500, 503}))


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of these endpoints."""
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "YuniKorn for Python",
            "version": __version__,
            "description": "State of the scheduler. Memory is in bytes, vcore in milli-vcores.",
        },
        "paths": paths,
        "components": {"schemas": schemas.components(), "securitySchemes": SCHEMES},
    }


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name],
            "schema": _schema_of(name, endpoint.path),
        }
        for name in _PARAMETER.findall(endpoint.path)
    ]
    for query in endpoint.queries:
        example = {"example": query.example} if query.example else {}
        parameters.append(
            {
                "name": query.name,
                "in": "query",
                "description": query.description,
                "schema": query.schema,
                **example,
            }
        )
    schema = {} if endpoint.result is None else {"schema": schemas.of(endpoint.result)}
    responses: dict[str, Any] = {}
    if 301 not in endpoint.errors:
        content: dict[str, Any] = {endpoint.content_type: schema}
        if endpoint.other_content_type:
            content[endpoint.other_content_type] = {}
        responses["200"] = {"description": endpoint.summary, "content": content}
    for status in _statuses(endpoint):
        forms: dict[str, Any] = {"application/json": {"schema": schemas.of(Error)}}
        if endpoint.plain_errors or status == 503:
            forms["text/plain"] = {}
        content = {} if status == 301 else {"content": forms}
        responses[str(status)] = {"description": _STATUSES[status], **content}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _operation_id(endpoint),
        "parameters": parameters,
        "responses": responses,
        "security": _security(endpoint),
    }
    if endpoint.body:
        found["requestBody"] = {"content": {endpoint.body: {"schema": endpoint.body_schema}}}
    return found


_STATUSES = {
    301: "Moved",
    400: "A name or parameter is invalid",
    401: "Credentials are missing or unknown",
    403: "The role does not suffice, or changes are off",
    404: "There is none of this name",
    408: "The body has not arrived in time",
    409: "The present state does not permit the change",
    412: "The object has changed since it was read",
    413: "The body is too large",
    422: "The configuration has problems; the body is as for status 200",
    429: "Too many failed attempts from this address",
    500: "The request failed",
    501: "This server has no such data",
    503: "The scheduler is stopping, or has too many requests",
}


def _schema_of(parameter: str, path: str) -> dict[str, Any]:
    """Return the schema of a parameter of a path."""
    if parameter == "state":
        return {"enum": ["active"] if "{queue}" in path else ["active", "completed", "rejected"]}
    pattern = _PATTERNS.get(parameter)
    return {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}


def _operation_id(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path.replace("{", "by ").removeprefix("/ws/v1"))
    return "_".join([endpoint.method.lower(), *words]).replace("-", "_")


class _Schemas:
    """Schemas of shapes by name, collected while types are described."""

    def __init__(self) -> None:
        self._names: dict[type[Any], str] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def components(self) -> dict[str, Any]:
        """Return the schemas of all shapes, sorted by name."""
        return dict(sorted(self._found.items()))

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        if is_shape(kind):
            return {"$ref": f"#/components/schemas/{self._name(kind)}"}
        simple = _SIMPLE.get(kind)
        if simple is not None:
            return dict(simple)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (list, tuple):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (typing.Union, types.UnionType):
            return self.of(next(inner for inner in arguments if inner is not types.NoneType))
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        raise TypeError(f"{kind} has no schema")

    def _name(self, shape: type[Any]) -> str:
        known = self._names.get(shape)
        if known is not None:
            return known
        name = shape.__name__
        if name in self._found:
            name = f"Config{name}"
        self._names[shape] = name
        self._found[name] = {}
        members = members_of(shape)
        properties = {member.name: self._property(member) for member in members}
        self._found[name] = {
            "type": "object",
            "description": inspect.getdoc(shape) or "",
            "properties": properties,
            "required": [member.name for member in members if not member.omitted],
        }
        return name

    def _property(self, member: ShapeField) -> dict[str, Any]:
        schema = self.of(member.type)
        if not member.omitted and types.NoneType in typing.get_args(member.type):
            schema = {"anyOf": [schema, {"type": "null"}]}
        return {**schema, "description": member.description}
