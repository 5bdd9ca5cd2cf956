"""Configurations in ConfigMaps: both names, lists, documents, compression, and places in the file around."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from textwrap import indent

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.cli.main import main
from yunikorn.errors import ConfigError, Problem
from yunikorn_commands.config_source import read_source

QUEUES = "partitions:\n  - name: default\n    queues:\n      - name: root\n"


def config_map(queues: str = QUEUES, name: str = "yunikorn-configs", key: str = "queues.yaml") -> str:
    """Return a ConfigMap as `kubectl` prints it, with a block."""
    block = indent(queues, "    ")
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
    return f"{head}data:\n  log.level: INFO\n  {key}: |\n{block}"


def as_list(*objects: str) -> str:
    """Return a list as `kubectl` prints it."""
    items = "".join("- " + indent(one, "  ")[2:] for one in objects)
    return f"apiVersion: v1\nitems:\n{items}kind: List\nmetadata: {{}}\n"


def refusals(text: str) -> list[str]:
    """Return the problems of a file whose ConfigMaps cannot be used."""
    with pytest.raises(ConfigError) as caught:
        read_source(text)
    return [str(problem) for problem in caught.value.problems]


def test_a_queues_yaml_is_its_own_source() -> None:
    source = read_source(QUEUES)
    assert (source.text, source.is_embedded, source.warnings) == (QUEUES, False, ())
    problem = Problem("partitions", "x", 1, 1)
    assert source.located([problem]) == (problem,)
    assert read_source(QUEUES + "# apiVersion").text.startswith("partitions")
    assert not read_source("apiVersion: 1\n" + QUEUES).is_embedded


@pytest.mark.parametrize(
    "text",
    [
        config_map(),
        as_list(config_map()),
        "---\n" + config_map(),
        config_map() + "---\n" + config_map("old: 1\n", "yunikorn-defaults"),
        as_list(config_map("old: 1\n", "yunikorn-defaults"), config_map()),
        json.dumps(yaml.safe_load(config_map())),
        json.dumps(yaml.safe_load(as_list(config_map()))),
    ],
)
def test_the_configuration_is_found(text: str) -> None:
    assert read_source(text).text == QUEUES


def test_the_administrator_takes_precedence_whatever_the_order() -> None:
    ours, defaults = config_map(), config_map("old: 1\n", "yunikorn-defaults")
    assert read_source(as_list(ours, defaults)).text == read_source(as_list(defaults, ours)).text == QUEUES
    settings = config_map("x\n", key="other").replace("INFO", "WARN")
    assert read_source(as_list(settings, defaults)).text == "old: 1\n"


def test_compressed_configuration_takes_precedence() -> None:
    packed = base64.b64encode(gzip.compress(QUEUES.encode())).decode()
    text = config_map("old: 1\n") + f"binaryData:\n  queues.yaml.gz: {packed}\n"
    source = read_source(text)
    assert source.text == QUEUES
    assert [one.message for one in source.warnings] == [
        "yunikorn-configs: queues.yaml is ignored, because queues.yaml.gz is there, too"
    ]
    (located,) = source.located([Problem("partitions", "odd", 2, 3)])
    assert text.splitlines()[located.line - 1][located.column - 1 :] == packed
    assert located.message == "odd (line 2, column 3 of queues.yaml)"


def test_the_policy_group_chooses() -> None:
    night = config_map(key="night.yaml").replace("log.level: INFO", "service.policyGroup: night")
    assert read_source(night).text == QUEUES
    both = as_list(night, config_map("old: 1\n", "yunikorn-defaults"))
    (unused,) = read_source(both).warnings
    assert unused.message == "yunikorn-defaults: queues.yaml is not used: the policy group reads night.yaml"


@given(
    lines=st.lists(st.sampled_from(["", "a: 1", "  b: 2", "# c", "- d", "k: |"]), min_size=1, max_size=8),
    depth=st.integers(1, 8),
    nested=st.booleans(),
)
def test_places_in_a_block_are_places_in_the_file(lines: list[str], depth: int, nested: bool) -> None:
    inner = ["first: 1", *lines, "last: 1"]
    block = indent("\n".join(inner), " " * (depth + 2)) + "\n"
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yunikorn-configs}\ndata:\n"
    text = f"{head}  queues.yaml: |\n{block}"
    text = as_list(text) if nested else text
    source, outer = read_source(text), text.split("\n")
    for number, line in enumerate(inner, 1):
        if line.strip():
            column = len(line) - len(line.lstrip()) + 1
            (located,) = source.located([Problem("p", "m", number, column)])
            assert outer[located.line - 1][located.column - 1 :] == line.lstrip()
            assert located.message == "m"


def test_a_quoted_text_names_both_places() -> None:
    text = json.dumps(yaml.safe_load(config_map()))
    (located,) = read_source(text).located([Problem("partitions", "odd", 2, 3)])
    assert located.line == 1
    assert text[located.column - 1 :].startswith('"partitions:')
    assert located.message == "odd (line 2, column 3 of queues.yaml)"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (
            config_map(name="other"),
            "no ConfigMap is called yunikorn-defaults or yunikorn-configs; found: C",
        ),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", "found: Deployment x; expected a q"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "found: none; expected a queues.yaml"),
        (as_list(config_map(), config_map()), "ConfigMap yunikorn-configs is here twice, first in line 3"),
        (config_map(key="queue.yaml"), "has no key 'queues.yaml', the queue configuration, did you mean 'q"),
        (config_map() + "binaryData:\n  queues.yaml.gz: '%'\n", "queues.yaml.gz is not base64"),
        (
            config_map() + "binaryData:\n  queues.yaml.gz: eA==\n",
            "queues.yaml.gz is not one complete gzip",
        ),
        (config_map().replace(": |", ":"), "queues.yaml is not a text: put a | behind 'queues.yaml:'"),
        (config_map().replace("\ndata:", "\ndata: 7\nx:"), "data of a ConfigMap is a mapping"),
    ],
)
def test_unusable_config_maps_are_refused(text: str, refused: str) -> None:
    found = refusals(text)
    assert any(refused in one and one.startswith("line ") for one in found), found


def test_other_objects_are_named() -> None:
    text = as_list(config_map(), "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n")
    (warning,) = read_source(text).warnings
    assert str(warning).endswith("Secret s is ignored: only yunikorn-defaults and yunikorn-configs are read")


def test_validate_reports_places_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cm.yaml"
    file.write_text(as_list(config_map(QUEUES + "        quues: []\n")))
    assert main(["validate", str(file)]) == 1
    found = capsys.readouterr().out
    number = file.read_text().split("quues")[0].count("\n") + 1
    assert f"partitions[0].queues[0].quues (line {number}, column 15): unknown key" in found
