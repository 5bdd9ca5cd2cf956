"""Abuses of plugins: values that raise when they are used, exceptions of all kinds, and other abuse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

Abuse = Callable[..., Any]
"""Body of a method of a plugin; receives the arguments of the call."""


class Boom(BaseException):
    """An exception outside of all hierarchies."""


def boom(*_: object, **__: object) -> Any:
    """Raise `Boom`."""
    raise Boom("from inside of a value")


class EvilError(Exception):
    """An exception whose text, representation, class and comparisons raise."""

    __str__ = __repr__ = __eq__ = __hash__ = boom
    __class__ = property(boom)


class EvilRepr:
    """A value that cannot be shown."""

    __str__ = __repr__ = __format__ = boom


class EvilOrder:
    """A value that cannot be ordered, compared or tested."""

    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = __bool__ = boom
    __hash__ = object.__hash__


class EvilHash:
    """A value without a hash."""

    __hash__ = boom


class LaterEvil:
    """A value whose hash, comparisons and representation raise from the third use on."""

    def __init__(self) -> None:
        self.uses = 0

    def _use(self) -> None:
        self.uses += 1
        if self.uses > 2:
            raise Boom("later")

    def __hash__(self) -> int:
        self._use()
        return 7

    def __eq__(self, other: object) -> bool:
        self._use()
        return self is other

    def __lt__(self, other: object) -> bool:
        self._use()
        return False


class EvilAnswer:
    """A value whose comparisons return values that are no booleans and cannot be tested."""

    def __eq__(self, other: object) -> Any:
        return EvilOrder()

    __lt__ = __eq__
    __hash__ = object.__hash__


class EvilText(str):
    """A text with overridden methods."""

    __str__ = __repr__ = __len__ = __eq__ = __lt__ = __hash__ = __format__ = lower = split = boom


class EvilInt(int):
    """A whole number with overridden methods."""

    __str__ = __repr__ = __eq__ = __lt__ = __le__ = __gt__ = __hash__ = __int__ = __bool__ = boom


class EvilFloat(float):
    """A number with overridden methods."""

    __str__ = __repr__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __hash__ = __float__ = boom


class EvilList(list[Any]):
    """A list with overridden methods."""

    __iter__ = __len__ = __getitem__ = __eq__ = __repr__ = __bool__ = boom


class EvilDict(dict[Any, Any]):
    """A mapping with overridden methods."""

    __iter__ = __len__ = __getitem__ = __eq__ = __repr__ = items = keys = get = boom


class EvilClass:
    """A value that lies about its class."""

    __class__ = property(boom)


def endless() -> Iterator[str]:
    """Yield without an end."""
    while True:
        yield "more"


def raising(error: BaseException | type[BaseException]) -> Abuse:
    """Return a abuse that raises."""

    def abuse(*_: object, **__: object) -> Any:
        raise error

    return abuse


def returning(make: Callable[[], Any]) -> Abuse:
    """Return a abuse that returns a new value."""
    return lambda *_, **__: make()


def mutating(*arguments: object, **_: object) -> Any:
    """Empty and change every amount, tag and attribute of the arguments."""
    for argument in arguments:
        for name in AMOUNTS:
            value: Any = getattr(argument, name, None)
            with contextlib.suppress(Exception):
                value.clear()
            with contextlib.suppress(Exception):
                value.update(vcore=10**9)


AMOUNTS = ("tags", "attributes", "properties", "capacity", "occupied", "resource", "guaranteed", "max")
"""Mappings of views that are read-only."""


def printing(*_: object, **__: object) -> Any:
    """Print text that would spoil a machine-readable output."""
    print('{"broken": ')


async def coroutine(*_: object, **__: object) -> Any:
    """Return a coroutine instead of an answer."""
    return None


def generator(*_: object, **__: object) -> Any:
    """Return a generator instead of an answer."""
    yield None


RAISING: dict[str, Abuse] = {
    "Exception": raising(RuntimeError("broken")),
    "exception that cannot be shown": raising(EvilError),
    "SystemExit(0)": raising(SystemExit(0)),
    "KeyboardInterrupt": raising(KeyboardInterrupt),
    "CancelledError": raising(asyncio.CancelledError),
    "GeneratorExit": raising(GeneratorExit),
    "StopIteration": raising(StopIteration),
    "BaseException": raising(Boom("broken")),
    "RecursionError": lambda *_, **__: RAISING["RecursionError"](),
    "group of exceptions": raising(BaseExceptionGroup("many", [Boom("one"), SystemExit(0)])),
}
"""Abuses that raise; each has to be reported."""

RETURNING: dict[str, Abuse] = {
    "wrong type": returning(object),
    "None": returning(lambda: None),
    "NaN": returning(lambda: float("nan")),
    "huge number": returning(lambda: 10**5000),
    "value that cannot be shown": returning(EvilRepr),
    "value that cannot be compared": returning(EvilOrder),
    "value without a hash": returning(EvilHash),
    "value that fails later": returning(LaterEvil),
    "comparisons that are no booleans": returning(EvilAnswer),
    "text with other methods": returning(lambda: EvilText("root.default")),
    "number with other methods": returning(lambda: EvilInt(3)),
    "float with other methods": returning(lambda: EvilFloat(3)),
    "list with other methods": returning(lambda: EvilList(["a"])),
    "mapping with other methods": returning(lambda: EvilDict(a=1)),
    "value that lies about its class": returning(EvilClass),
    "long text": returning(lambda: "x" * 3_000_000),
    "nested evil": returning(lambda: (1, (LaterEvil(), EvilText("a")))),
    "endless iterator": returning(endless),
    "coroutine": coroutine,
    "generator": generator,
    "changes its argument": mutating,
    "prints": printing,
}
"""Abuses that return; each is either harmless for a method, or reported."""

ABUSES = RAISING | RETURNING
