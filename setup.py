"""Builds the modules that decide as C extensions, when asked to: `YUNIKORN_COMPILE=1 pip install .`

Without that this is a pure Python package, just as setup.cfg describes it. The extensions are made by
mypyc from the same sources, which stay beside them in the wheel (docs/performance.md).
"""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path
from typing import Any

SWITCH = "YUNIKORN_COMPILE"
COMPILER = ["mypy >= 1.18", "types-PyYAML"]

HOT = {
    "yunikorn/index": ("sorted_members",),
    "yunikorn/model": (
        "allocation",
        "usage_tracker",
        "application",
        "ask",
        "gang",
        "pending_class",
        "node",
        "queue",
        "app_requests",
        "ask_class",
    ),
    "yunikorn/accounting": (
        "pending_accounting",
        "event_recorder",
        "node_reservations",
        "allocation_accounting",
        "ask_batch",
        "gang_formation",
        "user_group_usage",
    ),
    "yunikorn/scheduling": (
        "cycle",
        "member_order",
        "node_order",
        "node_orders",
        "unschedulable_queue",
    ),
    "yunikorn/interface": ("delivery",),
    "policies/yunikorn_policies": ("shares",),
}
"""What a decision runs through.

Not what authors subclass, what attrs makes, or what believes nothing it is handed
(`interface.update_handler`): in
compiled code a value of another type than is written is an exception, before anybody can look at it.
"""


def modules() -> list[str]:
    """The files that are compiled, from here."""
    return [f"{folder}/{name}.py" for folder, names in HOT.items() for name in names]


def asked() -> bool:
    """Whether extensions are wanted."""
    value = os.environ.get(SWITCH, "").lower()
    if value not in ("", "0", "1", "false", "true", "no", "yes"):
        raise SystemExit(f"{SWITCH}={value} says neither yes nor no: set it to 1, or to 0")
    return value in ("1", "true", "yes")


def requirements() -> list[str]:
    """What compiling needs: the compiler, and, for their types, the libraries that the sources use."""
    metadata = configparser.ConfigParser()
    metadata.read(Path(__file__).parent / "setup.cfg", encoding="utf-8")
    return [*COMPILER, *metadata["options"]["install_requires"].strip().splitlines()]


def extensions() -> list[Any]:
    """The extensions, translated to C already."""
    try:
        from mypyc.build import mypycify
    except ImportError:
        if "egg_info" in sys.argv:
            return []  # A front end wants to know what to install first: see `requirements`.
        fix = f"pip install '{COMPILER[0]}', or unset {SWITCH}"
        raise SystemExit(f"{SWITCH}=1 needs mypy where the package is built: {fix}") from None
    # What mypy reports in `mypy --strict` is not asked here: another version of it may see other things.
    lenient = ["--no-warn-unused-ignores", "--no-warn-return-any", "--ignore-missing-imports"]
    return list(mypycify([*lenient, *modules()], opt_level="3", debug_level="0", group_name="yunikorn"))


if __name__ == "__main__":
    # Here, for tests look at this file without it: setuptools changes what others import.
    from setuptools import setup

    if asked():
        setup(ext_modules=extensions(), setup_requires=requirements())
    else:
        setup()
