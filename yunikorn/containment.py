"""Containment of plugins: exceptions that may be handled, and safe use of objects that plugins return.

Printing, comparing, hashing or testing an object of a plugin runs code of the plugin, which may raise any
exception. So does the text of an exception. The functions of this module contain that code
(`docs/decisions/0084`).
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from types import GenericAlias, UnionType
from typing import Any, TypeGuard, TypeVar

_Base = TypeVar("_Base")

LONGEST_TEXT = 2000
"""Largest number of characters of a text of a plugin; the rest is cut off."""
LONGEST_NAME = 1024
"""Largest number of characters of a name that a plugin returns, such as a group or a queue."""
LARGEST, SMALLEST = 1 << 1023, -(1 << 1023)
"""Bounds of whole numbers of plugins; every number between them converts to a float."""
INFINITE = float("inf")
MOST_NUMBERS = 16
_WHOLE = frozenset((int, bool))
MOST_ITEMS = 100_000
"""Largest number of entries of a list or mapping that a plugin returns."""


# -- exceptions ---------------------------------------------------------------------------------------


def contained() -> Any:
    """Return the exceptions to handle in `except contained():` around a call of a plugin.

    Python evaluates this call only after an exception, so it costs nothing before. Every exception of a
    plugin is contained, `KeyboardInterrupt` and `SystemExit` included. The exception is a Ctrl-C of the user:
    see `is_interrupt`.

    The exception loses its traceback, which nothing shows: a plugin may raise one object for every request,
    and its traceback would grow, and keep alive all that the plugin was called with.
    """
    error = sys.exception()
    if error is not None:
        if issubclass(type(error), KeyboardInterrupt) and is_interrupt():
            return ()
        BaseException.with_traceback(error, None)
    return BaseException


def is_interrupt() -> bool:
    """Return True if a `KeyboardInterrupt` in this thread may be a Ctrl-C of the user.

    Python raises it in the main thread only. A handler with the attribute `interrupted`, such as that of the
    command line, and the event loops of asyncio know whether a signal has arrived. A process that ignores the
    signal, as after `nohup`, gets none. Otherwise the answer is True, so that a process can always be ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    interrupted = getattr(handler, "interrupted", None)
    if type(interrupted) is bool:
        return interrupted
    if handler is signal.SIG_IGN:
        return False
    # Event loops handle the signal as an event, and this handler of theirs does nothing.
    return getattr(handler, "__name__", "") != "_sighandler_noop"


class WrongAnswer(ValueError):
    """An answer of a plugin that cannot be used; the text says what is wrong, and is all that is reported."""


# -- texts --------------------------------------------------------------------------------------------


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return `text` with at most `longest` characters, and a remark on the rest."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text)} characters)"


def class_name(cls: type[Any]) -> str:
    """Return the name of a class without running code of its metaclass."""
    return exact_text(type.__dict__["__name__"].__get__(cls))


def exact_text(text: str) -> str:
    """Return a text as an object of the class `str` itself, without running code of a subclass."""
    return text if type(text) is str else str.__str__(text)


def safe_text(value: object) -> str:
    """Return `str(value)`, cut, or a description if that is impossible; never raises."""
    if issubclass(type(value), str):
        return cut(exact_text(value))  # type: ignore[arg-type]
    try:
        return cut(exact_text(str(value)))
    except contained() as error:
        return f"<{class_name(type(value))} whose text cannot be read: {class_name(type(error))}>"


