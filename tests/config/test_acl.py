"""Access control lists."""

from __future__ import annotations

import pytest

from yunikorn.config.acl import EVERYBODY, NOBODY, Acl, illegal_names


@pytest.mark.parametrize("text", ["*", " *", "* ", "*  ", "* dev", "alice *", " * "])
def test_a_star_alone_permits_all_users(text: str) -> None:
    assert Acl.parse(text) == EVERYBODY
    assert Acl.parse(text).allows("anybody", [])


@pytest.mark.parametrize("text", ["", " ", "   ", ","])
def test_an_empty_text_permits_no_user(text: str) -> None:
    assert Acl.parse(text) == NOBODY
    assert not Acl.parse(text).allows("anybody", ["anything"])


@pytest.mark.parametrize(
    ("text", "user", "groups", "allowed"),
    [
        ("alice", "alice", [], True),
        ("alice", "Alice", [], False),
        ("alice,bob", "bob", [], True),
        ("alice ", "alice", [], True),
        ("alice", "bob", ["alice"], False),
        (" dev,test", "dev", [], False),
        (" dev,test", "bob", ["other", "test"], True),
        (" dev", "dev", [], False),
        ("alice dev", "bob", ["dev"], True),
        ("alice dev", "alice", [], True),
        ("alice dev", "dev", ["alice"], False),
        ("alice  dev", "bob", ["dev"], True),
        (" alice dev ", "alice", [], True),
        ("alice,*", "bob", [], False),
        ("alice,*", "alice", [], True),
        ("user@domain,first.last,_x,svc$", "svc$", [], True),
        ("user@domain,first.last,_x,svc$", "first.last", [], True),
        ("ns:sa", "ns:sa", [], False),
        (" a.b", "x", ["a.b"], False),
        ("1st", "1st", [], False),
    ],
)
def test_acl_permits_listed_users_and_groups(text: str, user: str, groups: list[str], allowed: bool) -> None:
    assert Acl.parse(text).allows(user, groups) is allowed


@pytest.mark.parametrize("text", ["a b c", "a, b c", "* * *"])
def test_more_than_two_lists_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="got 3 lists"):
        Acl.parse(text)


def test_invalid_names_are_reported() -> None:
    assert illegal_names("alice,ns:sa,* dev,a.b") == ("ns:sa", "*", "a.b")
    assert illegal_names("*") == ()
    assert illegal_names("alice dev") == ()
