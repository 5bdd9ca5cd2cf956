"""Sections of the configuration, in the order of the reference page."""

from __future__ import annotations

from yunikorn.reference.keys import KeySection
from yunikorn.reference.queue_keys import LIMIT, PROPERTIES, QUEUE, TEMPLATE
from yunikorn.reference.rule_keys import NAMED_NODE_ORDER, NODE_ORDER, RULE
from yunikorn.reference.top_level import PARTITION, PERIODS, TOP

SECTIONS: tuple[KeySection, ...] = (
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
