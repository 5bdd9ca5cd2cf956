"""Architecture tests: permitted imports between packages, forbidden calls in the core, and sizes of files."""

from __future__ import annotations

import ast
import configparser
import io
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.layers import KUBERNETES, MAY_IMPORT

CHECKOUT = Path(__file__).parent.parent
CORE = CHECKOUT / "yunikorn"
PLUGINS = [
    "commands",
    "foresight",
    "history",
    "kubernetes",
    "lab",
    "pytest",
    "rest",
    "service",
    "snapshots",
    "testing",
]
ROOTS = {
    "yunikorn": CORE,
    "yunikorn_policies": CHECKOUT / "policies" / "yunikorn_policies",
    "yunikorn_plugins": CHECKOUT / "plugins" / "yunikorn_plugins",
    **{f"yunikorn_{name}": CHECKOUT / "plugins" / f"yunikorn_{name}" for name in PLUGINS},
}


DEFAULTS = ("yunikorn_plugins", "yunikorn_policies")
"""Packages of default plugins; each is one part."""
DOORS = {f"yunikorn.interface.{name}" for name in ("callback", "commands", "constants", "messages")}
"""Modules of the scheduler interface that a shim may import."""
FORBIDDEN_CALLS = {
    "time": {"time", "time_ns", "sleep", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "random": {"*"},
    "secrets": {"*"},
    "uuid": {"uuid1", "uuid4"},
}
STOPWATCHES = {"time.perf_counter", "time.perf_counter_ns", "time.monotonic"}
COMMAND_LINE = ("commands", "yunikorn_commands")
"""Folders of the command line."""
CHANCE = ROOTS["yunikorn_lab"] / "simulation" / "rng.py"
"""The only module that may create random numbers on which decisions depend."""
JITTER = ROOTS["yunikorn_kubernetes"] / "api_server" / "back_off.py"
"""The only module that may create random numbers for pauses between attempts."""
TOKENS = ROOTS["yunikorn_rest"] / "commands" / "token.py"
"""The only module that may create secrets."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "tools"}
LARGEST_FILE = 600
LONGEST_FUNCTION = 80
LARGEST_CORE = 30_000
"""Lines of code of the core, without docstrings, comments and blank lines."""


def files(root: Path) -> list[Path]:
    """Return all Python files below `root`."""
    return sorted(root.rglob("*.py"))


OURS = [path for root in ROOTS.values() for path in files(root)]
AROUND = [path for folder in ("tests", "benchmarks", "examples") for path in files(CHECKOUT / folder)]
"""Return the Python files beside the package, which have the same size limits."""


@cache
def syntax_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def forgotten_trees() -> Iterator[None]:
    """Release the syntax trees after the last test: a collector would visit their million objects."""
    yield
    syntax_of.cache_clear()
    import_statements.cache_clear()


def folders(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return files by folder. A test of a folder names all its problems, and there are few folders."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        found.setdefault(named(path.parent), []).append(path)
    return found


def named(path: Path) -> str:
    """Return a path as a test shows it."""
    return path.relative_to(CHECKOUT).as_posix()


by_folder = pytest.mark.parametrize(
    "paths", [pytest.param(paths, id=name) for name, paths in folders(OURS).items()]
)
all_by_folder = pytest.mark.parametrize(
    "paths", [pytest.param(paths, id=name) for name, paths in folders([*OURS, *AROUND]).items()]
)


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the project."""
    for package, root in ROOTS.items():
        if path.is_relative_to(root):
            parts = [package, *path.relative_to(root).with_suffix("").parts]
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    raise AssertionError(path)


def part_of(module: str) -> str:
    """Return the part that a module belongs to: the innermost that `MAY_IMPORT` names.

    A folder or a file directly below the package is always a part, named there or not.
    """
    names = module.split(".")
    shortest = 2 if names[0] in ("yunikorn", "yunikorn_kubernetes") else 1
    inner = (".".join(names[:length]) for length in range(len(names), shortest - 1, -1))
    return next((name for name in inner if name in MAY_IMPORT), ".".join(names[:2]))


@cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Return the imports of a file, each with True if it is for types only."""
    found: list[tuple[ast.Import | ast.ImportFrom, bool]] = []
    left: list[tuple[ast.AST, bool]] = [(syntax_of(path), False)]
    while left:
        node, for_types = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, for_types))
        elif not isinstance(node, ast.expr):
            for_types |= isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            left += [(inner, for_types) for inner in ast.iter_child_nodes(node)]
    return sorted(found, key=lambda one: one[0].lineno)


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Return the modules that a file imports, with lines; `from yunikorn import api` counts as the module."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node, _ in import_statements(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield (inner if module in ROOTS and inner in MAY_IMPORT else module), node.lineno


@by_folder
def test_imports_follow_the_layers(paths: list[Path]) -> None:
    breaches = []
    for path in paths:
        part = part_of(module_of(path))
        assert part in MAY_IMPORT, f"{part} is a new part of the house: say in MAY_IMPORT what it may import"
        allowed = MAY_IMPORT[part] | {part, part.partition(".")[0], "yunikorn"}
        breaches += [
            f"{named(path)}:{line} imports {module}"
            for module, line in imports_of(path)
            if module.partition(".")[0] in ROOTS and part_of(module) not in allowed
        ]
    assert breaches == []


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of names that import each other, directly or through others."""

    def reachable(name: str) -> set[str]:
        seen: set[str] = set()
        left = [name]
        while left:
            for imported in imports.get(left.pop(), set()) - seen:
                seen.add(imported)
                left.append(imported)
        return seen

    # A name in a circle imports another of these, and is imported by one: most names are left out, in rounds.
    left = imports
    while True:
        imported = {other for others in left.values() for other in others}
        inner = {name: others & left.keys() for name, others in left.items() if name in imported}
        inner = {name: others for name, others in inner.items() if others}
        if len(inner) == len(left):
            break
        left = inner
    reached = {name: reachable(name) for name in left}
    found = {
        frozenset(other for other in reached[name] if name in reached.get(other, set()))
        for name in left
        if name in reached[name]
    }
    return sorted((set(circle) for circle in found), key=sorted)


MODULES = {module_of(path): path for path in OURS if path.parent.name != "generated"}


@cache
def modules_imported(path: Path, *, running: bool = False) -> set[str]:
    """Return the modules of the project that a file imports; with `running`, not those for types only."""
    found = set()
    for node, for_types in import_statements(path):
        if isinstance(node, ast.ImportFrom) and node.module and not (running and for_types):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & MODULES.keys()) - {module_of(path)}


