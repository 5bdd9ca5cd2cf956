"""Default predicates: `node-selector` and `taints`.

    partitions:
      - name: default
        predicates:
          - node-selector
          - name: taints
            attribute: taints

`node-selector`: a request or its application requires attributes of the node in the tag
`yunikorn.apache.org/node-selector`: `zone=a, disk in (ssd, nvme), gpu, !spot, rack!=r7`.

`taints`: a node repels requests with its attribute `taints`, such as `team=red:NoSchedule, old:NoExecute`,
except those that tolerate the taints in the tag `yunikorn.apache.org/tolerations`: `team=red, old` or `*`.

`check` returns None to accept, or the reason for a refusal. An invalid tag is also a reason for a refusal,
because an exception would be a bug of the predicate. `ask_class` and `node_class` declare what the answer
depends on, so that the scheduler asks once per pair of classes instead of once per pair of request and node.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache

import attrs

from yunikorn.api import Ask, Node, Predicate, hookimpl

# -- node-selector ------------------------------------------------------------------------------------

FORMS = "key=value, key!=value, key in (a, b), key notin (a, b), key, !key"
_COMMA = re.compile(r",(?![^(]*\))")
"""Comma outside of parentheses."""
_REQUIREMENT = re.compile(
    r"""(?P<absent>!\s*)?(?P<key>[^\s=!(),]+)
        (?: \s*(?P<compare>==?|!=)\s*(?P<value>[^\s=!(),]+)
          | \s+(?P<within>in|notin)\s*\((?P<values>[^()]+)\) )?""",
    re.VERBOSE,
)


@attrs.frozen
class AttributeRequirement:
    """Condition on an attribute of the node."""

    text: str
    key: str
    values: frozenset[str] | None
    """Accepted values; None for any value."""
    wanted: bool
    """True if the attribute must have one of the values, False if it must not."""

    def is_met(self, attributes: Mapping[str, str]) -> bool:
        """Return True if the condition is met; a missing attribute has none of the values."""
        found = attributes.get(self.key)
        inside = found is not None if self.values is None else found in self.values
        return inside is self.wanted


@lru_cache(maxsize=1024)
def read_selector(text: str) -> tuple[AttributeRequirement, ...] | str:
    """Return the requirements of a selector, or an error text."""
    if not text.strip():
        return ()
    requirements = []
    for part in _COMMA.split(text):
        match = _REQUIREMENT.fullmatch(part.strip())
        compare = match and (match["compare"] or match["within"])
        if match is None or (match["absent"] and compare):
            return f"'{part.strip()}' has none of the forms {FORMS}"
        values = None
        if compare:
            values = frozenset(value.strip() for value in (match["value"] or match["values"]).split(","))
        wanted = not match["absent"] and compare not in ("!=", "notin")
        requirements.append(AttributeRequirement(part.strip(), match["key"], values, wanted))
    return tuple(requirements)


@attrs.frozen
class NodeSelector(Predicate):
    """Only nodes whose attributes are as the request and its application require."""

    name = "node-selector"
    tag: str = "yunikorn.apache.org/node-selector"
    """Tag with the selector; those of the request and of its application must both be met."""
    keys: tuple[str, ...] = ()
    """Attributes that selectors may use, all if empty. Naming them is faster on many nodes: nodes that differ
    only in other attributes, such as their host names, are then checked once."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the first requirement that the node does not meet, or None."""
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            requirements = read_selector(text)
            if isinstance(requirements, str):
                return f"the node selector cannot be read: {requirements} (tag {self.tag})"
            for requirement in requirements:
                if self.keys and requirement.key not in self.keys:
                    return f"the node selector may not use '{requirement.key}', only {', '.join(self.keys)}"
                if not requirement.is_met(node.attributes):
                    found = node.attributes.get(requirement.key)
                    return f"the node selector requires {requirement.text}, the node has " + (
                        f"no {requirement.key}" if found is None else f"{requirement.key}={found}"
                    )
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return both selectors as text."""
        return ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")

    def node_class(self, node: Node) -> Hashable:
        """Return the attributes that a selector may use."""
        attributes = node.attributes
        return tuple(map(attributes.get, self.keys)) if self.keys else frozenset(attributes.items())

    def wanted(self, ask: Ask) -> str | None:
        """Return all requirements; None if a selector is invalid."""
        texts: list[str] = []
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            requirements = read_selector(text)
            if isinstance(requirements, str):
                return None
            texts += [requirement.text for requirement in requirements]
        return f"attribute{'s' if len(texts) > 1 else ''} {', '.join(texts)}" if texts else None


# -- taints -------------------------------------------------------------------------------------------

EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_MARK = re.compile(r"(?P<key>\*|[^\s=:,*]+)(?:=(?P<value>[^\s=:,]*))?(?::(?P<effect>\w+))?")


@attrs.frozen
class Mark:
    """Taint or toleration; in a toleration None matches any value or effect."""

    text: str
    key: str
    value: str | None
    effect: str | None

    def tolerates(self, taint: Mark) -> bool:
        """Return True if this toleration matches the taint."""
        return (
            self.key in ("*", taint.key)
            and self.value in (None, taint.value or "")
            and self.effect in (None, taint.effect or "NoSchedule")
        )


@lru_cache(maxsize=1024)
def read_marks(text: str) -> tuple[Mark, ...] | str:
    """Return taints or tolerations from text `key[=value][:effect],...`, or an error text."""
    marks = []
    for part in (part.strip() for part in text.split(",")):
        match = _MARK.fullmatch(part)
        if part and match is None:
            return f"'{part}' is not KEY, KEY=VALUE or KEY=VALUE:EFFECT"
        if match:
            if match["effect"] not in (None, *EFFECTS):
                return f"'{match['effect']}' is not an effect; known: {', '.join(EFFECTS)}"
            marks.append(Mark(part, match["key"], match["value"], match["effect"]))
    return tuple(marks)


@attrs.frozen
class Taints(Predicate):
    """No node whose taints the request or its application does not tolerate."""

    name = "taints"
    attribute: str = "taints"
    """Attribute of the node. A taint without effect is NoSchedule; PreferNoSchedule refuses no request."""
    tag: str = "yunikorn.apache.org/tolerations"
    """Tag with the tolerations; those of the request and of its application both count."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the first taint that is not tolerated, or None."""
        taints = read_marks(node.attributes.get(self.attribute, ""))
        if isinstance(taints, str):
            return f"the node's taints cannot be read: {taints} (attribute {self.attribute})"
        tolerations: list[Mark] = []
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            marks = read_marks(text)
            if isinstance(marks, str):
                return f"the tolerations cannot be read: {marks} (tag {self.tag})"
            tolerations += marks
        for taint in taints:
            if taint.effect != "PreferNoSchedule" and not any(mark.tolerates(taint) for mark in tolerations):
                return f"the node has the taint {taint.text}, which is not tolerated"
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Return both lists of tolerations as text."""
        return ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")

    def node_class(self, node: Node) -> Hashable:
        """Return the taints as text."""
        return node.attributes.get(self.attribute, "")

    def wanted(self, ask: Ask) -> str | None:
        """Return the tolerated taints as the requirement; None if the tolerations are invalid."""
        texts: list[str] = []
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            marks = read_marks(text)
            if isinstance(marks, str):
                return None
            texts += [mark.text for mark in marks]
        return f"no taints except {', '.join(texts)}" if texts else "no taints"


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicates for node selectors and for taints."""
    return [NodeSelector, Taints]
