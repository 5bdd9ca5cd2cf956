"""Policies as options of another policy of their kind, such as factors of a weighted sum.

A class declares them by an option `Mapping[str, BASE]` with the base class of its own kind. In queue
properties the option is a list of `POLICY`, or of `NAME=POLICY`, and `OPTION.NAME.FURTHER` are the options of
each:

    application.sort.policy.factors: attained=least-attained
    application.sort.policy.factors.attained.half_life: "600"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import attrs

from yunikorn.errors import OptionError, UnknownPlugin
from yunikorn.framework.offers import Offer
from yunikorn.framework.options import show

Entries = dict[str, tuple[str, dict[str, Any]]]
"""Name of the policy and its options, by the name of each entry."""


@attrs.frozen
class NestedOptions:
    """Options of an offer, apart from those of the policies in it."""

    own: Mapping[str, Any]
    nested: Mapping[str, Entries]
    """Entries of the options that are policies, by the name of the option."""

    @classmethod
    def of(cls, offer: Offer, options: Mapping[str, Any]) -> NestedOptions:
        """Return the parts of the options; raises `OptionError`."""
        names = [option.name for option in offer.options if _is_nested(offer, option.annotation)]
        if not names:
            return cls(options, {})
        own, nested = dict(options), dict[str, Entries]()
        faults: list[tuple[str, str]] = []
        for name in names:
            below = {key: own.pop(key) for key in options if key.startswith(f"{name}.")}
            nested[name] = _entries(name, own.pop(name, ""), below, faults)
        if faults:
            raise OptionError(faults)
        return cls(own, nested)

    def make(self, make: Callable[[str, Mapping[str, Any]], Any]) -> dict[str, dict[str, Any]]:
        """Return the policies by option and name; `make` returns the policy of a name and options.

        Raises `OptionError` with all problems of options, or `UnknownPlugin`.
        """
        faults: list[tuple[str, str]] = []
        unknown: UnknownPlugin | None = None
        found: dict[str, dict[str, Any]] = {}
        for option, entries in self.nested.items():
            made = found[option] = {}
            for name, (policy, options) in entries.items():
                try:
                    made[name] = make(policy, options)
                except UnknownPlugin as error:
                    # The class says whether it is disabled, or perhaps in a file that was not loaded.
                    unknown = unknown or type(error)(f"{option}: {error}")
                except OptionError as error:
                    faults += [(f".{option}.{name}{path}", text) for path, text in error.faults]
        if faults:
            raise OptionError(faults)
        if unknown is not None:
            raise unknown
        return found


def _is_nested(offer: Offer, annotation: Any) -> bool:
    return (
        offer.kind.in_properties
        and get_origin(annotation) is Mapping
        and get_args(annotation) == (str, offer.kind.base)
    )


def _entries(option: str, value: Any, below: Mapping[str, Any], faults: list[tuple[str, str]]) -> Entries:
    found: Entries = {}
    if not isinstance(value, str):
        faults.append((f".{option}", f"expected POLICY or NAME=POLICY as text, got {show(value)}"))
        return found
    for part in value.split(",") if value.strip() else ():
        name, equals, policy = (piece.strip() for piece in part.partition("="))
        if not name or (equals and not policy):
            text = f"expected POLICY or NAME=POLICY, separated by commas, got {part.strip()!r}"
            faults.append((f".{option}", text))
        elif name in found:
            faults.append((f".{option}", f"{name!r} is given twice"))
        else:
            found[name] = (policy or name, {})
    for key, inner in below.items():
        name, _, further = key.removeprefix(f"{option}.").rpartition(".")
        if name in found:
            found[name][1][further] = inner
        else:
            faults.append((f".{key}", f"an option of no policy: '{option}' has no entry {name!r}"))
    return found
