"""Templates for the queue, the user and the group of trace entries."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from yunikorn.errors import UsageError

UNKNOWN = "unknown"
"""Value of a field that the trace leaves unknown."""


def check_templates(templates: Mapping[str, str], fields: Sequence[str]) -> None:
    """Raise `UsageError` for all templates, given by option, that are malformed or use unknown fields."""
    lines = [
        f"the template '{template}' for {option} {failure}"
        for option, template in templates.items()
        if (failure := _fault(template, fields))
    ]
    if lines:
        raise UsageError("\n".join(lines))


def _fault(template: str, fields: Sequence[str]) -> str:
    try:
        for _, name, _, _ in string.Formatter().parse(template):
            if name is not None and name not in fields:
                known = ", ".join(f"{{{field}}}" for field in fields)
                return f"uses the unknown field '{{{name}}}'; known: {known}"
        template.format_map(dict.fromkeys(fields, UNKNOWN))
    except (ValueError, LookupError) as error:
        return f"cannot be read: {error}"
    return ""
