"""Reader of node orders: one node sort policy, or several with weights.

See `docs/decisions/archive/0010` for named orders, and `docs/decisions/archive/0070` for weights.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

from yunikorn.api import NodeSortPolicy
from yunikorn.config.document import Scalar, show
from yunikorn.config.keys import ConfigSection
from yunikorn.config.plugin_refs import PluginCheck, note_if_ours
from yunikorn.config.queues_yaml import (
    DEFAULT_ORDER,
    NAMED_NODE_ORDER,
    NODE_ORDER,
    SCORE,
    WEIGHTED,
    PluginRef,
    ScoreConfig,
    WeightedRef,
)
from yunikorn.config.values import WEIGHTS
from yunikorn.config.yaml_reading import YamlTable
from yunikorn.errors import UnknownPlugin
from yunikorn.framework.kinds import NODE_SORT

_UNDECLARED = getattr_static(NodeSortPolicy, "score_range")
_ORDER = "nodesortpolicy"
_SCORES = "scores"
_WEIGHTS = "resourceweights"


def read_node_sort(partition: YamlTable, plugins: PluginCheck) -> PluginRef:
    """Read the default node order of a partition."""
    node, spot = partition.get(_ORDER), partition.spot(_ORDER)
    if isinstance(node, Scalar):
        plugins.findings.problem(spot, f"expected a mapping, got {show(node)}: write {{type: {node.text}}}")
        return PluginRef(DEFAULT_ORDER)
    table = partition.table(_ORDER)
    if table is None:
        ref = PluginRef(DEFAULT_ORDER)
        plugins.check(NODE_SORT, ref, spot, spot)
        return ref
    return _read_node_order(table, plugins, NODE_ORDER)


def read_node_sorts(partition: YamlTable, plugins: PluginCheck) -> dict[str, PluginRef]:
    """Read the named node orders of a partition."""
    found: dict[str, PluginRef] = {}
    for table in partition.tables("nodesortpolicies"):
        ref = _read_node_order(table, plugins, NAMED_NODE_ORDER)
        name = table.text("name")
        if not name:
            table.problem("name", "required, but missing: queues choose the policy by this name")
        elif name in found:
            table.problem("name", f"the name '{name}' is already given")
        else:
            found[name] = ref
    return found


def _read_node_order(table: YamlTable, plugins: PluginCheck, section: ConfigSection) -> PluginRef:
    name = table.text("type") or DEFAULT_ORDER
    if name == WEIGHTED:
        return _read_weighted(table, plugins, section)
    core = [key for key in section.known if key not in (_WEIGHTS, _SCORES)]
    ref = PluginRef(name, _read_node_options(table, plugins, name, core))
    if plugins.check(NODE_SORT, ref, table.spot("type"), table.here()):
        note_if_ours(NODE_SORT, name, table.spot("type"), plugins.findings)
    return ref


def _read_node_options(table: YamlTable, plugins: PluginCheck, name: str, core: list[str]) -> dict[str, Any]:
    """Return the options of a node sort policy: all keys of `table` except the `core` ones."""
    options = plugins.known_options(NODE_SORT, name, table, core)
    if _WEIGHTS in options:
        assert WEIGHTS.read is not None
        options[_WEIGHTS] = WEIGHTS.read(table, _WEIGHTS)
        # An empty mapping means the default weights, as in YuniKorn 1.9.
        if not options[_WEIGHTS]:
            del options[_WEIGHTS]
    return options


def _read_weighted(table: YamlTable, plugins: PluginCheck, section: ConfigSection) -> WeightedRef:
    table.only([key for key in section.known if key != _WEIGHTS])
    note_if_ours(NODE_SORT, WEIGHTED, table.spot("type"), plugins.findings)
    before = len(plugins.findings.problems)
    scores = [_read_score(each, plugins) for each in table.tables(_SCORES)]
    if not scores and len(plugins.findings.problems) == before:
        text = "required, but missing: the policies to combine, such as [{name: fair, weight: 2}]"
        table.problem(_SCORES, text)
    return WeightedRef(WEIGHTED, scores=tuple(score for score in scores if score))


def _read_score(table: YamlTable, plugins: PluginCheck) -> ScoreConfig | None:
    values = SCORE.read(table)
    name = values["name"]
    if not name or name == WEIGHTED:
        text = f"the policies of '{WEIGHTED}' cannot be '{WEIGHTED}' themselves: list them here"
        text = text if name else f"required, but missing: the name of a {NODE_SORT.title}"
        table.problem("name", text)
        return None
    values["options"] = _read_node_options(table, plugins, name, list(SCORE.known))
    plugins.check(NODE_SORT, PluginRef(name, values["options"]), table.spot("name"), table.here())
    _warn_of_score(table, plugins, name)
    return ScoreConfig(**values)


def _warn_of_score(table: YamlTable, plugins: PluginCheck, name: str) -> None:
    """Warn of a policy whose scores have no known range, and of options that cannot be given."""
    try:
        offer = plugins.registry.find(NODE_SORT, name)
    except UnknownPlugin:
        return
    is_known = getattr_static(offer.cls, "normalised") is True or (
        getattr_static(offer.cls, "score_range") is not _UNDECLARED
    )
    if "range" not in table and not is_known:
        text = (
            f"'{name}' declares no range of its scores, so weights mean little: add range: [LOWEST, HIGHEST]"
        )
        plugins.findings.warning(table.spot("name"), text)
    for option in offer.options:
        if option.name in SCORE.known and option.name in table:
            text = f"not an option here: the option '{option.name}' of '{name}' keeps its default"
            plugins.findings.warning(table.key_spot(option.name), text)
