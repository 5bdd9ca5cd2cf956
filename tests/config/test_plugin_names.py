"""Names that several plugins offer, and plugins that a configuration loads from files and modules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, document, partition, plugin_with, queue
from yunikorn.api import AppSortPolicy, NodeSortPolicy, Predicate
from yunikorn.clock import ManualClock
from yunikorn.config.load import check_config
from yunikorn.errors import ConfigError
from yunikorn.framework.kinds import APP_SORT, NODE_SORT, PREDICATE
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.plugin_files import CodePermission, trusting
from yunikorn_service.policy_groups import Configurations


def predicate(name: str, answer: str | None = None) -> type[Predicate]:
    return type("Check", (Predicate,), {"name": name, "check": lambda self, ask, node: answer})


def sort_policy(name: str, base: type[Any] = NodeSortPolicy, method: str = "score") -> type[Any]:
    return type("Order", (base,), {"name": name, method: lambda self, one: 0.0})


@pytest.fixture
def registry() -> Registry:
    """Return a registry in which two distributions offer `rack`, and one of them `fair` as well."""
    registry = Registry.load(third_party=False)
    for distribution in ("Acme_Racks", "other"):
        plugin = plugin_with(
            predicates=[predicate("rack", f"refused by {distribution}")],
            node_sort_policies=[sort_policy("fair")] if distribution == "other" else [],
        )
        assert registry.register(plugin, "racks", distribution, "1.0")
    return registry


def with_predicates(*names: str, **plugins: Any) -> str:
    return document(partition(queue("a"), predicates=list(names)), plugins=plugins)


def messages(text: str, registry: Registry) -> list[str]:
    return [str(problem) for problem in check_config(text, registry).problems]


def test_both_offers_of_a_name_are_listed_and_harm_no_configuration_that_does_not_use_it(
    registry: Registry,
) -> None:
    assert [offer.distribution for offer in registry.offers(PREDICATE) if offer.name == "rack"] == [
        "Acme_Racks",
        "other",
    ]
    assert registry.broken == []
    assert messages(with_predicates("taints"), registry) == []


def test_an_ambiguous_name_is_a_problem_where_it_is_used(registry: Registry) -> None:
    (problem,) = messages(with_predicates("rack"), registry)
    assert problem.startswith("partitions[0].predicates[0] (line 1, column ")
    assert "offered by racks (Acme_Racks 1.0) and racks (other 1.0)" in problem
    assert "write rack@Acme_Racks or rack@other" in problem


@pytest.mark.parametrize("source", ["other", "Acme_Racks", "acme-racks", "ACME.racks"])
def test_the_distribution_selects_an_offer(registry: Registry, source: str) -> None:
    rm = RM(with_predicates(f"rack@{source}"), registry)
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    (explanation,) = rm.scheduler.explain("rm", "default", "app").values()
    used = "other" if source == "other" else "Acme_Racks"
    assert f"refused by {used}" in str(explanation)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rack@missing", "predicate 'rack' is not offered by 'missing', only by racks (Acme_Racks 1.0) and"),
        ("nothing@other", "no predicate is called 'nothing'"),
        ("rack@", "offered by racks"),
    ],
)
def test_wrong_sources_are_problems(registry: Registry, name: str, text: str) -> None:
    (problem,) = messages(with_predicates(name), registry)
    assert text in problem


def test_disabling_one_offer_makes_a_name_clear(registry: Registry) -> None:
    for disabled in ("rack@other", "predicate:rack@other"):
        assert messages(with_predicates("rack", disable=[disabled]), registry) == []
    (problem,) = messages(with_predicates("rack@other", disable=["rack@other"]), registry)
    assert "disabled by plugins.disable" in problem


def test_a_default_keeps_its_name_unless_it_is_overridden(registry: Registry) -> None:
    assert registry.find(NODE_SORT, "fair").distribution == "yunikorn"
    assert registry.find(NODE_SORT, "fair@other").distribution == "other"
    for text in ("fair@other", "node-sort:fair@other"):
        rm = RM(document(partition(queue("a")), plugins={"override": [text]}), registry)
        assert type(rm.at_work().policies.node_sorts[""].policy).__name__ == "Order"
    rm.reload(document(partition(queue("a"))))
    assert type(rm.at_work().policies.node_sorts[""].policy).__name__ == "FairNodes"
    assert messages(with_predicates("rack", override=["rack@other"]), registry) == []


@pytest.mark.parametrize("wrong", ["fair", "fair@", "fair@missing", "app-sort:fair@other", "x:fair@other"])
def test_wrong_overrides_are_problems(registry: Registry, wrong: str) -> None:
    (problem,) = messages(with_predicates(override=[wrong]), registry)
    assert problem.startswith("plugins.override[0] (line")


def test_one_plugin_cannot_offer_a_name_twice() -> None:
    registry = Registry.load(third_party=False)
    plugin = plugin_with(predicates=[predicate("rack"), predicate("rack")])
    assert not registry.register(plugin, "racks", "acme", "1")
    assert "already offered by racks (acme 1)" in registry.broken[0].reason


@pytest.mark.parametrize("name", ["fair", "fifo"])
def test_a_default_can_be_disabled_where_nothing_needs_it(name: str) -> None:
    registry = Registry.load(third_party=False)
    registry.register(plugin_with(app_sort_policies=[sort_policy("mine", AppSortPolicy, "key")]), "mine")
    kind = {"fair": "node-sort", "fifo": "app-sort"}[name]
    (problem, *_) = messages(
        document(partition(queue("a")), plugins={"disable": [f"{kind}:{name}"]}), registry
    )
    assert "is disabled by plugins.disable" in problem
    if name == "fair":
        other = partition(queue("a"), nodesortpolicy={"type": "binpacking"})
        assert messages(document(other, plugins={"disable": [f"{kind}:{name}"]}), registry) == []


# -- plugins from files and modules --------------------------------------------------------------------

SOURCE = """
from __future__ import annotations
import attrs
from yunikorn.api import Application, AppSortPolicy, hookimpl

