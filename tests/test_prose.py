"""The prose of docstrings, comments and pages, by the rules of docs/glossary.md."""

from __future__ import annotations

import pytest

from tests.prose import PLACES, ROOT, find_slips, slips_of_file, slips_of_python


@pytest.mark.parametrize("place", PLACES)
def test_prose_follows_the_glossary(place: str) -> None:
    slips = find_slips([ROOT / place])
    assert not slips, "\n".join(map(str, slips))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What a queue holds."""\n', 'a docstring that begins with "What"'),
        ('class A:\n    x: int = 0\n    """Whether it runs."""\n', 'a docstring that begins with "Whether"'),
        ("x = 1  # kept for ever\n", '"for ever" in "# kept for ever"'),
        ('"""Counts asks (facts §5.3)."""\n', '"(facts" in "Counts asks (facts §5.3)."'),
        (
            'def f() -> None:\n    """Count them (decision 40)."""\n',
            '"decision 4" in "Count them (decision 40)."',
        ),
    ],
)
def test_violations_in_python_are_found(source: str, expected: str) -> None:
    assert expected in [slip.text for slip in slips_of_python("a.py", source)]


def test_pages_are_read_without_plain_blocks() -> None:
    page = "Nobody asks.\n```\nnobody\n```\nA seed: 7.\n"
    assert [slip.line for slip in slips_of_file("a.md", page)] == [1, 5]


def test_code_in_pages_is_read() -> None:
    page = """
1. A step:

   ```python
   def key() -> int:
       \"\"\"When it came.\"\"\"
       return nobody  # kept for ever
   ```

<!-- part of: queue -->
```yaml
user: nobody   # in vain
```
"""
    assert [str(slip) for slip in slips_of_file("docs/a.md", page)] == [
        'docs/a.md:6: a docstring that begins with "When"',
        'docs/a.md:7: "for ever" in "# kept for ever"',
        'docs/a.md:12: "in vain" in "# in vain"',
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a/module.py.txt", '"""A plugin."""\n\nclass {{class}}:\n    """Who runs."""\n'),
        ("queues.yaml", "user: nobody\n\n\nqueue: a  # for ever\n"),
        ("mkdocs.yml", "user: nobody\n\n\n# for ever\n"),
        ("pyproject.toml", '[project]\nname = "a"\n\ndescription = "so that nobody starves"\n'),
        ("setup.cfg", "[metadata]\n# `nobody`\n\ndescription = serves whoever asks\n"),
    ],
)
def test_settings_and_templates_are_read(path: str, text: str) -> None:
    assert [slip.line for slip in slips_of_file(path, text)] == [4]


def test_other_files_are_not_read() -> None:
    assert not list(slips_of_file("a.json", "nobody"))
