"""Options of sort policies in queue properties: lists and mappings as texts, and types that have no text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import attrs
import pytest

from tests.test_registry import blame, offering, registered
from yunikorn.api import Application, AppSortPolicy
from yunikorn.errors import OptionError
from yunikorn.framework.kinds import APP_SORT


@attrs.frozen
class ByWeight(AppSortPolicy):
    """Weights per resource type."""

    name = "by-weight"
    weights: dict[str, float]
    labels: Mapping[str, str] | None = None

    def key(self, app: Application) -> float:
        return sum(self.weights.get(name, 0.0) * amount for name, amount in app.allocated.items())


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("gpu=4, vcore=1", {"gpu": 4.0, "vcore": 1.0}),
        (" nvidia.com/gpu = 0.5 ", {"nvidia.com/gpu": 0.5}),
        ("", {}),
        ("  ", {}),
    ],
)
def test_properties_contain_mappings_as_text(text: str, weights: dict[str, float]) -> None:
    registry = registered(offering(ByWeight))
    assert registry.make(APP_SORT, "by-weight", {"weights": text}, comma_lists=True).weights == weights
    with pytest.raises(OptionError, match="expected a mapping"):
        registry.make(APP_SORT, "by-weight", {"weights": text})


def test_text_of_a_mapping_is_split_at_the_first_equals_sign() -> None:
    options = {"weights": "", "labels": "a=b=c,d="}
    made = registered(offering(ByWeight)).make(APP_SORT, "by-weight", options, comma_lists=True)
    assert made.labels == {"a": "b=c", "d": ""}


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("gpu", ".weights", "expected NAME=VALUE, separated by commas, got 'gpu'"),
        ("gpu=4,", ".weights", "expected NAME=VALUE, separated by commas, got ''"),
        ("=4", ".weights", "expected NAME=VALUE, separated by commas, got '=4'"),
        ("gpu=4, gpu=5", ".weights", "'gpu' is given twice"),
        ("gpu=four", ".weights.gpu", "expected a number, got 'four'"),
    ],
)
def test_wrong_text_of_a_mapping_is_reported(text: str, path: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        registered(offering(ByWeight)).make(APP_SORT, "by-weight", {"weights": text}, comma_lists=True)
    assert caught.value.faults == (
        (path, f"application sort policy by-weight of mine (my-dist 1.2): {message}"),
    )


@attrs.frozen
class Team:
    size: int = 1


@dataclasses.dataclass
class Squad:
    size: int = 1


@pytest.mark.parametrize(
    "kind",
    [dict[str, list[str]], list[list[str]], list[str] | dict[str, Team], Team, dict[str, Squad], Team | None],
)
def test_option_without_a_text_is_refused_in_properties_only(kind: Any) -> None:
    fields = {"odd": attrs.field(type=kind, default=None)}
    sort = attrs.make_class(
        "Sort", fields, bases=(AppSortPolicy,), class_body={"name": "s", "key": lambda self, app: 0}
    )
    text = blame(offering(sort))
    assert text.startswith("the option 'odd' of Sort has the type ")
    assert text.endswith("are texts: use a scalar, a list of scalars or a mapping of scalars") or (
        text.endswith("which no configuration can give")
    )


@pytest.mark.parametrize(
    "kind", [int, float | None, list[int], tuple[str, ...], dict[str, bool], Mapping[str, int | None], Any]
)
def test_option_with_a_text_is_accepted_in_properties(kind: Any) -> None:
    fields = {"fine": attrs.field(type=kind, default=None)}
    body = {"name": "s", "key": lambda self, app: 0}
    registered(offering(attrs.make_class("Sort", fields, bases=(AppSortPolicy,), class_body=body)))


class Direction(Enum):
    """A choice that is no text."""

    UP = "up"
    DOWN = 1


@attrs.frozen
class Chooses(AppSortPolicy):
    """Options with a few values each."""

    name = "chooses"
    style: Literal["soft", "hard", 2] = "soft"
    direction: Direction = Direction.UP
    many: tuple[Literal["a", "b"], ...] = ()
    maybe: Literal["x"] | None = None

    def key(self, app: Application) -> int:
        return 0


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({"style": "hart"}, ".style", "expected 'soft' or 'hard' or 2, got 'hart', did you mean 'hard'?"),
        ({"style": True}, ".style", "expected 'soft' or 'hard' or 2, got True"),
        ({"style": ["soft"]}, ".style", "expected 'soft' or 'hard' or 2, got a list"),
        ({"direction": "left"}, ".direction", "expected 'up' or 1, got 'left'"),
        ({"many": ["a", "c"]}, ".many[1]", "expected 'a' or 'b', got 'c'"),
        ({"maybe": "y"}, ".maybe", "expected 'x', got 'y'"),
    ],
)
def test_value_that_is_no_choice_is_reported_with_the_choices(
    options: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        registered(offering(Chooses)).make(APP_SORT, "chooses", options)
    assert caught.value.faults == (
        (path, f"application sort policy chooses of mine (my-dist 1.2): {message}"),
    )


def test_choices_are_read_from_texts() -> None:
    options = {"style": "2", "direction": "1", "many": "a,b", "maybe": "x"}
    made = registered(offering(Chooses)).make(APP_SORT, "chooses", options, comma_lists=True)
    assert made == Chooses(2, Direction.DOWN, ("a", "b"), "x")
