"""`yunikorn schema`, and the page that it writes."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from yunikorn.framework.registry import Registry
from yunikorn_lab.commands.schema import command
from yunikorn_lab.schema.json_schema import DRAFT, markdown

PAGE = Path(__file__).parents[3] / "docs" / "reference.md"


def test_command_prints_a_json_schema() -> None:
    result = CliRunner().invoke(command, ["--builtin"])
    assert result.exit_code == 0
    assert json.loads(result.output)["$schema"] == DRAFT


def test_page_is_generated_from_the_classes(registry: Registry) -> None:
    result = CliRunner().invoke(command, ["--builtin", "--format", "markdown"])
    assert result.output == markdown(registry)
    again = "docs/reference.md is old: yunikorn schema --format markdown --builtin > docs/reference.md"
    assert PAGE.read_text("utf-8") == result.output, again
