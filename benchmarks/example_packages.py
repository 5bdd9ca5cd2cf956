"""Packages of examples/ as plugins of a benchmark, without installation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from benchmarks.failure import BenchmarkFailure

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def example_module(package: str) -> ModuleType:
    """Return the module of an example package, such as `yunikorn-rack-spread`.

    Raises `BenchmarkFailure` if there is no such package.
    """
    name = package.replace("-", "_")
    if name in sys.modules:
        return sys.modules[name]
    file = EXAMPLES / package / name / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise BenchmarkFailure(f"{file} does not exist: this case needs a checkout")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
