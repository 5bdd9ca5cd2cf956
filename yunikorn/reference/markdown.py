"""Reference page of queues.yaml in Markdown: every key with its type, default, meaning and example."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.offers import Option
from yunikorn.reference.key_sections import SECTIONS
from yunikorn.reference.keys import Key, KeySection
from yunikorn.reference.rule_keys import NAMED_NODE_ORDER
from yunikorn.registry import KINDS, Registry

HEAD = """\
# Reference of queues.yaml

Every key, with its type, what holds where it is missing, what it means, and an example of a value. How values
are read, and how a file is checked, is told in [Configuration](configuration.md). Keys marked **ours** are
additions; a file that has one no longer loads in YuniKorn itself, and `yunikorn validate` says so. A key that
is not listed is refused, with a suggestion.

This page is made by `yunikorn schema --format markdown --builtin` from the same descriptions as the JSON
Schema of [`yunikorn schema`](configuration.md#in-the-editor).
"""


def markdown(registry: Registry) -> str:
    """Return the page, including the options of the plugins in `registry`."""
    parts = [HEAD, _contents()]
    parts += [_section(section) for section in SECTIONS if section is not NAMED_NODE_ORDER]
    parts.append(_options(registry))
    return "\n".join(parts)


def _contents() -> str:
    titles = [section.title for section in SECTIONS if section is not NAMED_NODE_ORDER]
    return "".join(f"- [{title}](#{_anchor(title)})\n" for title in [*titles, "Options of plugins"])


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _section(section: KeySection) -> str:
    lines = [f"## {section.title}", "", section.intro, "", *_table(section), ""]
    if section.notes:
        lines += [section.notes]
    if section.example:
        lines += ["```yaml", section.example.rstrip(), "```", ""]
    return "\n".join(lines)


def _table(section: KeySection) -> Iterator[str]:
    yield "| key | type | default | meaning | example |"
    yield "|---|---|---|---|---|"
    for key in section.keys:
        name = f"`{key.path}`" + (" **ours**" if key.ours else "")
        cells = name, _type(key), section.default_of(key), key.meaning, f"`{key.example}`"
        yield f"| {' | '.join(cells)} |"
    if section.open_to:
        yield f"| any other | | | {section.open_to} | |"


def _type(key: Key) -> str:
    if key.section or key.plugins:
        if key.many:
            return "list"
        return "mapping" if key.section or key.plugins is KINDS[-1] else "text"
    return key.holds.words


def _options(registry: Registry) -> str:
    lines = [
        "## Options of plugins",
        "",
        "What else may be said where a plugin is named. `yunikorn plugins` lists the same for those that are",
        "installed.",
        "",
        "| plugin | kind | option | type | default |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for offer in registry.offers(kind):
            for option in offer.options:
                default = "required" if option.required else f"`{_default(option)}`"
                kind_and_name = f"`{offer.name}` | `{kind.id}`"
                cell = option.type.replace("|", "\\|")
                lines.append(f"| {kind_and_name} | `{option.name}` | `{cell}` | {default} |")
    return "\n".join(lines) + "\n"


def _default(option: Option) -> str:
    value = option.default
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return "[" + ", ".join(map(str, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) if value != "" else '""'