REFER_TO_EACH_OTHER = {
    f"yunikorn.model.{name}"
    for name in (
        "allocation",
        "app_requests",
        "application",
        "ask",
        "ask_class",
        "domain",
        "foreign_allocation",
        "gang",
        "node",
        "queue",
    )
}
"""The only modules that may form an import circle, which imports for type checking close.

Their objects refer to each other, parents to children and children to parents. Queues have applications;
applications have asks (in order in `app_requests`), allocations and gangs; nodes have allocations, foreign
ones too, domains, and asks that reserve them; ask classes have the ask that reserves a node, and say which
nodes have room. Decisions follow these references, where a protocol in place of a class would make compiled
code slow.
"""


def test_modules_have_no_import_circles() -> None:
    found = circles({module: modules_imported(path) for module, path in MODULES.items()})
    assert found == [REFER_TO_EACH_OTHER]
    assert circles({name: modules_imported(path, running=True) for name, path in MODULES.items()}) == []


def test_folders_have_no_import_circles() -> None:
    imports: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        folder = part_of(module)
        inner = {part_of(imported) for imported in modules_imported(path)}
        imports[folder] = imports.get(folder, set()) | (inner - {folder, "yunikorn", "yunikorn_kubernetes"})
    assert circles(imports) == []


@by_folder
def test_core_does_not_import_default_plugins(paths: list[Path]) -> None:
    breaches = [
        f"{named(path)}:{line} imports {module}"
        for path in paths
        if path.is_relative_to(CORE)
        for module, line in imports_of(path)
        if module.partition(".")[0] in {*ROOTS} - {"yunikorn"}
    ]
    assert breaches == []


@by_folder
def test_default_plugins_import_only_the_api(paths: list[Path]) -> None:
    breaches = [
        f"{named(path)}:{line} imports {module}"
        for path in paths
        if module_of(path).startswith((*DEFAULTS, KUBERNETES + "predicates", KUBERNETES + "devices"))
        for module, line in imports_of(path)
        if module.partition(".")[0] == "yunikorn" and module != "yunikorn.api"
    ]
    assert breaches == []


@by_folder
def test_the_shim_reaches_the_core_by_the_scheduler_interface(paths: list[Path]) -> None:
    breaches = [
        f"{named(path)}:{line} imports {module}"
        for path in paths
        if path.is_relative_to(ROOTS["yunikorn_kubernetes"])
        for module, line in imports_of(path)
        if module.startswith("yunikorn.interface") and module not in DOORS
    ]
    assert breaches == []


