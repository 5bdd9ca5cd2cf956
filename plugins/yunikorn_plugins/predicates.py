"""Predicates: which nodes a request may run on, beyond having room.

    partitions:
      - name: default
        predicates:
          - node-selector
          - name: taints
            attribute: taints

`node-selector`: a request, or its application, says what the node's attributes must be like, in the tag
`yunikorn.apache.org/node-selector`: `zone=a, disk in (ssd, nvme), gpu, !spot, rack!=r7`.

`taints`: a node keeps requests away with its attribute `taints`, `team=red:NoSchedule, old:NoExecute`,
except those that tolerate it in the tag `yunikorn.apache.org/tolerations`: `team=red, old` or `*`.

`check` returns None for yes, or the reason for no. A tag that makes no sense is a reason for no, too: an
exception would be a bug of the predicate. What the answer depends on is told by `ask_class` and
`node_class`, so that the scheduler asks once for each pair of classes instead of for each pair of request
and node.
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
"""A comma outside of parentheses."""
_REQUIREMENT = re.compile(
    r"""(?P<absent>!\s*)?(?P<key>[^\s=!(),]+)
        (?: \s*(?P<compare>==?|!=)\s*(?P<value>[^\s=!(),]+)
          | \s+(?P<within>in|notin)\s*\((?P<values>[^()]+)\) )?""",
    re.VERBOSE,
)


@attrs.frozen
class Requirement:
    """One condition on an attribute of the node."""

    text: str
    key: str
    values: frozenset[str] | None
    """None: whichever, as long as it is there."""
    wanted: bool
    """Whether the attribute must be one of the values, or must not."""

    def is_met(self, attributes: Mapping[str, str]) -> bool:
        """Whether these attributes are as required; one that is missing has none of the values."""
        found = attributes.get(self.key)
        inside = found is not None if self.values is None else found in self.values
        return inside is self.wanted


@lru_cache(maxsize=1024)
def read_selector(text: str) -> tuple[Requirement, ...] | str:
    """The requirements of a selector, or what is wrong with it."""
    if not text.strip():
        return ()
    requirements = []
    for part in _COMMA.split(text):
        match = _REQUIREMENT.fullmatch(part.strip())
        compare = match and (match["compare"] or match["within"])
        if match is None or (match["absent"] and compare):
            return f"'{part.strip()}' is none of {FORMS}"
        values = None
        if compare:
            values = frozenset(value.strip() for value in (match["value"] or match["values"]).split(","))
        wanted = not match["absent"] and compare not in ("!=", "notin")
        requirements.append(Requirement(part.strip(), match["key"], values, wanted))
    return tuple(requirements)


@attrs.frozen
class NodeSelector(Predicate):
    """Only nodes whose attributes are as the request and its application require."""

    name = "node-selector"
    tag: str = "yunikorn.apache.org/node-selector"
    """Where requests and applications say it; both count."""
    keys: tuple[str, ...] = ()
    """The attributes that selectors may use, all if empty. Naming them is faster on many nodes: nodes that
    differ in other attributes only, such as their host names, are then asked about once."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """The first requirement that the node does not meet."""
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            requirements = read_selector(text)
            if isinstance(requirements, str):
                return f"the node selector cannot be read: {requirements} (tag {self.tag})"
            for requirement in requirements:
                if self.keys and requirement.key not in self.keys:
                    return f"the node selector may not use '{requirement.key}', only {', '.join(self.keys)}"
                if not requirement.is_met(node.attributes):
                    found = node.attributes.get(requirement.key)
                    return f"the node selector wants {requirement.text}, the node has " + (
                        f"no {requirement.key}" if found is None else f"{requirement.key}={found}"
                    )
        return None

    def ask_class(self, ask: Ask) -> Hashable:
        """Both selectors, as text."""
        return ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")

    def node_class(self, node: Node) -> Hashable:
        """The attributes that a selector may look at."""
        attributes = node.attributes
        return tuple(map(attributes.get, self.keys)) if self.keys else frozenset(attributes.items())

    def wanted(self, ask: Ask) -> str | None:
        """All requirements; None when a selector cannot be read."""
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
    """A taint, or what tolerates it; of a toleration, None stands for any."""

    text: str
    key: str
    value: str | None
    effect: str | None

    def tolerates(self, taint: Mark) -> bool:
        """Whether this toleration covers the taint."""
        return (
            self.key in ("*", taint.key)
            and self.value in (None, taint.value or "")
            and self.effect in (None, taint.effect or "NoSchedule")
        )


@lru_cache(maxsize=1024)
def read_marks(text: str) -> tuple[Mark, ...] | str:
    """Taints or tolerations, `key[=value][:effect]` separated by commas; or what is wrong with them."""
    marks = []
    for part in (part.strip() for part in text.split(",")):
        match = _MARK.fullmatch(part)
        if part and match is None:
            return f"'{part}' is not KEY, KEY=VALUE or KEY=VALUE:EFFECT"
        if match:
            if match["effect"] not in (None, *EFFECTS):
                return f"'{match['effect']}' is no effect, only {', '.join(EFFECTS)} are"
            marks.append(Mark(part, match["key"], match["value"], match["effect"]))
    return tuple(marks)


@attrs.frozen
class Taints(Predicate):
    """No node whose taints the request or its application does not tolerate."""

    name = "taints"
    attribute: str = "taints"
    """The node's attribute. A taint without an effect is NoSchedule; PreferNoSchedule keeps nobody away."""
    tag: str = "yunikorn.apache.org/tolerations"
    """Where requests and applications say what they tolerate; both count."""

    def check(self, ask: Ask, node: Node) -> str | None:
        """The first taint that is not tolerated."""
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
        """Both lists of tolerations, as text."""
        return ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")

    def node_class(self, node: Node) -> Hashable:
        """The taints, as text."""
        return node.attributes.get(self.attribute, "")

    def wanted(self, ask: Ask) -> str | None:
        """No taints but those that are tolerated; None when the tolerations cannot be read."""
        texts: list[str] = []
        for text in (ask.app.tags.get(self.tag, ""), ask.tags.get(self.tag, "")):
            marks = read_marks(text)
            if isinstance(marks, str):
                return None
            texts += [mark.text for mark in marks]
        return f"no taints but {', '.join(texts)}" if texts else "no taints"


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Where a request wants to go, and where it is not wanted."""
    return [NodeSelector, Taints]
