"""`yunikorn validate` on the command line."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.cli.main import main

VALID = "partitions: [{name: default, queues: []}]\n"
INVALID = "partitions:\n  - name: default\n    queues:\n      - name: a.b\n      - nam: c\n"
WARNED = "partitions: [{queues: [{name: a, properties: {preemption.delay: soon}}]}]\n"
OURS = "priorityclasses: {high: 1}\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with some files."""
    for name, text in (("valid", VALID), ("invalid", INVALID), ("warned", WARNED), ("ours", OURS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\x00\xfe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["valid.yaml"], 0),
        (["warned.yaml", "ours.yaml"], 0),
        (["invalid.yaml"], 1),
        (["valid.yaml", "invalid.yaml"], 1),
        (["binary.yaml"], 1),
        (["missing.yaml"], 2),
        (["invalid.yaml", "missing.yaml", "valid.yaml"], 2),
        (["."], 2),
        ([], 2),
        (["--jsn", "valid.yaml"], 2),
        (["--strict-yunikorn", "valid.yaml"], 0),
        (["--strict-yunikorn", "ours.yaml"], 1),
    ],
)
def test_exit_status_reflects_the_result(
    arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", *arguments]) == status
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_problems_are_listed_file_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "valid.yaml", "invalid.yaml", "warned.yaml", "ours.yaml"])
    assert capsys.readouterr().out == (
        "valid.yaml: valid\n"
        "invalid.yaml: invalid, 3 problems\n"
        "  partitions[0].queues[0].name (line 4, column 15): a queue name has 1 to 64 letters, digits and"
        " _ : # / @ -, got 'a.b': dots separate levels, nest the queues instead\n"
        "  partitions[0].queues[1].nam (line 5, column 9): unknown key, did you mean 'name'?; known: name,"
        " parent, resources, maxapplications, properties, adminacl, submitacl, childtemplate, queues,"
        " limits\n"
        "  partitions[0].queues[1].name (line 5, column 9): required, but missing\n"
        "warned.yaml: valid, 1 warning\n"
        "  warning: partitions[0].queues[0].properties.preemption.delay (line 1, column 65): expected a"
        " duration such as 30s, 500ms or 1h30m, got 'soon'; the default is used\n"
        "ours.yaml: valid\n"
        "  note: priorityclasses (line 1, column 1): YuniKorn 1.9 does not have this key and refuses the"
        " file\n"
    )


@pytest.mark.usefixtures("files")
def test_json_has_one_object_per_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "--json", "valid.yaml", "invalid.yaml", "missing.yaml", "warned.yaml"])
    printed = capsys.readouterr()
    valid, invalid, warned = (json.loads(line) for line in printed.out.splitlines())
    assert valid == {"file": "valid.yaml", "valid": True, "problems": [], "warnings": []}
    assert (invalid["file"], invalid["valid"], invalid["warnings"]) == ("invalid.yaml", False, [])
    assert invalid["problems"][2] == {
        "path": "partitions[0].queues[1].name",
        "line": 5,
        "column": 9,
        "message": "required, but missing",
    }
    assert warned["valid"] is True
    assert [warning["line"] for warning in warned["warnings"]] == [1]
    assert printed.err == "Error: missing.yaml: cannot be read: No such file or directory\n"


@pytest.mark.usefixtures("files")
def test_notes_are_warnings_in_json_and_problems_when_strict(capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "--json", "ours.yaml"])
    main(["validate", "--json", "--strict-yunikorn", "ours.yaml"])
    lax, strict = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (lax["valid"], lax["problems"]) == (True, [])
    assert (strict["valid"], strict["warnings"]) == (False, [])
    assert lax["warnings"] == strict["problems"]


@pytest.mark.parametrize(
    ("text", "status", "reported"), [(VALID, 0, "valid"), (INVALID, 1, "invalid, 3 problems")]
)
def test_dash_reads_standard_input(
    text: str, status: int, reported: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["validate", "-"]) == status
    assert capsys.readouterr().out.startswith(f"standard input: {reported}")


def test_command_runs_in_its_own_process(
    files: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_python("-m", "yunikorn", "validate", "invalid.yaml", cwd=files)
    assert done.returncode == 1
    assert done.stdout.startswith("invalid.yaml: invalid, 3 problems\n")
    assert done.stderr == ""


# -- continuous integration -------------------------------------------------------------------------------


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("file", "status"), [("valid.yaml", 0), ("warned.yaml", 1), ("ours.yaml", 0), ("invalid.yaml", 1)]
)
def test_warnings_may_fail_the_call(file: str, status: int) -> None:
    assert main(["validate", "--fail-on-warning", file]) == status


@pytest.mark.usefixtures("files")
def test_github_shows_findings_beside_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--format", "github", "warned.yaml", "invalid.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("::warning file=warned.yaml,title=yunikorn validate,line=1,col=")
    assert lines[1] == "warned.yaml: valid"
    assert any(
        line.startswith("::error file=invalid.yaml,title=yunikorn validate,line=5,col=9::") for line in lines
    )


def test_github_commands_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a,b:c%.yaml"
    file.write_text("partitions: '50%'\n")
    main(["validate", "--format", "github", str(file)])
    command, _ = capsys.readouterr().out.splitlines()
    assert "/a%2Cb%3Ac%25.yaml,title=" in command
    assert "'50%25'" in command


@pytest.mark.usefixtures("files")
def test_sarif_has_all_findings_of_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--format", "sarif", "invalid.yaml", "warned.yaml", "ours.yaml"]) == 1
    log = json.loads(capsys.readouterr().out)
    (only,) = log["runs"]
    assert log["version"] == "2.1.0"
    found = [
        (one["level"], one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for one in only["results"]
    ]
    assert set(found) == {("error", "invalid.yaml"), ("warning", "warned.yaml"), ("note", "ours.yaml")}
    rules = only["tool"]["driver"]["rules"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in only["results"])
    region = only["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert min(region["startLine"], region["startColumn"]) >= 1


@pytest.mark.usefixtures("files")
def test_formats_contradict_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json", "--format", "sarif", "valid.yaml"]) == 2
    assert main(["validate", "--json", "--format", "json", "valid.yaml"]) == 0


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("", "line 1, column 1: there is no configuration here"),
        ("# only a comment\n", "there is no configuration here"),
        (VALID + "---\n" + VALID, "line 3, column 1: this document is ignored, only the first one is read"),
        (VALID + "---\n: : broken", "line 3, column 1: this document is ignored"),
        ("---\n" + VALID, ""),
        (VALID + "---\n", ""),
        (VALID + "...\n# the end\n", ""),
    ],
)
def test_empty_texts_and_further_documents_are_warnings(
    text: str, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(text)
    assert main(["validate", str(file)]) == 0
    head, *warnings = capsys.readouterr().out.splitlines()
    assert head == f"{file}: valid" + (", 1 warning" if warning else "")
    assert warning in "".join(warnings)
