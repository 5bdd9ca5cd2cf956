"""Every kind of plugin has a page with a complete example, which is tested and covers the whole interface."""

from __future__ import annotations

import ast
import re
import types
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

import yunikorn_testing as testing
from tests.documentation.pages import CHECKOUT, blocks_of
from yunikorn import api
from yunikorn.config.load import check_config
from yunikorn.framework.hook_manager import HOOKS
from yunikorn.framework.kinds import (
    ADMISSION,
    ALL_KINDS,
    APP_SORT,
    COMMAND,
    DOOR,
    EVENT_SINK,
    GANG_PLACEMENT,
    KINDS,
    NODE_SORT,
    PERMIT,
    PLACEMENT,
    PREDICATE,
    PREEMPTION,
    QUEUE_SORT,
    QUOTA,
    RESERVATION,
    RESOLVER,
    RUN_TIME,
    SUBMIT,
    TOPOLOGY,
    WORKLOAD_READER,
    PluginKind,
)
from yunikorn.framework.registry import Registry
from yunikorn_kubernetes.workloads import reader_contract

DOCS = CHECKOUT / "docs"
OVERVIEW = (DOCS / "plugins.md").read_text("utf-8")
VIEWS = (DOCS / "plugins" / "views.md").read_text("utf-8")
PAGE = {
    APP_SORT: DOCS / "plugins" / "application-sort.md",
    QUEUE_SORT: DOCS / "plugins" / "queue-sort.md",
    NODE_SORT: DOCS / "plugins" / "node-sort.md",
    PLACEMENT: DOCS / "plugins" / "placement-rules.md",
    PREDICATE: DOCS / "plugins" / "predicates.md",
    EVENT_SINK: DOCS / "plugins" / "event-sinks.md",
    RESOLVER: DOCS / "plugins" / "user-groups.md",
    PREEMPTION: DOCS / "plugins" / "preemption.md",
    SUBMIT: DOCS / "plugins" / "submit-policies.md",
    ADMISSION: DOCS / "plugins" / "admission-policies.md",
    QUOTA: DOCS / "plugins" / "quota-policies.md",
    RESERVATION: DOCS / "plugins" / "reservation-policies.md",
    PERMIT: DOCS / "plugins" / "permit-policies.md",
    TOPOLOGY: DOCS / "plugins" / "topology-sources.md",
    GANG_PLACEMENT: DOCS / "plugins" / "gang-placement.md",
    RUN_TIME: DOCS / "plugins" / "run-time-estimators.md",
    COMMAND: DOCS / "plugins" / "commands.md",
    DOOR: DOCS / "plugins" / "doors.md",
    WORKLOAD_READER: DOCS / "plugins" / "workload-readers.md",
}
RM_PAGE = DOCS / "plugins" / "resource-managers.md"
every_kind = pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)


OF_ALL_KINDS = {"name", "close_before_open", "saved", "restored"}
"""Class attributes and methods of plugins of all kinds, documented in docs/plugins.md."""
LIFE_CYCLE = {"opened", "reloaded", "closed"}
"""Common to all policies: tested for each in tests/plugins and tests/core. Others are not opened."""


def public(cls: type[Any]) -> set[str]:
    """Return the public methods and class attributes of a class of a kind, including those of `Plugin`.

    Others than policies have no configuration, and are not opened as policies are.
    """
    without = set() if cls in [kind.base for kind in KINDS] else LIFE_CYCLE
    members = {name for base in cls.__mro__[:-1] for name in vars(base)}
    annotated = {name for base in cls.__mro__[:-1] for name in getattr(base, "__annotations__", ())}
    return {name for name in members | annotated if not name.startswith("_")} - OF_ALL_KINDS - without


def contract_of(kind: PluginKind) -> str:
    """Return the name of the contract class for plugins of this kind."""
    return f"{kind.base.__name__}Contract"


def home_of(contract: str) -> types.ModuleType:
    """Return the module that has a contract: the test kit, or a module of the package with the kind."""
    return reader_contract if hasattr(reader_contract, contract) else testing


# -- documented ------------------------------------------------------------------------------------------


def test_there_is_a_page_for_every_kind_and_a_hook_for_every_page() -> None:
    assert set(PAGE) == set(ALL_KINDS)
    hooks = {name for name in vars(HOOKS) if name.startswith("yunikorn_")}
    assert hooks == {kind.hook for kind in ALL_KINDS}
    for kind, page in PAGE.items():
        assert f"({page.relative_to(DOCS).as_posix()})" in OVERVIEW, f"docs/plugins.md leads to {kind.id}"


@every_kind
def test_the_table_of_kinds_is_right(kind: PluginKind) -> None:
    assert f"| `{kind.id}` | `{kind.hook}` | `{kind.base.__name__}` |" in OVERVIEW


@every_kind
def test_page_names_its_hook_and_all_members_of_a_class(kind: PluginKind) -> None:
    text = PAGE[kind].read_text("utf-8")
    assert f"| hook | `{kind.hook}` |" in text
    assert f"| base class | `{kind.base.__name__}` |" in text
    contract = contract_of(kind)
    assert f"| contract | `{home_of(contract).__name__}.{contract}` |" in text
    assert f"def {kind.hook}() -> list[type[{kind.base.__name__}]]:" in text
    missing = {name for name in public(kind.base) if not re.search(rf"`{name}\b", text)}
    assert not missing, f"{PAGE[kind]} does not mention {missing}"


