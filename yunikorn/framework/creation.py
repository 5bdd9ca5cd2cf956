"""Creation of plugin objects from options, and the errors of a creation that failed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import Any

import cattrs

from yunikorn.api import Plugin
from yunikorn.containment import contained
from yunikorn.errors import OptionError, PluginError
from yunikorn.framework.kinds import EVENT_SINK
from yunikorn.framework.offers import Offer, has_options
from yunikorn.framework.options import UNKNOWN_KEY, faults
from yunikorn.text import listed, suggest


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the working directory, on which the meaning of relative names depends."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        folder = ""
    try:
        yield
    finally:
        if folder:
            os.chdir(folder)


def create(
    offer: Offer,
    options: Mapping[str, Any],
    converter: cattrs.Converter,
    policies: Mapping[str, Mapping[str, Plugin]] = MappingProxyType({}),
) -> Any:
    """Return a new object of the class of an offer, with options that `converter` has structured.

    `policies` are the options that consist of policies (`framework.nested_policies`).
    Raises `OptionError` (with paths below the options), or `PluginError` if the class raises an unexpected
    exception.
    """
    if not has_options(offer.cls):
        if options:
            raise OptionError((f".{key}", _no_options(offer)) for key in options)
        return _create_plain(offer)
    try:
        with same_folder():
            made: Any = converter.structure({**deepcopy(dict(options)), **policies}, offer.cls)
    except contained() as error:
        refusal = _refusal(offer, error)
        if isinstance(refusal, OptionError):
            make = partial(create, offer, converter=converter, policies=policies)
            refusal = _all_faults(options, make, refusal)
        raise refusal from error
    if offer.kind is EVENT_SINK and "wants" in options:
        _check_wants(offer, made)
    return made


def _all_faults(options: Mapping[str, Any], make: Callable[..., Any], first: OptionError) -> OptionError:
    """Return faults of types, with those of values, which are checked without the options with the former."""
    wrong = {_option_of(path) for path, _ in first.faults}
    rest = {name: value for name, value in options.items() if name not in wrong}
    if len(rest) < len(options):
        try:
            make(rest)
        except OptionError as others:
            return OptionError([*first.faults, *(one for one in others.faults if _option_of(one[0]) in rest)])
        except PluginError:
            pass
    return first


def _option_of(path: str) -> str:
    """Return the name of the option with a path such as `.teams[0].name`."""
    return path.lstrip(".").partition(".")[0].partition("[")[0]


def _check_wants(offer: Offer, made: Any) -> None:
    # As in yunikorn.framework.offers: most commands need no names of events.
    from yunikorn.framework.event_wants import read_wants

    try:
        read_wants(made.wants)
    except OptionError as error:
        raise OptionError((".wants", _explain(offer, ".wants", text)) for _, text in error.faults) from error


def _create_plain(offer: Offer) -> Any:
    try:
        with same_folder():
            return offer.cls()
    except contained() as error:
        raise PluginError(offer.origin, "creating it", error) from error


def _refusal(offer: Offer, error: BaseException) -> OptionError | PluginError:
    """Return the error to raise for an object that could not be made."""
    try:
        leaves = _leaves(error)
        if isinstance(error, Exception) and all(map(_is_option_fault, leaves)):
            return OptionError((path, _explain(offer, path, message)) for path, message in faults(error))
        return PluginError(offer.origin, "creating it", leaves[0])
    except contained() as second:
        return PluginError(offer.origin, "creating it", second)


def _no_options(offer: Offer) -> str:
    text = f"{offer.kind.title} {offer.origin} takes no options"
    if inspect.get_annotations(offer.cls):
        text += f"; to make its typed attributes options, write @attrs.frozen above {offer.cls.__qualname__}"
    return text


def _explain(offer: Offer, path: str, message: str) -> str:
    if message == UNKNOWN_KEY and path.count(".") == 1:
        known = [option.name for option in offer.options]
        asked = path.removeprefix(".")
        message = f"unknown option '{asked}'{suggest(asked, known)}; known: {listed(known)}"
    return f"{offer.kind.title} {offer.origin}: {message}"


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _is_option_fault(error: BaseException) -> bool:
    if isinstance(error, KeyError):
        notes = getattr(error, "__notes__", ())
        return any(
            isinstance(note, cattrs.AttributeValidationNote) and error.args == (note.name,) for note in notes
        )
    return isinstance(error, (ValueError, TypeError)) or type(error).__module__.startswith("cattrs")
