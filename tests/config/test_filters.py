"""Filters of placement rules (docs/decisions/archive/0006)."""

from __future__ import annotations

import pytest

from yunikorn.config.filters import FilterConfig, expression_fault


@pytest.mark.parametrize(
    ("allow", "users", "groups", "user", "of", "result"),
    [
        (True, [], [], "anybody", [], True),
        (False, [], [], "anybody", [], False),
        (True, ["alice"], [], "alice", [], True),
        (True, ["alice"], [], "bob", [], False),
        (False, ["alice"], [], "alice", [], False),
        (False, ["alice"], [], "bob", [], True),
        (True, ["alice", "bob"], [], "bob", [], True),
        (True, [], ["dev"], "alice", ["x", "dev"], True),
        (True, ["alice"], ["dev"], "bob", ["dev"], True),
        (True, ["alice"], ["dev"], "bob", ["ops"], False),
        (True, [], ["dev*"], "sarah", ["sarah", "dev_app"], True),
        # Unanchored: "de" and any number of "v", anywhere.
        (True, [], ["dev*"], "sarah", ["xdex"], True),
        (True, ["^a.*z$"], [], "abcz", [], True),
        (True, ["^a.*z$"], [], "xabcz", [], False),
        # `$` may end a user's name, so this is one; no group has such a name.
        (True, ["svc$"], [], "svc$", [], True),
        (True, ["svc$"], [], "svc", [], False),
        (True, ["svc$"], [], "xsvc", [], False),
        (False, ["svc$"], [], "svc$", [], False),
        (True, ["svc$$"], [], "my-svc", [], True),
        (True, ["^svc$"], [], "svc", [], True),
        (True, [], ["svc$"], "bob", ["my-svc"], True),
        # Expressions are for single entries; in a longer list they are invalid names and dropped.
        (True, ["dev*", "alice"], [], "dev1", [], False),
        (True, ["dev*", "alice"], [], "alice", [], True),
        (True, ["dev*", "ops*"], [], "alice", [], False),
        (True, ["first.last"], [], "firstXlast", [], False),
    ],
)
def test_users_that_a_filter_permits(
    allow: bool, users: list[str], groups: list[str], user: str, of: list[str], result: bool
) -> None:
    assert FilterConfig(allow, tuple(users), tuple(groups)).allows(user, of) is result


@pytest.mark.parametrize("entry", ["*", "a(?=b)", "(a", "a{1001}", r"(a)\1", "[z-a]"])
def test_expressions_that_re2_refuses_are_reported(entry: str) -> None:
    assert expression_fault(entry)


@pytest.mark.parametrize("entry", ["dev*", "^a|b$", "(?i)dev", "a{1000}", r"\pL+"])
def test_expressions_that_re2_accepts_have_no_error(entry: str) -> None:
    assert expression_fault(entry) is None


def test_filters_are_equal_by_value() -> None:
    assert FilterConfig(True, ("a*",)) == FilterConfig(True, ("a*",))
    assert FilterConfig(True, ("a*",)) != FilterConfig(False, ("a*",))