@attrs.frozen
class Loaded(AppSortPolicy):
    name = "loaded"
    factor: int = 1

    def key(self, app: Application) -> float:
        return FACTOR * self.factor

@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    return [Loaded]
"""
TEXT = document(
    partition(
        queue("a", properties={"application.sort.policy": "loaded", "application.sort.policy.factor": "3"})
    ),
    plugins={"load": ["./mine.py"]},
)


def write(folder: Path, factor: int) -> None:
    (folder / "mine.py").write_text(SOURCE.replace("FACTOR", str(factor)), "utf-8")


def key_of(rm: RM) -> Any:
    return rm.find_queue().order.policy.key(None)


def test_a_plugin_file_is_loaded_relative_to_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, 2)
    registry = trusting(Registry.load(third_party=False), tmp_path)
    rm = RM(TEXT, registry)
    assert key_of(rm) == 6
    policy = rm.find_queue().order.policy
    assert not rm.reload(TEXT), "nothing has changed"
    write(tmp_path, 5)
    assert rm.reload(TEXT), "the file has changed"
    assert key_of(rm) == 15
    assert rm.find_queue().order.policy is not policy
    assert registry.find(APP_SORT, "fifo")
    assert not [offer for offer in registry.offers() if offer.name == "loaded"], "for this configuration only"


def test_a_plugin_file_that_did_not_change_keeps_its_objects(tmp_path: Path) -> None:
    write(tmp_path, 2)
    rm = RM(TEXT, trusting(Registry.load(third_party=False), tmp_path))
    policy = rm.find_queue().order.policy
    assert rm.reload(TEXT + " ")
    assert rm.find_queue().order.policy is policy


BAD_FILES = {
    "missing": (None, "No such file"),
    "syntax": ("def broken(:", "SyntaxError"),
    "raises": ("raise KeyError('a')", "KeyError"),
    "exits": ("import sys; sys.exit(0)", "SystemExit"),
    "no hook": ("x = 1", "it implements no hook"),
    "bad class": (SOURCE.replace('name = "loaded"', ""), "has no name"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_plugin_files_are_problems_with_their_place(tmp_path: Path, what: str) -> None:
    source, reason = BAD_FILES[what]
    if source is not None:
        (tmp_path / "mine.py").write_text(source, "utf-8")
    problems = messages(TEXT, trusting(Registry.load(third_party=False), tmp_path))
    assert problems[-1].startswith("plugins.load[0] (line 1") or problems[0].startswith("plugins.load[0]")
    assert any("./mine.py" in problem and reason in problem for problem in problems)


def test_a_module_can_be_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yunikorn_test_loaded.py").write_text(SOURCE.replace("FACTOR", "7"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rm = RM(
        TEXT.replace("./mine.py", "yunikorn_test_loaded"),
        trusting(Registry.load(third_party=False), tmp_path),
    )
    assert key_of(rm) == 21


def test_configurations_of_resource_managers_load_no_code(tmp_path: Path) -> None:
    write(tmp_path, 2)
    with pytest.raises(ConfigError, match="only a configuration file of the operator may load plugins"):
        RM(TEXT.replace("./mine.py", str(tmp_path / "mine.py")), Registry.load(third_party=False))


@pytest.mark.parametrize("allowed", [True, False])
def test_only_the_configuration_of_a_policy_group_with_a_folder_loads_code(
    tmp_path: Path, allowed: bool
) -> None:
    write(tmp_path, 2)
    configurations = Configurations(
        {"": TEXT}, code={"": CodePermission.of_operator(tmp_path)} if allowed else None, allow_rm_config=True
    )
    scheduler = Scheduler(Registry.load(third_party=False), ManualClock(), configurations=configurations)

    class Callback:
        def recv_update_response(self, response: object) -> None:
            pass

    request = RegisterResourceManagerRequest("rm")
    if not allowed:
        with pytest.raises(ConfigError, match="may load plugins"):
            scheduler.register_resource_manager(request, Callback())
        return
    scheduler.register_resource_manager(request, Callback())
    write(tmp_path, 4)
    assert scheduler.reload_configuration("rm")
    with pytest.raises(ConfigError, match="may load plugins"):
        scheduler.reload_configuration("rm", TEXT + " ")
    with pytest.raises(ConfigError, match="may load plugins"):
        scheduler.register_resource_manager(RegisterResourceManagerRequest("other", config=TEXT), Callback())


@pytest.mark.parametrize("name", ["", " ", ".", "a b", "7", ".relative", "a..b"])
def test_text_that_is_neither_a_file_nor_a_module_is_reported(name: str, tmp_path: Path) -> None:
    text = document(partition(queue("a")), plugins={"load": [name]})
    (problem,) = check_config(text, trusting(Registry.load(third_party=False), tmp_path)).problems
    assert problem.path == "plugins.load[0]"
    assert problem.message == (
        f"{name!r} is neither a file nor a module: write a path such as ./mine.py, or package.module"
    )


def test_a_module_beside_a_file_is_explained(tmp_path: Path) -> None:
    write(tmp_path, 2)
    (tmp_path / "helper.py").touch()
    (tmp_path / "mine.py").write_text("import helper\n", "utf-8")
    problems = messages(TEXT, trusting(Registry.load(third_party=False), tmp_path))
    assert any("No module named 'helper'. It is beside mine.py" in problem for problem in problems)


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of files")
@pytest.mark.parametrize("place", ["mine.py", "."])
def test_a_file_that_others_may_change_is_warned_about(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 2)
    registry = trusting(Registry.load(third_party=False), tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "mine.py").chmod(0o644)
    assert not messages(TEXT, registry)
    assert not caplog.text
    write(tmp_path, 3)
    (tmp_path / place).chmod(0o777)
    assert not messages(TEXT, registry)
    assert "may be changed by other users: chmod go-w, or chown it" in caplog.text


def test_a_file_that_changes_the_working_directory_has_no_effect_on_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 2)
    with (tmp_path / "mine.py").open("a", encoding="utf-8") as file:
        file.write("\nimport os\nos.chdir('/')\n")
    assert not messages(TEXT, trusting(Registry.load(third_party=False), Path()))
    assert Path.cwd() == tmp_path


UNREADABLE = {
    "a metaclass": (
        "class Meta(type):\n    def __getattribute__(cls, name):\n"
        "        if name == '__doc__': raise KeyError\n        return type.__getattribute__(cls, name)\n\n"
    ),
    "a descriptor": "class Raises:\n    def __get__(self, owner, cls): raise KeyError\n\n",
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_classes_whose_attributes_raise_are_left_out(tmp_path: Path, what: str) -> None:
    write(tmp_path, 2)
    source = (tmp_path / "mine.py").read_text("utf-8")
    head, line = source.index("@attrs"), "class Loaded(AppSortPolicy):\n"
    assert line in source
    source = source[:head] + UNREADABLE[what] + source[head:]
    new = line.replace(")", ", metaclass=Meta)") if "metaclass" in what else line
    new += "" if "metaclass" in what else "    admission_class = Raises()\n"
    (tmp_path / "mine.py").write_text(source.replace(line, new), "utf-8")
    problems = messages(TEXT, trusting(Registry.load(third_party=False), tmp_path))
    assert any("of class Loaded cannot be read: KeyError" in problem for problem in problems), problems
