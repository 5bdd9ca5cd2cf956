"""Reference page of queues.yaml in Markdown: `reference_page.md` with the tables of keys and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

from yunikorn.config.keys import ConfigSection
from yunikorn.config.queues_yaml import SECTIONS
from yunikorn.framework.kinds import KINDS
from yunikorn.framework.offers import Option
from yunikorn.framework.registry import Registry
from yunikorn_lab.schema.key_texts import OTHER_KEYS, described
from yunikorn_lab.schema.value_forms import form_of

_TABLE = re.compile(r"^<!-- (?:keys: ([a-z-]+)|options) -->$", re.MULTILINE)


def markdown(registry: Registry) -> str:
    """Return the page, including the options of the plugins in `framework.registry`."""
    page = resources.files("yunikorn_lab.schema").joinpath("reference_page.md").read_text("utf-8")
    sections = {section.name: section for section in SECTIONS}

    def table(place: re.Match[str]) -> str:
        return "\n".join(_keys(sections[place[1]]) if place[1] else _options(registry))

    return _TABLE.sub(table, page)


def _keys(section: ConfigSection) -> Iterator[str]:
    yield "| key | type | default | meaning | example |"
    yield "|---|---|---|---|---|"
    for one in described(section):
        name = f"`{one.key.path}`" + (" **ours**" if one.key.ours else "")
        words, text = form_of(one.key.value).words, one.text
        yield f"| {name} | {words} | {one.default} | {text.meaning} | `{text.example}` |"
    if section.name in OTHER_KEYS:
        yield f"| any other | | | {OTHER_KEYS[section.name]} | |"


def _options(registry: Registry) -> Iterator[str]:
    yield "| plugin | kind | option | type | default |"
    yield "|---|---|---|---|---|"
    for kind in KINDS:
        for offer in registry.offers(kind):
            for option in offer.options:
                default = "required" if option.required else f"`{_default(option)}`"
                cell = option.type.replace("|", "\\|")
                yield f"| `{offer.name}` | `{kind.id}` | `{option.name}` | `{cell}` | {default} |"


def _default(option: Option) -> str:
    value = option.default
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return "[" + ", ".join(map(str, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if value != "" else '""'
