"""docs/configuration.md tells the truth: its examples are valid, and its calls print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.config.load import check_config
from yunikorn.registry import Registry

DOCS = Path(__file__).parent.parent.parent / "docs"
TEXT = (DOCS / "configuration.md").read_text("utf-8")
EXAMPLES = [
    example
    for page in ("configuration.md", "reference.md")
    for example in re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
]
WRONG = """\
partitions:
  - name: default
    nodesortpolicy: fair
    queues:
      - name: root
        queues:
          - name: a
            resources:
              max:
                memory: 10GB
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_valid_and_without_doubt(example: str, registry: Registry) -> None:
    outcome = check_config(example, registry)
    assert (outcome.problems, outcome.warnings) == ((), ())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 8


def test_the_call_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queues.yaml").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "queues.yaml"]) == 1
    assert f"$ yunikorn validate queues.yaml\n{capsys.readouterr().out}```" in TEXT
