"""Script that draws the state machines for the documentation site, which cannot render Mermaid diagrams.

Run in the checkout, with Graphviz installed: python docs/images/draw_states.py
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from yunikorn.states import Lifecycle
from yunikorn_lab.commands.states import lifecycles

FOLDER = Path(__file__).parent / "states"
LOOK = """
  rankdir=LR; bgcolor=white; pad=0.2; nodesep=0.35; ranksep=0.35;
  node [shape=box, style="rounded,filled", fillcolor="#eef1fb", color="#4a5bb5"];
  node [fontname="sans-serif", fontsize=13];
  edge [color="#555555", fontname="sans-serif", fontsize=11];
"""
COMMENT = re.compile(r"<!--.*?-->\n?|<!DOCTYPE.*?>\n?", re.DOTALL)


def arrows(lifecycle: Lifecycle[Any]) -> dict[tuple[str, str], list[str]]:
    """Return the events of each transition, by source and target state."""
    found: dict[tuple[str, str], list[str]] = {}
    for event, sources, target in lifecycle.table:
        for source in sources:
            found.setdefault((source, target), []).append(event)
    return found


def graph(lifecycle: Lifecycle[Any]) -> str:
    """Return the machine in the language of Graphviz; the initial state is dark."""
    states = "".join(f'  "{state}";\n' for state in lifecycle.states)
    begin = f'  "{lifecycle.initial}" [fillcolor="#4a5bb5", fontcolor=white];\n'
    lines = "".join(
        f'  "{source}" -> "{target}" [label=" {", ".join(events)} "];\n'
        for (source, target), events in arrows(lifecycle).items()
    )
    return f'digraph "{lifecycle.name}" {{{LOOK}{states}{begin}{lines}}}\n'


def draw(lifecycle: Lifecycle[Any]) -> str:
    """Return the machine as SVG, without the comments, which differ between versions of Graphviz."""
    done = subprocess.run(
        ["dot", "-Tsvg"], input=graph(lifecycle), capture_output=True, check=True, encoding="utf-8"
    )
    return COMMENT.sub("", done.stdout)


def main() -> None:
    """Draw all state machines."""
    FOLDER.mkdir(exist_ok=True)
    for lifecycle in lifecycles():
        path = FOLDER / f"{lifecycle.name.lower().replace(' ', '-')}.svg"
        path.write_text(draw(lifecycle), "utf-8")


if __name__ == "__main__":
    main()
