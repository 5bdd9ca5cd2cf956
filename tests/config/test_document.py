"""YAML as located text: accepted and refused documents, and locations of errors."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.config import document
from yunikorn.config.document import MAX_DEPTH, Mapping, Scalar, YamlNode, compose, decode
from yunikorn.config.yaml_reading import plain_data
from yunikorn.errors import ConfigError, Problem


def root(text: str) -> YamlNode:
    node, problems = compose(text)
    assert problems == []
    assert node is not None
    return node


def refusal(text: str | bytes) -> Problem:
    with pytest.raises(ConfigError) as refused:
        compose(decode(text) if isinstance(text, bytes) else text)
    (problem,) = refused.value.problems
    return problem


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return either parser: the fast one is not available everywhere."""
    if not hasattr(yaml, request.param):
        pytest.skip(f"this PyYAML has no {request.param}")
    monkeypatch.setattr(document, "_Loader", getattr(yaml, request.param))


@pytest.mark.usefixtures("loader")
def test_scalars_stay_text() -> None:
    text = "{a: 1, b: no, c: 1:30, d: 0x1F, e: '', f: 2020-01-01, g: .inf, h: \"x\\ty\"}"
    assert plain_data(root(text)) == {
        "a": "1",
        "b": "no",
        "c": "1:30",
        "d": "0x1F",
        "e": "",
        "f": "2020-01-01",
        "g": ".inf",
        "h": "x\ty",
    }


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", ["a:", "a: ~", "a: null", "a: Null", "a: !!null ''"])
def test_empty_scalars_are_none(text: str) -> None:
    assert plain_data(root(text)) == {"a": None}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", ["a: 'null'", "a: !!str null", 'a: "null"', "a: |-\n  null"])
def test_quoted_or_tagged_text_is_never_none(text: str) -> None:
    assert plain_data(root(text)) == {"a": "null"}


@pytest.mark.usefixtures("loader")
def test_own_tags_are_ignored() -> None:
    assert plain_data(root("!mine {a: !other [b]}")) == {"a": ["b"]}


@pytest.mark.usefixtures("loader")
def test_positions_count_from_one() -> None:
    node = root("a:\n  - b\n  - c: d")
    assert isinstance(node, Mapping)
    listing = node.entries["a"]
    assert isinstance(listing, document.Listing)
    assert [(item.line, item.column) for item in listing.items] == [(2, 5), (3, 5)]
    assert (node.key("a").line, node.key("a").column) == (1, 1)


@pytest.mark.usefixtures("loader")
def test_only_the_first_document_is_read() -> None:
    assert plain_data(root("a: 1\n---\n]broken[")) == {"a": "1"}
    assert plain_data(root("a: 1\n...\n@broken")) == {"a": "1"}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", ["", "   \n", "# only a comment\n", "%YAML 1.1\n---\n# nothing"])
def test_an_empty_text_has_no_document(text: str) -> None:
    node, problems = compose(text)
    assert problems == []
    assert node is None or (isinstance(node, Scalar) and node.is_null)


@pytest.mark.usefixtures("loader")
def test_aliases_are_resolved() -> None:
    assert plain_data(root("a: &x {b: 1}\nc: *x\nd: [*x, &y e, *y]")) == {
        "a": {"b": "1"},
        "c": {"b": "1"},
        "d": [{"b": "1"}, "e", "e"],
    }


@pytest.mark.usefixtures("loader")
def test_merge_keys_add_missing_keys() -> None:
    text = "base: &b {x: 1, y: 1}\nmore: &m {y: 2, z: 2}\none: {<<: *b, x: 0}\ntwo: {y: 3, <<: [*m, *b]}"
    data = plain_data(root(text))
    assert isinstance(data, dict)
    assert data["one"] == {"x": "0", "y": "1"}
    assert data["two"] == {"y": "3", "z": "2", "x": "1"}


