"""The documentation is true: it names every plugin, its examples run, its commands are the real ones."""

from __future__ import annotations

import re
import shlex
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from yunikorn.cli.main import COMMANDS, group
from yunikorn.clock import ManualClock
from yunikorn.config.load import check_config
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.registry import KINDS, Registry
from yunikorn.resources import Resource

CHECKOUT = Path(__file__).parent.parent
DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
PAGES = [
    CHECKOUT / "README.md",
    CHECKOUT / "CHANGELOG.md",
    *DOCS,
    *sorted(CHECKOUT.glob("examples/*/README.md")),
]
PLUGINS = (CHECKOUT / "docs" / "plugins.md").read_text("utf-8")
README = (CHECKOUT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [body for found, body in _BLOCK.findall(text) if found == language]


def named(path: Path) -> str:
    """A path as a test shows it."""
    return path.relative_to(CHECKOUT).as_posix()


# -- the two commands ---------------------------------------------------------------------------------


def test_readme_opens_with_two_commands_of_one_line() -> None:
    commands = blocks(README, "sh")
    assert len(commands) == 2
    assert all(command.count("\n") == 1 for command in commands)
    assert "\n## " not in README.partition(commands[1])[0]
    assert " yunikorn simulate " in commands[0].replace(".venv/bin/", " ")
    assert " pytest " in commands[1].replace(".venv/bin/", " ")


def test_ci_runs_exactly_the_readmes_test_command() -> None:
    script = (CHECKOUT / ".ci" / "run").read_text("utf-8")
    assert script.splitlines()[-1] == blocks(README, "sh")[1].strip()


def test_the_files_that_readme_names_exist() -> None:
    words = shlex.split(blocks(README, "sh")[0])
    files = [word for word in words if word.endswith(".yaml")]
    assert len(files) == 2
    assert all((CHECKOUT / file).is_file() for file in files)


def test_every_command_is_in_the_readme() -> None:
    for name in COMMANDS:
        assert f"`yunikorn {name}`" in README


# -- links and commands everywhere --------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
            }


def calls(text: str) -> Iterator[list[str]]:
    """Every call of `yunikorn` in the console blocks of a page, as words after the program."""
    for block in [*blocks(text, "console"), *blocks(text, "sh")]:
        for line in block.replace("\\\n", " ").splitlines():
            for call in line.removeprefix("$ ").split("&&"):
                words = shlex.split(call, comments=True)
                if words and Path(words[0]).name == "yunikorn":
                    yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_documented_calls_have_real_options(page: Path) -> None:
    for words in calls(page.read_text("utf-8")):
        if words[0].startswith("-"):
            continue
        with group.make_context("yunikorn", ["--traceback"], resilient_parsing=True) as context:
            command = group.get_command(context, words[0])
            assert command is not None, words
            options = {option for parameter in command.get_params(context) for option in parameter.opts}
        given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert given <= options, f"{words}: no such option {given - options}"


# -- the page on plugins ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_every_kind_is_documented(kind: object) -> None:
    hook, base, identifier = getattr(kind, "hook"), getattr(kind, "base"), getattr(kind, "id")  # noqa: B009
    assert f"| `{identifier}` | `{hook}` | `{base.__name__}` |" in PLUGINS
    assert f"def {hook}() -> list[type[{base.__name__}]]:" in PLUGINS


def test_every_default_plugin_is_documented_with_its_line_of_yaml(registry: Registry) -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| `([\w-]+)` \| `([^`]+)`", PLUGINS.partition("## The default")[2], re.M
    )
    assert [(kind, name) for name, kind, _ in rows] == [
        (offer.kind.id, offer.name) for kind in KINDS for offer in registry.offers(kind)
    ]
    for name, _, line in rows:
        assert name in str(yaml.safe_load(line)), line


def modules(text: str) -> list[types.ModuleType]:
    """The python blocks of a page, each run as a module of its own."""
    found = []
    for number, block in enumerate(blocks(text, "python")):
        module = types.ModuleType(f"documented_{number}")
        exec(compile(block, module.__name__, "exec", dont_inherit=True), module.__dict__)
        found.append(module)
    return found


@pytest.fixture(scope="module")
def documented() -> Registry:
    """The default plugins and every plugin that the pages show."""
    registry = Registry.load(third_party=False)
    for page in (README, PLUGINS):
        for number, module in enumerate(modules(page)):
            if any(name.startswith("yunikorn_") for name in vars(module)):
                name = f"page-{len(page)}-{number}"
                assert registry.register(module, name), registry.broken
    return registry


def test_every_python_example_is_a_working_plugin(documented: Registry) -> None:
    assert documented.broken == []
    shown = [offer.kind.id for offer in documented.offers() if offer.plugin.startswith("page-")]
    assert set(shown) == {kind.id for kind in KINDS}


CONFIGURATIONS = [block for block in blocks(PLUGINS, "yaml") if "partitions:" in block]


def test_there_is_a_configuration_for_every_kind() -> None:
    assert len(CONFIGURATIONS) > len(KINDS)


@pytest.mark.parametrize("text", CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
def test_every_yaml_example_is_a_valid_configuration(text: str, documented: Registry) -> None:
    outcome = check_config(text, documented)
    assert outcome.problems == ()
    assert outcome.warnings == ()


class Heard:
    """A resource manager that only listens."""

    def __init__(self) -> None:
        self.responses: list[UpdateResponse] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Keep it."""
        self.responses.append(response)


@pytest.mark.parametrize("text", CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
def test_every_yaml_example_schedules(
    text: str, documented: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where an example may write its file
    core, heard = Scheduler(documented, ManualClock()), Heard()
    core.register_resource_manager(RegisterResourceManagerRequest("rm", config=text), heard)
    tasks = Resource(vcore=1000)
    core.update(
        UpdateRequest(
            "rm",
            new_schedulable_nodes=[
                NewNodeInfo(name, {"inlet-celsius": heat}, Resource(vcore=2000))
                for name, heat in (("hot", "31"), ("cool", "19"))
            ],
            new_applications=[AddApplicationRequest("app", "root.batch", ugi=UserGroupInformation("ann"))],
            asks=[AllocationAsk("ask", "app", resource_ask=tasks, max_allocations=4)],
        )
    )
    assert core.schedule() == 4
    core.close()
    placed = [allocation for response in heard.responses for allocation in response.new_allocations]
    assert {allocation.queue_name for allocation in placed} == {
        "root.science" if "by-team" in text else "root.batch"
    }
    if "coldest" in text:
        assert [allocation.node_id for allocation in placed] == ["cool", "cool", "hot", "hot"]
    if "new-applications" in text:
        assert (tmp_path / "new-applications.txt").read_text("utf-8") == "app\n"
    assert list(core.faults) == []
