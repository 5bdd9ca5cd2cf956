"""docs/configuration.md tells the truth: its examples are valid, and it names every key there is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.config import limits, load, partitions, properties, queues, rules
from yunikorn.config.load import check_config
from yunikorn.registry import Registry

TEXT = (Path(__file__).parent.parent.parent / "docs" / "configuration.md").read_text("utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
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
    assert len(EXAMPLES) == 5


KEYS: dict[str, Iterable[str]] = {
    "top level": load.KEYS,
    "partitions": (key for key in partitions.KEYS if key != "preemption"),
    "queues": (key for key in queues.KEYS if key not in ("resources", "adminacl", "submitacl")),
    "limits": limits.KEYS,
    "rules": (key for key in rules.KEYS if key != "filter"),
    "properties": properties.KNOWN,
}


@pytest.mark.parametrize("part", KEYS)
def test_every_key_has_a_row(part: str) -> None:
    rows = "\n".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    assert [key for key in KEYS[part] if f"`{key}`" not in rows] == []


@pytest.mark.parametrize(
    "key", [*load.OWN_KEYS, *partitions.OWN_KEYS, "queue.sort.policy", "node.sort.policy", "queue.state"]
)
def test_what_is_ours_is_marked(key: str) -> None:
    assert f"| `{key}` **ours** |" in TEXT


def test_the_call_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queues.yaml").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "queues.yaml"]) == 1
    assert f"$ yunikorn validate queues.yaml\n{capsys.readouterr().out}```" in TEXT