@pytest.mark.usefixtures("loader")
def test_a_quoted_merge_key_is_a_key() -> None:
    assert plain_data(root("'<<': a")) == {"<<": "a"}


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: 1\nb: 2\na: 3", "the key 'a' is given twice, first in line 1", 3, 1),
        ("a: {b: 1, 'b': 2}", "the key 'b' is given twice", 1, 11),
        ("[a]: 1", "expected a text as a key, got a list", 1, 1),
        ("{}: 1", "expected a text as a key, got a mapping", 1, 1),
        ("~: 1", "expected a text as a key, got nothing", 1, 1),
        ("<<: 5", "'<<' merges a mapping or a list of mappings, got '5'", 1, 5),
        ("<<: [{a: 1}, b]", "got 'b'", 1, 14),
        ("{<<: {a: 1}, <<: {b: 1}}", "the key '<<' is given twice", 1, 14),
    ],
)
def test_invalid_mapping_is_reported_and_reading_continues(
    text: str, message: str, line: int, column: int
) -> None:
    node, (problem,) = compose(text)
    assert isinstance(node, Mapping)
    assert message in problem.message
    assert (problem.line, problem.column) == (line, column)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a:\n\t- b", "a tab cannot indent", 2, 1),
        ("a: @b", "a text cannot start with '@'", 1, 4),
        ("a: `b", "a text cannot start with '`'", 1, 4),
        ("a: b: c", "a ': ' is not allowed here", 1, 5),
        ("a: 'b", "the closing quote is missing", 1, 6),
        ("a: b\x07", "character U+0007 is not allowed", 1, 5),
        ("a: 1\nb: \ud800", "character U+D800 is not allowed", 2, 4),
        ("a: *x", "the alias *x is not defined", 1, 4),
        ("a: &x [*x]", "is inside the value that it refers to", 1, 8),
        ("a: &x {b: {c: *x}}", "is inside the value that it refers to", 1, 15),
        ("a: !!binary aGk=", "!!binary is not supported", 1, 4),
        (b"a: \xff", "this is not UTF-8 text: byte 0xff", 1, 4),
        (b"\xff\xfea", "this is not UTF-16 text", 1, 1),
    ],
)
def test_invalid_yaml_is_rejected_with_its_position(
    text: str | bytes, message: str, line: int, column: int
) -> None:
    problem = refusal(text)
    assert message in problem.message
    assert (problem.line, problem.column) == (line, column)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    "text", ["[a", "{a", "- a\nb: c", "a: [1, 2", "a:\n  - b\n c: d", "%YAML 9.9\n---\na"]
)
def test_other_errors_have_a_position(text: str) -> None:
    problem = refusal(text)
    assert "this is not valid YAML" in problem.message
    assert problem.line > 0


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_deep_nesting_is_rejected(opening: str) -> None:
    assert f"at most {MAX_DEPTH} levels" in refusal(opening * 100_000).message


@pytest.mark.usefixtures("loader")
def test_deep_nesting_through_aliases_is_rejected() -> None:
    steps = "\n".join(f"  - &a{number} [*a{number - 1}]" for number in range(1, 300))
    assert f"at most {MAX_DEPTH} levels" in refusal(f"a:\n  - &a0 [x]\n{steps}").message


@pytest.mark.usefixtures("loader")
def test_exploding_aliases_are_rejected() -> None:
    steps = "\n".join(f"  - &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, 12))
    assert "aliases make this text too large" in refusal(f"a:\n  - &a0 [x, x]\n{steps}").message


@pytest.mark.parametrize("data", ["a: é".encode(), b"\xef\xbb\xbfa: \xc3\xa9", "a: é".encode("utf-16")])
def test_utf_8_and_utf_16_files_are_read(data: bytes) -> None:
    assert plain_data(root(decode(data))) == {"a": "é"}


@given(st.text(alphabet="ab:-[]{}&*<>|'\"\n \t#!%@,?~0", max_size=60))
def test_any_text_is_read_or_rejected_with_a_position(text: str) -> None:
    try:
        _, problems = compose(text)
    except ConfigError as refused:
        problems = list(refused.problems)
    assert all(problem.line > 0 and problem.column > 0 for problem in problems)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    try:
        found = compose(decode(data))[1]
    except ConfigError as refused:
        found = list(refused.problems)
    assert all(problem.message for problem in found)
