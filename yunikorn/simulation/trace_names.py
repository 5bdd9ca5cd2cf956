"""Names of queues made from the columns of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_NO_NAME = re.compile(r"[^a-zA-Z0-9_:#/@-]")


def queue_template(template: str) -> Callable[[Mapping[str, str]], str]:
    """Return a function that fills the template of a queue, given the values of its fields as texts.

    A value is one name of a path: a dot in it becomes `_dot_`, as in placement rules, and other characters
    that names of queues cannot have become `_`.
    """
    known: dict[tuple[str, ...], str] = {}

    def fill(values: Mapping[str, str]) -> str:
        key = tuple(values.values())
        if key not in known:
            legal = {
                name: _NO_NAME.sub("_", value.replace(".", "_dot_"))[:64] for name, value in values.items()
            }
            known[key] = template.format_map(legal)
        return known[key]

    return fill
