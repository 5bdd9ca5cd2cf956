"""Samples that record what a plugin reads, and that can pretend to have other values.

A plugin is called with a substitute of each sample. The substitute records the attributes and the keys of
tags that are read, so that a contract can try odd values of exactly these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs

from yunikorn import api
from yunikorn_testing.gang_samples import DomainSample, GangPartSample, GangSample
from yunikorn_testing.samples import (
    AllocationSample,
    ApplicationSample,
    AskClassSample,
    AskSample,
    NodeSample,
    QueueSample,
)

VIEWS: dict[type[Any], tuple[type[Any], ...]] = {
    NodeSample: (api.Node,),
    QueueSample: (api.Queue,),
    ApplicationSample: (api.Application,),
    AskSample: (api.Ask, api.AskClass),
    AllocationSample: (api.Allocation,),
    AskClassSample: (api.AskClass,),
    api.PastService: (api.PastService,),
    GangPartSample: (api.GangPart,),
    GangSample: (api.PlacedGang,),
    DomainSample: (api.TopologyDomain,),
}
"""Views that each class of samples implements; the first one names it in messages."""
MEMBERS = {
    sample: frozenset(name for view in views for name in dir(view) if not name.startswith("_"))
    for sample, views in VIEWS.items()
}
"""Attributes of the views of each class of samples."""
NAMES = ("id", "key", "user", "uuid", "path", "queue_name")
"""Attributes with texts that differ between objects."""
TEXTS = ("tags", "attributes", "properties")
"""Attributes with texts that users write."""


@attrs.frozen
class TextPlace:
    """Tag, node attribute or queue property that a plugin reads."""

    view: str
    attribute: str
    key: str

    def __str__(self) -> str:
        return f"{self.view}.{self.attribute}[{self.key!r}]"


@attrs.define
class WatchedReading:
    """Record of what a plugin read, and the values that samples pretend to have."""

    names: set[tuple[str, str]] = attrs.Factory(set)
    """Attributes that were read, each with its view."""
    paths: set[str] = attrs.Factory(set)
    """Attributes that were read, from the watched object on, such as `queue.parent.allocated`."""
    hidden: set[tuple[str, str]] = attrs.Factory(set)
    """Attributes that were read although no view has them."""
    texts: set[TextPlace] = attrs.Factory(set)
    """Tags, attributes and properties that were read by key."""
    pretended: Mapping[TextPlace, str] = attrs.Factory(dict)
    """Texts that samples pretend to have."""
    suffix: str = ""
    """Text appended to ids and names, which makes samples different from earlier ones."""

    def watch(self, value: Any, path: str = "") -> Any:
        """Return the substitute of a sample; other values are returned as they are.

        `path` leads to the sample, such as `queue.`; it is empty for the sample that a plugin is given.
        """
        if type(value) in VIEWS:
            return Watched(value, self, path)
        if type(value) is tuple:  # parts of gangs, and domains below
            return tuple([self.watch(one, path) for one in value])
        if isinstance(value, MappingProxyType):  # allocations by uuid, or lists of them by node
            return MappingProxyType({key: self._watch_entries(one, path) for key, one in value.items()})
        if isinstance(value, api.Submission):
            return self._watch_submission(value)
        if isinstance(value, api.PreemptionCause):
            queue, node = self.watch(value.queue, f"{path}queue."), self.watch(value.node, f"{path}node.")
            return attrs.evolve(value, queue=queue, node=node)
        return value

    def _watch_entries(self, value: Any, path: str) -> Any:
        return (
            [self.watch(one, path) for one in value] if isinstance(value, list) else self.watch(value, path)
        )

    def _watch_submission(self, value: api.Submission) -> api.Submission:
        # A policy passes the submission to `attrs.evolve`, which needs an object of the class itself. Its
        # slots make private attributes impossible, so only the tags are watched.
        return attrs.evolve(
            value,
            id=f"{value.id}{self.suffix}",
            user=f"{value.user}{self.suffix}",
            tags=WatchedTexts("Submission", "tags", value.tags, self),
        )

    def watch_call(self, call: Any) -> Any:
        """Return a `partial` with its samples replaced by substitutes; other calls are returned unchanged."""
        if not isinstance(call, partial):
            return call
        named = {name: self.watch(value) for name, value in call.keywords.items()}
        return partial(call.func, *map(self.watch, call.args), **named)


class Watched:
    """Substitute of a sample."""

    __slots__ = ("_path", "_reading", "_sample")

    def __init__(self, sample: Any, reading: WatchedReading, path: str) -> None:
        self._sample = sample
        self._reading = reading
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        of_sample = type(self._sample)
        view = VIEWS[of_sample][0].__name__
        if name not in MEMBERS[of_sample]:
            self._reading.hidden.add((view, name))
            raise AttributeError(f"{view} has no attribute '{name}'")
        self._reading.names.add((view, name))
        self._reading.paths.add(f"{self._path}{name}")
        value = getattr(self._sample, name)
        if name in TEXTS:
            return WatchedTexts(view, name, value, self._reading)
        if name in NAMES and self._reading.suffix:
            return f"{value}{self._reading.suffix}"
        return self._reading.watch(value, f"{self._path}{name}.")

    def __repr__(self) -> str:
        return f"a watched {self._sample!r}"


def watched_like(value: Any, sample: Any) -> Any:
    """Return the substitute of `value` if `sample` is a substitute, else `value` itself."""
    return sample._reading.watch(value) if isinstance(sample, Watched) else value


class WatchedTexts(Mapping[str, str]):
    """Substitute of the tags, attributes or properties of a sample."""

    def __init__(self, view: str, attribute: str, texts: Mapping[str, str], reading: WatchedReading) -> None:
        self._view, self._attribute, self._reading = view, attribute, reading
        pretended = {
            place.key: text
            for place, text in reading.pretended.items()
            if (place.view, place.attribute) == (view, attribute)
        }
        self._texts = {**texts, **pretended}

    def __getitem__(self, key: str) -> str:
        if isinstance(key, str):
            self._reading.texts.add(TextPlace(self._view, self._attribute, key))
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    # The read-only dictionaries of the scheduler have these three methods, too.
    def copy(self) -> dict[str, str]:
        """Return a dictionary with the same texts."""
        return dict(self)

    def __or__(self, other: Mapping[str, str]) -> dict[str, str]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, str]) -> dict[str, str]:
        return {**other, **self}

    def __repr__(self) -> str:
        return repr(self._texts)