@every_kind
def test_page_lists_the_default_plugins(kind: PluginKind, registry: Registry) -> None:
    (row,) = re.findall(r"^\| comes with \| (.*) \|$", PAGE[kind].read_text("utf-8"), re.MULTILINE)
    names = {offer.name for offer in registry.offers(kind)}
    assert names <= set(re.findall(r"`([\w-]+)`", row))


@pytest.mark.parametrize(
    "view",
    [
        *(api.Application, api.PastService, api.Ask, api.Node, api.Queue, api.AskClass),
        *(api.Event, api.Context, api.ResourceManager),
        *(api.GangPart, api.PlacedGang, api.TopologyDomain),
    ],
)
def test_every_attribute_that_plugins_see_is_listed(view: type[Any]) -> None:
    section = VIEWS.partition(f"\n## {view.__name__}\n")[2].partition("\n## ")[0]
    names = {field.name for field in attrs.fields(view)} if attrs.has(view) else public(view)
    names |= OF_ALL_KINDS & {*vars(view)}
    assert set(re.findall(r"^\| `(\w+)", section, re.MULTILINE)) == names


def test_every_default_plugin_is_documented_with_its_yaml(registry: Registry) -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| `([\w-]+)` \| `([^`]+)`", OVERVIEW.partition("## The default")[2], re.M
    )
    assert [(kind, name) for name, kind, _ in rows] == [
        (offer.kind.id, offer.name) for kind in KINDS for offer in registry.offers(kind)
    ]
    for name, _, line in rows:
        assert name in str(yaml.safe_load(line)), line


# -- tested ----------------------------------------------------------------------------------------------


@every_kind
def test_example_of_a_page_is_complete_and_tested(kind: PluginKind) -> None:
    files = {block.file: block.text for block in blocks_of(PAGE[kind]) if block.file}
    (module,) = (name for name in files if name.endswith(".py") and not name.startswith("test_"))
    config = set() if kind in (COMMAND, WORKLOAD_READER) else {"queues.yaml"}
    assert set(files) == {module, f"test_{module}"} | config
    test = files[f"test_{module}"]
    assert f"({contract_of(kind)}):" in test
    assert not config or "scheduler(" in test, "the example decides something in a cluster"
    assert hasattr(home_of(contract_of(kind)), contract_of(kind))
    shown = [block for block in blocks_of(PAGE[kind]) if block.file]
    assert "not run" not in {remark for block in shown for remark in block.remarks}
    assert f"$ python -m pytest -q test_{module}" in PAGE[kind].read_text("utf-8")


@every_kind
def test_every_optional_member_is_used_in_a_test(kind: PluginKind) -> None:
    """Methods and attributes of every base class are implemented, and so called, somewhere in the tests."""
    implemented = implementations().get(kind.base.__name__, set())
    assert public(kind.base) <= implemented | LIFE_CYCLE


@cache
def implementations() -> dict[str, set[str]]:
    """Return the names that classes of tests, examples and defaults define, by the base class they name."""
    found: dict[str, set[str]] = {}
    for folder in ("tests", "plugins", "policies", "examples"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    for base in node.bases:
                        found.setdefault(ast.unparse(base).rpartition(".")[2], set()).update(_defined(node))
    return found


def _defined(node: ast.ClassDef) -> set[str]:
    names = {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)}
    targets = [target for inner in node.body if isinstance(inner, ast.Assign) for target in inner.targets]
    targets += [part for target in targets if isinstance(target, ast.Tuple) for part in target.elts]
    annotated = [inner.target for inner in node.body if isinstance(inner, ast.AnnAssign)]
    return names | {target.id for target in [*targets, *annotated] if isinstance(target, ast.Name)}


# -- the modules that the pages show -----------------------------------------------------------------------


def modules(page: Path) -> list[types.ModuleType]:
    """Modules with a hook that a page shows, each run on its own."""
    found = []
    for block in blocks_of(page):
        if block.language == "python" and "\n@hookimpl\ndef " in block.text:
            module = types.ModuleType(f"shown_at_line_{block.line}")
            exec(compile(block.text, block.place, "exec", dont_inherit=True), module.__dict__)
            found.append(module)
    return found


@pytest.fixture(scope="module")
def documented() -> Registry:
    """Return the default plugins and all plugins that the pages show."""
    registry = Registry.load(third_party=False)
    for page in (CHECKOUT / "README.md", DOCS / "plugins.md", *PAGE.values()):
        for module in modules(page):
            assert registry.register(module, f"{page.name}-{module.__name__}"), registry.broken
    return registry


@every_kind
def test_every_module_of_a_page_is_a_plugin_of_its_kind(kind: PluginKind, documented: Registry) -> None:
    shown = [offer for offer in documented.offers(kind) if offer.plugin.startswith(PAGE[kind].name)]
    assert len(shown) == len(modules(PAGE[kind])) > 0


CONFIGURATIONS = [
    pytest.param(block.text, id=block.place)
    for page in (DOCS / "plugins.md", *PAGE.values(), RM_PAGE)
    for block in blocks_of(page)
    if block.language == "yaml" and "partitions:" in block.text
]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_every_configuration_is_valid_without_warnings(text: str, documented: Registry) -> None:
    outcome = check_config(text, documented)
    assert (outcome.problems, outcome.warnings) == ((), ())
