"""Draws the state machines for the site, which shows pictures where GitHub draws the diagrams itself.

Run it in the checkout, with Graphviz installed: python docs/images/draw_states.py
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from yunikorn.states import LIFECYCLES, Lifecycle

FOLDER = Path(__file__).parent / "states"
LOOK = """
  rankdir=LR; bgcolor=white; pad=0.2; nodesep=0.35; ranksep=0.35;
  node [shape=box, style="rounded,filled", fillcolor="#eef1fb", color="#4a5bb5"];
  node [fontname="sans-serif", fontsize=13];
  edge [color="#555555", fontname="sans-serif", fontsize=11];
"""
COMMENT = re.compile(r"<!--.*?-->\n?|<!DOCTYPE.*?>\n?", re.DOTALL)


def arrows(lifecycle: Lifecycle) -> dict[tuple[str, str], list[str]]:
    """The events that lead from one state to another, by both."""
    found: dict[tuple[str, str], list[str]] = {}
    for event, sources, target in lifecycle.table:
        for source in sources:
            found.setdefault((source, target), []).append(event)
    return found


def graph(lifecycle: Lifecycle) -> str:
    """The machine in Graphviz's language; the state in which everything begins is dark."""
    states = "".join(f'  "{state}";\n' for state in lifecycle.states)
    begin = f'  "{lifecycle.initial}" [fillcolor="#4a5bb5", fontcolor=white];\n'
    lines = "".join(
        f'  "{source}" -> "{target}" [label=" {", ".join(events)} "];\n'
        for (source, target), events in arrows(lifecycle).items()
    )
    return f'digraph "{lifecycle.name}" {{{LOOK}{states}{begin}{lines}}}\n'


def draw(lifecycle: Lifecycle) -> str:
    """The machine as SVG, without what differs between versions of Graphviz for no reason."""
    done = subprocess.run(
        ["dot", "-Tsvg"], input=graph(lifecycle), capture_output=True, check=True, encoding="utf-8"
    )
    return COMMENT.sub("", done.stdout)


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    for lifecycle in LIFECYCLES:
        path = FOLDER / f"{lifecycle.name.lower().replace(' ', '-')}.svg"
        path.write_text(draw(lifecycle), "utf-8")


if __name__ == "__main__":
    main()
