"""Default topology source: `attributes`, whose levels are attributes of the nodes.

A partition lists the levels, the outermost first:

    partitions:
      - name: default
        topology: [block, rack]

or several trees:

    partitions:
      - name: default
        topology:
          - {name: attributes, levels: [block, rack]}
          - {name: attributes, levels: [nvidia.com/gpu.clique]}

To write a source, copy this class into a module with the hook at the end of this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from yunikorn.api import Node, TopologySource, hookimpl


def _check_levels(_: object, __: object, levels: Sequence[str]) -> None:
    if not levels:
        raise ValueError("name at least one level")
    if "" in levels or len(set(levels)) < len(levels):
        raise ValueError("each level needs a name of its own")


@attrs.frozen
class AttributeTopology(TopologySource):
    """Domains by attributes of the nodes."""

    name = "attributes"

    levels: list[str] = attrs.field(validator=_check_levels)
    """Attributes, the outermost level first, such as `block`, `rack`."""

    def path(self, node: Node) -> Sequence[str]:
        """Return the values of the attributes; a missing one is empty."""
        attributes: Any = node.attributes
        return [attributes.get(level, "") for level in self.levels]


@hookimpl
def yunikorn_topology_sources() -> list[type[TopologySource]]:
    """Return the default source."""
    return [AttributeTopology]
