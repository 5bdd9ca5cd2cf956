"""Classes that plugins offer, with name, options and origin, and plugins that were left out."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from typing import Any, get_args, get_origin

import attrs

from yunikorn.containment import class_name, contained, describe_error, exact_text, safe_repr, safe_text
from yunikorn.errors import OptionError, YunikornError
from yunikorn.framework.kinds import EVENT_SINK, PluginKind


class InvalidOffer(YunikornError):
    """Violation of the rules of a plugin's kind; the message names the class and the correction."""


OPTIONAL = {"score": "ask_class", "place": "queues"}
"""Second arguments that the methods of these names may have: `score(node, ask_class)`."""


@attrs.frozen
class Option:
    """Option of a plugin class, declared as a typed attribute."""

    name: str
    type: str
    default: Any = attrs.NOTHING
    """Default value; `attrs.NOTHING` if the option is required."""
    annotation: Any = attrs.field(default=None, eq=False, repr=False)
    """Type object; `type` is its name."""
    help: str = ""
    """Text of `metadata={"help": TEXT}`."""

    @property
    def required(self) -> bool:
        """True if a configuration must set the option."""
        return self.default is attrs.NOTHING


@attrs.frozen
class Offer:
    """Class that a plugin offers under a name."""

    kind: PluginKind
    name: str
    cls: type[Any]
    plugin: str
    """Name of the plugin: that of its entry point, or of the module of a default plugin."""
    distribution: str
    version: str
    summary: str = attrs.field(init=False, eq=False, repr=False)
    """First line of the docstring of the class itself; empty if there is none."""
    options: tuple[Option, ...] = attrs.field(init=False, eq=False, repr=False)
    """Typed attributes that a configuration may set, in the order of the class."""

    @summary.default
    def _read_summary(self) -> str:
        own = self.cls.__dict__.get("__doc__")
        return exact_text(inspect.cleandoc(own).partition("\n")[0]) if own else ""

    @options.default
    def _read_options(self) -> tuple[Option, ...]:
        # Read once, where exceptions of the class are contained: at its registration.
        return options_of(self.cls)

    @property
    def origin(self) -> str:
        """Name, plugin, distribution and version, as printed in errors."""
        return f"{self.name} of {describe_origin(self.plugin, self.distribution, self.version)}"

    @property
    def class_name(self) -> str:
        """Module and name of the class, such as `my_policies.fair.Fair`."""
        return f"{safe_text(self.cls.__module__)}.{safe_text(self.cls.__qualname__)}"

    @property
    def file(self) -> str:
        """Path of the file that defines the class; empty if there is none."""
        try:
            return safe_text(inspect.getsourcefile(self.cls) or "")
        except contained():
            return ""


@attrs.frozen
class Broken:
    """Plugin that was left out, and the reason."""

    plugin: str
    distribution: str
    version: str
    reason: str

    def __str__(self) -> str:
        return f"plugin {describe_origin(self.plugin, self.distribution, self.version)}: {self.reason}"


def describe_origin(plugin: str, distribution: str, version: str) -> str:
    """Return `NAME (DIST VERSION)`, or only the name if the plugin has no distribution."""
    return f"{plugin} ({f'{distribution} {version}'.strip()})" if distribution else plugin


def has_options(cls: type[Any]) -> bool:
    """Return True if `cls` declares options, which needs an attrs class or a dataclass."""
    return attrs.has(cls) or dataclasses.is_dataclass(cls)


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """Return the options of a plugin class, in the order of the class.

    Raises NameError if a type that an annotation names is not in the module.
    """
    _resolve_types(cls)
    if attrs.has(cls):
        return tuple(
            Option(
                field.alias or field.name,
                type_name(field.type),
                _attrs_default(field.default),
                field.type,
                _help(field),
            )
            for field in attrs.fields(cls)
            if field.init
        )
    if dataclasses.is_dataclass(cls):
        return tuple(
            Option(field.name, type_name(field.type), _dataclass_default(field), field.type, _help(field))
            for field in dataclasses.fields(cls)
            if field.init
        )
    return ()


def check_class(kind: PluginKind, cls: Any) -> str:
    """Return the name under which `cls` is offered. Raises `InvalidOffer` if the class is not valid for its
    kind.
    """
    if not isinstance(cls, type):
        raise InvalidOffer(
            f"{kind.hook} returned {safe_repr(cls)}, which is not a class; return the class itself"
        )
    if not issubclass(cls, kind.base):
        raise InvalidOffer(
            f"{cls.__qualname__} is not a subclass of {kind.base.__name__}, as {kind.hook} requires"
        )
    _check_readable(kind, cls)
    _check_name(kind, cls)
    _check_method(kind, cls)
    _refuse_async(kind, cls)
    _check_flags(kind, cls)
    _check_pairs(kind, cls)
    _check_options(kind, cls)
    if kind is EVENT_SINK:
        _check_wants(cls)
    return kind.normal(exact_text(cls.name))


