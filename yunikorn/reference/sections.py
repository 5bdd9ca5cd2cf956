"""All sections of a configuration, in the order of the reference."""

from __future__ import annotations

from yunikorn.reference.keys import Section
from yunikorn.reference.queues import LIMIT, PROPERTIES, QUEUE, TEMPLATE
from yunikorn.reference.rules import NAMED_NODE_ORDER, NODE_ORDER, RULE
from yunikorn.reference.top_level import PARTITION, PERIODS, TOP

SECTIONS: tuple[Section, ...] = (
    TOP,
    PARTITION,
    PERIODS,
    QUEUE,
    PROPERTIES,
    LIMIT,
    TEMPLATE,
    RULE,
    NODE_ORDER,
    NAMED_NODE_ORDER,
)
