"""Reader of node orders: the default of a partition, and its named alternatives.

See `docs/decisions/0010`.
"""

from __future__ import annotations

from typing import Any

from yunikorn.config.document import Scalar, show
from yunikorn.config.plugin_refs import PluginCheck, note_if_ours
from yunikorn.config.reading import Table
from yunikorn.config.schema import PluginRef
from yunikorn.framework.kinds import NODE_SORT

DEFAULT = "fair"
WEIGHTS = "resourceweights"


def read_node_sort(partition: Table, plugins: PluginCheck) -> PluginRef:
    """Read `nodesortpolicy`, the default node order of the partition."""
    key = "nodesortpolicy"
    node = partition.get(key)
    if isinstance(node, Scalar):
        plugins.findings.problem(
            partition.spot(key), f"expected a mapping, got {show(node)}: write {{type: {node.text}}}"
        )
        return PluginRef(DEFAULT)
    table = partition.table(key)
    if table is None:
        ref = PluginRef(DEFAULT)
        plugins.check(NODE_SORT, ref, partition.spot(key), partition.spot(key))
        return ref
    return _read(table, plugins, ("type",))


def read_node_sorts(partition: Table, plugins: PluginCheck) -> dict[str, PluginRef]:
    """Read `nodesortpolicies`, the named alternatives."""
    found: dict[str, PluginRef] = {}
    for table in partition.tables("nodesortpolicies"):
        ref = _read(table, plugins, ("name", "type"))
        name = table.text("name")
        if not name:
            plugins.findings.problem(
                table.spot("name"), "required, but missing: queues choose the policy by this name"
            )
        elif name in found:
            plugins.findings.problem(table.spot("name"), f"the name '{name}' is already given")
        else:
            found[name] = ref
    return found


def _read(table: Table, plugins: PluginCheck, core: tuple[str, ...]) -> PluginRef:
    name = table.text("type") or DEFAULT
    options = plugins.known_options(NODE_SORT, name, table, core)
    # An empty mapping means the default weights, as in YuniKorn 1.9.
    if WEIGHTS in options and not (weights := _read_weights(table)):
        del options[WEIGHTS]
    elif WEIGHTS in options:
        options[WEIGHTS] = weights
    ref = PluginRef(name, options)
    if plugins.check(NODE_SORT, ref, table.spot("type"), table.here()):
        note_if_ours(NODE_SORT, name, table.spot("type"), plugins.findings)
    return ref


def _read_weights(table: Table) -> dict[str, Any]:
    weights: dict[str, Any] = {}
    given = table.table(WEIGHTS)
    if given is None:
        return weights
    for name in given.node.entries:
        weight = given.number(name)
        if weight is not None and weight < 0:
            table.findings.problem(given.spot(name), f"a weight cannot be below 0, got {weight:g}")
        elif weight is not None:
            weights[name] = repr(weight)
    return weights
