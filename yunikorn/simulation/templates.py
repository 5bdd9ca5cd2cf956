"""Templates for the queue, the user and the group of what a trace tells of."""

from __future__ import annotations

import string
from collections.abc import Sequence

from yunikorn.errors import UsageError

UNKNOWN = "unknown"
"""What a template gets for something that the trace does not say."""


def check_template(option: str, template: str, fields: Sequence[str]) -> None:
    """Raises `UsageError` for a template of `option` that names anything but `fields`, or cannot be read."""
    known = ", ".join(f"{{{field}}}" for field in fields)
    try:
        for _, name, _, _ in string.Formatter().parse(template):
            if name is not None and name not in fields:
                raise UsageError(f"the template '{template}' for {option} names '{{{name}}}'; known: {known}")
        template.format_map(dict.fromkeys(fields, UNKNOWN))
    except (ValueError, LookupError) as error:
        raise UsageError(f"the template '{template}' for {option} cannot be read: {error}") from error