def forbidden(path: Path) -> list[str]:
    """Return the calls in a file that read a clock, sleep, or create random numbers."""
    found = []
    for node in ast.walk(syntax_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = FORBIDDEN_CALLS.get(node.value.id, set())
            if node.attr in names or "*" in names:
                found.append(f"{named(path)}:{node.lineno} {node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN_CALLS:
            names = FORBIDDEN_CALLS[node.module]
            found += [
                f"{named(path)}:{node.lineno} from {node.module} import {alias.name}"
                for alias in node.names
                if alias.name in names or "*" in names
            ]
    return found


@by_folder
def test_clocks_and_random_numbers_are_injected(paths: list[Path]) -> None:
    breaches = []
    for path in paths:
        if named(path) == "yunikorn/clock.py":
            continue
        found = forbidden(path)
        if path.parent.name in COMMAND_LINE:  # a command may report how long it took
            found = [call for call in found if call.rpartition(" ")[2] not in STOPWATCHES]
        if path == TOKENS:
            found = [call for call in found if "secrets" not in call]
        if path in (CHANCE, JITTER):  # create random streams from seeds that a call passes in
            found = [call for call in found if not call.endswith("from random import Random")]
        breaches += found
    assert breaches == []


@pytest.mark.parametrize("path", [CHANCE, JITTER], ids=named)
def test_random_numbers_always_have_a_seed(path: Path) -> None:
    calls = [node for node in ast.walk(syntax_of(path)) if isinstance(node, ast.Call)]
    makers = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Random"]
    assert makers
    assert all(call.args for call in makers)


CREDENTIALS = (
    "yunikorn_kubernetes.api_server.credential_plugins",
    "yunikorn_kubernetes.api_server.api_connection",
    "yunikorn_kubernetes.admission.config_map_validation",
    "yunikorn_kubernetes.admission.controller",
    "yunikorn_kubernetes.admission.webhook_server",
)
"""The modules that import the client libraries, which take half a second."""


def test_client_libraries_are_imported_only_where_a_cluster_is_used() -> None:
    breaches = [
        f"{named(path)}:{line} imports {module}"
        for path in OURS
        if module_of(path) not in CREDENTIALS
        for module, line in imports_of(path)
        if module.partition(".")[0] in ("kubernetes", "aiohttp", "yarl")
    ]
    assert breaches == []


@all_by_folder
def test_files_and_functions_stay_small(paths: list[Path]) -> None:
    large = []
    for path in paths:
        lines = path.read_bytes().count(b"\n")
        if lines > LARGEST_FILE:
            large.append(f"{named(path)} has {lines} lines")
        # Files beside the package are read by this test alone.
        tree = syntax_of(path) if path in MODULES.values() else ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    large.append(f"{named(path)}:{node.lineno} {node.name} has {length} lines")
    assert large == []


def lines_of_code(path: Path) -> int:
    """Return the number of lines with code: docstrings of modules, classes and functions are not counted."""
    described = {
        line
        for node in ast.walk(syntax_of(path))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(found - described)


NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
"""Tokens without which a line has code."""


@pytest.mark.slow
def test_the_core_stays_small() -> None:
    """Code that decides nothing belongs to a package of `plugins/`; see docs/architecture.md."""
    assert sum(map(lines_of_code, files(CORE))) <= LARGEST_CORE


@by_folder
def test_file_names_are_descriptive(paths: list[Path]) -> None:
    assert [
        named(path) for path in paths if {part.lower() for part in path.with_suffix("").parts[-2:]} & VAGUE
    ] == []


def undocumented(node: ast.AST, prefix: str = "") -> Iterator[str]:
    """Return the public classes and functions below `node` that have no docstring."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{prefix}{inner.name}"
            if not inner.name.startswith("_"):
                if not ast.get_docstring(inner) and not overloaded(inner):
                    yield name
                if isinstance(inner, ast.ClassDef):
                    yield from undocumented(inner, f"{name}.")


def overloaded(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True if a function only declares an overload, or is the setter of a documented property."""
    names = {ast.unparse(decorator) for decorator in node.decorator_list}
    return "overload" in names or "typing.overload" in names or f"{node.name}.setter" in names


@by_folder
def test_everything_public_is_documented(paths: list[Path]) -> None:
    missing = []
    for path in paths:
        tree = syntax_of(path)
        if tree.body and not ast.get_docstring(tree):
            missing.append(f"{named(path)} has no docstring")
        missing += [f"{named(path)}: {name}" for name in undocumented(tree)]
    assert missing == []


# -- packaging ----------------------------------------------------------------------------------------


def test_every_package_is_listed_and_every_listed_package_exists() -> None:
    setup = configparser.ConfigParser()
    setup.read(CHECKOUT / "setup.cfg", encoding="utf-8")
    listed = setup["options"]["packages"].split()
    on_disk = sorted(
        ".".join([package, *folder.relative_to(root).parts])
        for package, root in ROOTS.items()
        for folder in [root, *sorted(root.rglob("*"))]
        if folder.is_dir() and any(folder.glob("*.py"))
    )
    assert sorted(listed) == on_disk


@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_every_package_is_typed(root: Path) -> None:
    assert (root / "py.typed").is_file()
    folders = {path.parent for path in files(root)}
    assert all((folder / "__init__.py").is_file() for folder in folders)