def _check_readable(kind: PluginKind, cls: Any) -> None:
    """Refuse a class whose own attributes cannot be read, which the core does without a guard."""
    for name in ("__qualname__", "__module__", "__doc__", "__mro__", *dir(kind.base)):
        if not name.startswith("__") or name in vars(type):
            try:
                getattr(cls, name, None)
            except contained() as error:
                raise InvalidOffer(
                    f"{name} of class {class_name(cls)} cannot be read: {describe_error(error)}"
                ) from None


def _check_name(kind: PluginKind, cls: Any) -> None:
    name = getattr(cls, "name", None)
    form = kind.name_form
    if name in kind.core_names:
        raise InvalidOffer(f"the name of {cls.__qualname__} is {name!r}, which the core uses itself")
    if isinstance(name, str) and form.pattern.match(name):
        return
    if isinstance(name, str) and name:
        wrong = f"the name of {cls.__qualname__} is {name!r}: use {form.text}"
        fitting = name.replace("-", "_")
        wrong += f", for example {fitting!r}" if form.pattern.match(fitting) else ""
    elif any(field.name == "name" for field in (attrs.fields(cls) if attrs.has(cls) else ())):
        wrong = f"'name' of {cls.__qualname__} is an option: write it without a type, name = \"...\""
    else:
        wrong = f"{cls.__qualname__} has no name: set the class attribute 'name' to a text"
    raise InvalidOffer(wrong)


_NEEDS = (
    ("placed", "released", "the books would only grow"),
    ("released", "placed", "the books would only shrink"),
    ("node_added", "placed", "nodes are only announced to a class that keeps books"),
    ("node_removed", "placed", "nodes are only announced to a class that keeps books"),
    ("domain", "placed", "an answer that no running task changes is declared by node_class"),
    ("domain_in", "placed", "an answer that no running task changes is declared by node_class"),
    ("scope", "domain_in", "a scope is only passed to domain_in"),
    ("domain_in", "scope", "all refusals would have one scope, so implement domain"),
    ("subjects", "domain", "subjects only matter to answers that are remembered per domain"),
    ("counts_foreign", "placed", "foreign tasks are only passed to a class that keeps books"),
)
"""Members that need another one, and why."""
_NEEDS_OF_PREDICATES = (
    *_NEEDS,
    ("domain", "ask_class", "an answer is remembered per class of requests and domain"),
    ("commit", "placed", "what one allocation gets, the next one would get as well"),
    ("classes_version", "ask_class", "there are no classes that could change"),
    ("domain_in", "ask_class", "an answer is remembered per class of requests and domain"),
)


_FLAGS = ("counts_foreign", "on_reservation")
"""Class attributes that are True or False."""


def _check_flags(kind: PluginKind, cls: Any) -> None:
    for flag in _FLAGS:
        given = _static(cls, flag, False)
        if hasattr(kind.base, flag) and type(given) is not bool:
            raise InvalidOffer(
                f"{flag} of {cls.__qualname__} is {safe_repr(given)}: write {flag} = True or False"
            )


def _check_pairs(kind: PluginKind, cls: Any) -> None:
    """Check that a class has the methods without which others of its methods are useless or wrong."""
    base = kind.base

    def has(method: str) -> bool:
        own = _static(base, method)
        return own is not None and _static(cls, method) is not own

    for method, other, why in _NEEDS_OF_PREDICATES if hasattr(base, "ask_class") else _NEEDS:
        if has(method) and not has(other) and not (other == "domain" and has("domain_in")):
            raise InvalidOffer(f"{cls.__qualname__} has {method} without {other}: {why}")
    for one, two in (("domain", "node_class"), ("domain_in", "node_class"), ("domain", "domain_in")):
        if has(one) and has(two):
            raise InvalidOffer(f"{cls.__qualname__} has both {one} and {two}: implement only one of them")
    if has("on_reservation") and has("check_reservation"):
        raise InvalidOffer(
            f"{cls.__qualname__} has check_reservation, which is never called with on_reservation = False:"
            " write only one of them"
        )
    if has("prepare") and has("check_nodes"):
        raise InvalidOffer(
            f"{cls.__qualname__} has both prepare and check_nodes: check_nodes already gets all nodes at once"
        )


def _prepares(kind: PluginKind, cls: Any) -> bool:
    """Return True if `check` gets the result of `prepare` as an additional argument."""
    own = _static(kind.base, "prepare")
    return own is not None and _static(cls, "prepare") is not own


