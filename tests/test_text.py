"""Suggestions for names that do not exist."""

from __future__ import annotations

import pytest

from yunikorn.text import suggest


@pytest.mark.parametrize(
    ("name", "known", "suggestion"),
    [
        ("Root.Wbe", ("root.web", "root.analytics"), ", did you mean 'root.web'?"),
        ("web", ("root.web", "root.analytics"), ", did you mean 'root.web'?"),
        ("web", ("root.web", "root.a.web"), ""),
        ("", ("root.", "root.web"), ""),
        ("eb", ("root.web",), ""),
    ],
)
def test_suggestion(name: str, known: tuple[str, ...], suggestion: str) -> None:
    assert suggest(name, known) == suggestion
