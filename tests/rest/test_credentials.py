"""The file of credentials, and `yunikorn token`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yunikorn.cli.main import main
from yunikorn.errors import ConfigError, UsageError
from yunikorn_rest.operator_credentials import (
    Role,
    hash_of,
    parse_credentials,
    read_credentials,
    weak_permissions,
)

HASH = hash_of("a token")
SECRET = "yunikorn_this-must-not-be-shown"


def problems(text: str, *, certificates: bool = True) -> list[str]:
    """Return the problems of a text, as they are printed."""
    with pytest.raises(ConfigError) as raised:
        parse_credentials(text, certificates=certificates)
    return [str(problem) for problem in raised.value.problems]


def test_entries_are_found_by_token_and_certificate() -> None:
    text = f"""
    - name: alice
      role: operate
      groups: [ops, dev]
      token: {HASH.upper().replace("SHA256", "sha256")}
    - {{name: bob@example.org, role: view, certificate: "bob, of example.org"}}
    """
    found = parse_credentials(text)
    alice = found.of_token("a token")
    assert alice is not None
    assert (alice.name, alice.role, alice.groups) == ("alice", Role.OPERATE, ("ops", "dev"))
    bob = found.of_certificate("bob, of example.org")
    assert bob is not None
    assert bob.role is Role.VIEW
    assert found.of_token("") is found.of_token("another") is found.of_certificate("") is None
    assert found.of_token("a token" * 1000) is found.of_token("\udcff") is None


def test_roles_include_each_other_in_their_order() -> None:
    assert [[one.includes(other) for other in Role] for one in Role] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_all_problems_are_reported_with_their_lines() -> None:
    text = f"""
- name: alice
  role: viewer
  tokn: x
- role: view
  token: {SECRET}
- just a text
- {{name: alice, role: view, token: "{HASH}"}}
- {{name: -, role: view, token: "{HASH}"}}
- {{name: carl, role: view}}
- {{name: dora, role: admin, token: "{HASH}", certificate: dora, groups: ops}}
- {{name: emil, role: [view], certificate: c, groups: [ops, 1a, [x]]}}
- {{name: fred, role: ~, certificate: c}}
"""
    found = problems(text)
    expected = [
        ("line 2,", "give either `token` or `certificate`"),
        ("line 3,", "unknown role, did you mean 'view'?; known: view, operate, admin"),
        ("line 4,", "unknown key, did you mean 'token'?"),
        ("line 5,", "`name` is missing"),
        ("line 6,", "expected the hash of a token"),
        ("line 7,", "expected a mapping"),
        ("line 8,", "the same name is in line 2"),
        ("line 9,", "expected at most 64 letters"),
        ("line 9,", "the same token is in line 8"),
        ("line 10,", "give either `token` or `certificate`"),
        ("line 11,", "not both"),
        ("line 11,", "expected a list of names of groups"),
        ("line 12,", "expected a text"),
        ("line 12,", "expected the name of a group"),
        ("line 12,", "expected the name of a group"),
        ("line 13,", "expected a text"),
        ("line 13,", "the same certificate is in line 12"),
    ]
    assert len(found) == len(expected), found
    for line, (place, message) in zip(found, expected, strict=True):
        assert place in line
        assert message in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a list"),
        ("[]", "there is no entry"),
        (f"name: {SECRET}", "expected a list"),
        (f"- {SECRET}", "expected a mapping"),
        (f"{{{SECRET}: x, {SECRET}: y}}", "is given twice"),
        (f"- {{{SECRET}: x}}", "unknown key"),
        (f"- {{name: a, role: {SECRET}, token: x}}", "unknown role"),
        (f"- {{name: '{SECRET}!', role: view, token: x}}", "expected at most"),
        (f"- *{SECRET}", "alias"),
        ("- name: 'a\n", "closing quote"),
        ("- \x00", "not allowed"),
    ],
)
def test_values_of_the_file_are_in_no_message(text: str, message: str) -> None:
    found = problems(text)
    assert message in "\n".join(found)
    assert SECRET not in "\n".join(found)


def test_certificates_need_an_authority() -> None:
    (found,) = problems("[{name: a, role: view, certificate: c}]", certificates=False)
    assert "certificates of clients need --tls-cert, --tls-key and --tls-client-ca" in found


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--rest-credentials .*none: cannot be read: No such file"):
        read_credentials(tmp_path / "none", certificates=True)
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UsageError, match=r"--rest-credentials .*file: "):
        read_credentials(file, certificates=True)


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
@pytest.mark.parametrize(
    ("mode", "who"), [(0o600, ""), (0o644, ""), (0o620, "its group"), (0o602, "every user")]
)
def test_permissions_are_checked(tmp_path: Path, mode: int, who: str) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    assert who in weak_permissions(file)
    assert bool(weak_permissions(file)) == bool(who)


def test_token_and_its_entry_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "alice", "--role", "operate", "--group", "ops"]) == 0
    token, entry = capsys.readouterr().out.split("\n", 1)
    found = parse_credentials(entry).of_token(token)
    assert found is not None
    assert (found.name, found.role, found.groups) == ("alice", Role.OPERATE, ("ops",))
    assert main(["token", "alice", "--role", "operate"]) == 0
    assert capsys.readouterr().out.split("\n", 1)[0] != token


def test_names_that_cannot_be_used_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "a b", "--role", "view"]) == 2
    assert "expected at most 64 letters" in capsys.readouterr().err