def _static(cls: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of a class without running code of the plugin.

    As `inspect.getattr_static`, which also visits the metaclass, and takes a tenth of the time of a start.
    """
    for base in type.mro(cls):
        namespace = type.__getattribute__(base, "__dict__")
        if name in namespace:
            return namespace[name]
    return default


def _check_method(kind: PluginKind, cls: Any) -> None:
    arguments = (*kind.arguments, "state") if _prepares(kind, cls) else kind.arguments
    wanted = f"{kind.method}({', '.join(arguments)})"
    method = getattr(cls, kind.method, None)
    if method is None or method is getattr(kind.base, kind.method, None):
        raise InvalidOffer(f"{cls.__qualname__} lacks the method {wanted}")
    if not callable(method):
        raise InvalidOffer(f"{kind.method} of {cls.__qualname__} is not a method; expected {wanted}")
    bound = isinstance(_static(cls, kind.method), staticmethod | classmethod)
    given = list(arguments) if bound or not inspect.isfunction(method) else ["self", *arguments]
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        optional = OPTIONAL.get(kind.method)
        if optional is not None and _binds(method, [*given, optional]):
            return
        signature = inspect.signature(method)
        raise InvalidOffer(
            f"{cls.__qualname__}.{kind.method}{signature} does not match: expected {wanted}"
        ) from None
    except ValueError:
        return  # extension types may have no signature; wrong arguments show up at the first call


def _refuse_async(kind: PluginKind, cls: Any) -> None:
    """Refuse methods whose calls return a coroutine or a generator instead of an answer."""
    for name, found in _overridden(kind, cls):
        method = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        code = getattr(method, "__code__", None)
        flags = code.co_flags if isinstance(code, types.CodeType) else 0
        if name in kind.coroutines:
            if code is not None and not flags & inspect.CO_COROUTINE:
                raise InvalidOffer(f"{cls.__qualname__}.{name} is not async; write async def {name}")
            continue
        for flag, text in _NO_ANSWER.items():
            if flags & flag:
                raise InvalidOffer(f"{cls.__qualname__}.{name} is {text}; write a plain method")


_NO_ANSWER = {
    inspect.CO_COROUTINE: "async: its calls return a coroutine instead of an answer",
    inspect.CO_ASYNC_GENERATOR: "an async generator: its calls return no answer",
    inspect.CO_GENERATOR: "a generator: its calls return an iterator instead of an answer",
}
"""Kinds of functions that no method of a plugin may be, by their flag."""


def _overridden(kind: PluginKind, cls: Any) -> list[tuple[str, Any]]:
    """Return the members of the kind that the class or one of its bases defines itself."""
    known = {*dir(kind.base), kind.method}
    own = [vars(one) for one in type.mro(cls) if one not in type.mro(kind.base)]
    return [(name, namespace[name]) for namespace in own for name in namespace if name in known]


def _binds(method: Any, given: list[str]) -> bool:
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        return False
    return True


def _check_wants(cls: Any) -> None:
    # The names of all events, which only this check needs, take a twentieth of the start of a short command.
    from yunikorn.framework.event_wants import declared_wants

    try:
        declared_wants(cls)
    except OptionError as error:
        raise InvalidOffer(f"{cls.__qualname__}: {error}") from error


RESERVED = "required"
"""Key of the core beside the name of every plugin; no option of a plugin has this name."""


def _resolve_types(cls: Any) -> None:
    """Replace the names of types in the fields of a class by the types. Raises NameError."""
    if attrs.has(cls):
        attrs.resolve_types(cls, include_extras=True)
    elif dataclasses.is_dataclass(cls):
        hints = typing.get_type_hints(cls, include_extras=True)
        for field in dataclasses.fields(cls):
            field.type = hints[field.name]


def _check_options(kind: PluginKind, cls: Any) -> None:
    try:
        options = options_of(cls)
    except NameError as error:
        raise InvalidOffer(
            f"the types of {cls.__qualname__}'s options cannot be read: {error}; import the named types at "
            "the top of the module, not under TYPE_CHECKING"
        ) from error
    for option in options:
        if option.name in (*kind.reserved, RESERVED):
            raise InvalidOffer(
                f"the option '{option.name}' of {cls.__qualname__} cannot be set: every {kind.title} "
                "has a key of this name; rename the option"
            )


def type_name(annotation: Any) -> str:
    """Return the name of a type for users, such as `str`, `list[str]`, `int | None` or `any`."""
    if annotation is None or annotation is Any:
        return "any"
    if annotation is type(None):
        return "None"
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, list):  # parameters of a callable
        return f"[{', '.join(map(type_name, annotation))}]"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return type_name(arguments[0])
    if origin is typing.Literal:
        return " | ".join(repr(argument) for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_name(argument) for argument in arguments)
    if origin is not None:
        inner = ", ".join("..." if part is Ellipsis else type_name(part) for part in arguments)
        return f"{origin.__name__}[{inner}]"
    return getattr(annotation, "__name__", str(annotation))


def _help(field: Any) -> str:
    return safe_text(field.metadata.get("help", ""))


def _attrs_default(default: Any) -> Any:
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        # A default computed from other attributes has no fixed value, but makes the option optional.
        return None if default.takes_self else default.factory()
    return default


def _dataclass_default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return attrs.NOTHING