def safe_repr(value: object) -> str:
    """Return `repr(value)`, cut, or a description if that is impossible; never raises."""
    if issubclass(type(value), str):
        text = exact_text(value)  # type: ignore[arg-type]
        if len(text) > LONGEST_TEXT:
            return f"a text of {len(text)} characters: {text[:40]!r}..."
        return repr(text)
    if type(value) is int and not SMALLEST < value < LARGEST:
        return f"a whole number of {value.bit_length()} bits"
    try:
        return cut(exact_text(repr(value)), 200)
    except contained() as error:
        return f"<{class_name(type(value))} whose repr() raises {class_name(type(error))}>"


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an exception; never raises."""
    return f"{class_name(type(error))}: {safe_text(error)}"


# -- values -------------------------------------------------------------------------------------------


def text_or_none(value: object, longest: int = LONGEST_TEXT) -> str | None:
    """Return a text as `str` of at most `longest` characters; None for a value that is no text."""
    if not issubclass(type(value), str):
        return None
    return cut(exact_text(value), longest)  # type: ignore[arg-type]


def number_or_none(value: object) -> float | int | None:
    """Return a number as `int` or `float`; None for NaN, for huge numbers, and for other values."""
    kind = type(value)
    if issubclass(kind, float):
        number = float.__float__(value)  # type: ignore[arg-type]
        return number if number == number else None
    if issubclass(kind, int):
        whole = int.__int__(value)  # type: ignore[arg-type]
        return whole if SMALLEST < whole < LARGEST else None
    return None


def number_of(
    answer: object, fault: str = "is not a number", low: float = -INFINITE, high: float = INFINITE
) -> float:
    """Return a number from `low` to `high` as `int` or `float`. Raises `WrongAnswer` for any other answer."""
    number = number_or_none(answer)
    if number is None or not low <= number <= high:
        raise WrongAnswer(f"{safe_repr(answer)} {fault}")
    return number


def numbers_or_none(answer: Any) -> tuple[float, ...] | None:
    """Return a number, or a tuple of up to `MOST_NUMBERS`, as a tuple; None for other values and NaN."""
    numbers: tuple[Any, ...] = (answer,)
    if type(answer) is tuple and len(answer) <= MOST_NUMBERS:
        numbers = answer
    if _WHOLE.issuperset(map(type, numbers)):
        return numbers
    found = tuple([number for one in numbers if (number := number_or_none(one)) is not None])
    return found if len(found) == len(numbers) else None


def items_of(mapping: Any, most: int = MOST_ITEMS) -> list[tuple[Any, Any]]:
    """Return the items of a mapping that a plugin returned; raises `ValueError` if there are too many.

    Methods of a subclass of `dict` are not called. Raises what another mapping raises, and `TypeError` for a
    value that is no mapping.
    """
    if issubclass(type(mapping), dict):
        if dict.__len__(mapping) > most:
            raise ValueError(f"it returned more than {most} entries")
        return list(dict.items(mapping))
    if not isinstance(mapping, Mapping):
        raise TypeError(f"it returned {safe_repr(mapping)} instead of a mapping")
    return [(key, mapping[key]) for key in entries_of(mapping, most)]


def entries_of(values: Any, most: int = MOST_ITEMS) -> list[Any]:
    """Return the entries of an iterable; raises `ValueError` if there are too many, as if it never ends.

    Methods of subclasses of `list`, `tuple`, `set` and `frozenset` are not called. Raises what the iteration
    raises, and `TypeError` for a value that is not iterable.
    """
    for base in (list, tuple, set, frozenset):
        if issubclass(type(values), base):
            return list(base.__iter__(values))
    found = list(islice(iter(values), most + 1))
    if len(found) > most:
        raise ValueError(f"it returned more than {most} entries")
    return found


def is_plugin_of(plugin: object, base: type[_Base]) -> TypeGuard[_Base]:
    """Return `isinstance(plugin, base)` without running code of the plugin.

    `isinstance` reads `__class__` of an object whose type is no subclass, and a plugin may make that raise.
    """
    return issubclass(type(plugin), base)


def read_attribute(owner: object, name: str) -> Callable[..., Any]:
    """Return the method `name` of a plugin; if reading it raises, a function that raises the same."""
    try:
        found: Callable[..., Any] = getattr(owner, name)
    except contained() as error:
        return _Raising(error)
    return found


class _Raising:
    """Stand-in for a method that cannot be read."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self._error


# -- values that are kept as keys ---------------------------------------------------------------------

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def kept_key(value: Any, failed: Callable[[BaseException], object]) -> Hashable:
    """Return `value` as a key of a dictionary, which later look-ups hash and compare.

    Plain values, and tuples and frozensets of them, are returned as they are. Others are wrapped: the hash is
    computed once, and an exception of a comparison is passed to `failed` and means "not equal". Raises what
    hashing and comparing raise, `ValueError` for a value that does not equal itself, and `RecursionError` for
    deeply nested tuples.
    """
    kind = type(value)
    if kind is tuple or kind is frozenset:
        if _PLAIN.issuperset(map(type, value)) or _is_plain(value):
            return value  # type: ignore[no-any-return]
    elif kind in _PLAIN:
        if value != value:
            raise ValueError("NaN cannot be a key")
        return value  # type: ignore[no-any-return]
    _descend(value)
    found = hash(value)
    if not value == value:
        raise ValueError(f"{safe_repr(value)} does not equal itself")
    return KeptKey(value, found, failed)


def plain_key(key: Hashable) -> Any:
    """Return the value that `kept_key` was called with."""
    return key.value if type(key) is KeptKey else key


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return all(map(_is_plain, value))
    return kind in _PLAIN


def _descend(value: Any) -> None:
    """Visit the nested entries of a value; raises `RecursionError` if they are nested deeply.

    The hash of tuples and generic types descends into their entries without a limit, and ends the process
    when the stack is full.
    """
    kind = type(value)
    if issubclass(kind, tuple):
        for entry in tuple.__iter__(value):
            _descend(entry)
    elif issubclass(kind, frozenset):
        for entry in frozenset.__iter__(value):
            _descend(entry)
    elif issubclass(kind, GenericAlias):
        for entry in vars(GenericAlias)["__args__"].__get__(value):
            _descend(entry)
    elif kind is UnionType:
        for entry in value.__args__:
            _descend(entry)


class KeptKey:
    """Key with a hash computed once, whose comparisons are contained."""

    __slots__ = ("_failed", "_hash", "value")

    def __init__(self, value: Any, found: int, failed: Callable[[BaseException], object]) -> None:
        self.value = value
        self._hash = found
        self._failed = failed

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        try:
            return bool(self.value == (other.value if type(other) is KeptKey else other))
        except contained() as error:
            self._failed(error)
            return False
