"""Finding, checking, blaming and making plugins.

A `Registry` is a value: make one, pass it on. Default plugins are registered first, in the fixed
order of `DEFAULT_PLUGINS`; third parties follow through the entry-point group `yunikorn`. A plugin
that cannot be used is left out whole and remembered in `broken`, so that the user who names it reads
why, and nobody else is stopped.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

import attrs
import pluggy

from yunikorn import api, hookspecs
from yunikorn.config.converter import faults, make_converter
from yunikorn.errors import OptionError, PluginError, UnknownPlugin

DISTRIBUTION = "yunikorn"
GROUP = "yunikorn"
DEFAULT_PLUGINS = (
    "yunikorn_policies.app_sort",
    "yunikorn_policies.queue_sort",
    "yunikorn_policies.node_sort",
    "yunikorn_plugins.placement",
    "yunikorn_plugins.predicates",
    "yunikorn_plugins.events",
    "yunikorn_plugins.groups",
)


@attrs.frozen
class Kind:
    """A kind of plugin: what it is called, the hook that hands it over, its base class."""

    id: str
    title: str
    hook: str
    base: type[api.Plugin]
    method: str
    """The method that a class of this kind must have."""
    ignore_case: bool = False


APP_SORT = Kind("app-sort", "application sort policy", "yunikorn_app_sort_policies", api.AppSortPolicy, "key")
QUEUE_SORT = Kind(
    "queue-sort", "queue sort policy", "yunikorn_queue_sort_policies", api.QueueSortPolicy, "key"
)
NODE_SORT = Kind("node-sort", "node sort policy", "yunikorn_node_sort_policies", api.NodeSortPolicy, "score")
PLACEMENT = Kind("placement", "placement rule", "yunikorn_placement_rules", api.PlacementRule, "place", True)
PREDICATE = Kind("predicate", "predicate", "yunikorn_predicates", api.Predicate, "check")
EVENT_SINK = Kind("event-sink", "event sink", "yunikorn_event_sinks", api.EventSink, "send")
RESOLVER = Kind(
    "user-groups", "user-group resolver", "yunikorn_user_group_resolvers", api.UserGroupResolver, "groups"
)
KINDS = (APP_SORT, QUEUE_SORT, NODE_SORT, PLACEMENT, PREDICATE, EVENT_SINK, RESOLVER)


@attrs.frozen
class Option:
    """An option of a plugin class: a typed attribute."""

    name: str
    type: str
    default: Any = attrs.NOTHING
    """`attrs.NOTHING` when it must be given."""


@attrs.frozen
class Offer:
    """A class that a plugin offers under a name."""

    kind: Kind
    name: str
    cls: type[Any]
    plugin: str
    """The plugin's name: the entry point's, or the module's of a default plugin."""
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        """Plugin, distribution and version, as errors name it."""
        return f"{self.name} of {describe_origin(self.plugin, self.distribution, self.version)}"

    @property
    def summary(self) -> str:
        """The first line of the class's documentation."""
        return (inspect.getdoc(self.cls) or "").partition("\n")[0] if self.cls.__doc__ else ""

    @property
    def options(self) -> tuple[Option, ...]:
        """The typed attributes that a configuration may set."""
        if not attrs.has(self.cls):
            return ()
        return tuple(
            Option(field.alias or field.name, _type_name(field.type), _default(field.default))
            for field in attrs.fields(self.cls)
            if field.init
        )


@attrs.frozen
class Broken:
    """A plugin that was left out, and why."""

    plugin: str
    distribution: str
    version: str
    reason: str

    def __str__(self) -> str:
        return f"plugin {describe_origin(self.plugin, self.distribution, self.version)}: {self.reason}"


def describe_origin(plugin: str, distribution: str, version: str) -> str:
    """`NAME (DIST VERSION)`, or the bare name when it comes from no distribution."""
    return f"{plugin} ({distribution} {version})" if distribution else plugin


class Registry:
    """All plugins that were found, by kind and name."""

    def __init__(self) -> None:
        self._pm = pluggy.PluginManager("yunikorn")
        self._pm.add_hookspecs(hookspecs)
        self._offers: dict[tuple[str, str], Offer] = {}
        self._disabled: frozenset[str] = frozenset()
        self.broken: list[Broken] = []

    @classmethod
    def load(cls, *, third_party: bool = True) -> Registry:
        """The default plugins, and those of installed third parties."""
        registry = cls()
        for module in DEFAULT_PLUGINS:
            registry._load(
                module, DISTRIBUTION, _own_version(), lambda module=module: importlib.import_module(module)
            )
        if third_party:
            for entry in sorted(
                metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)
            ):
                dist = entry.dist
                registry._load(
                    entry.name, dist.name if dist else "", dist.version if dist else "", entry.load
                )
        return registry

    def _load(self, name: str, distribution: str, version: str, load: Any) -> None:
        try:
            plugin = load()
        except (Exception, SystemExit) as error:
            self._blame(name, distribution, version, f"importing: {type(error).__name__}: {error}")
            return
        self.register(plugin, name, distribution, version)

    def register(self, plugin: object, name: str, distribution: str = "", version: str = "") -> bool:
        """Take in what `plugin` (a module or an object with hookimpls) offers, whole or not at all.

        Returns whether it was taken; if not, the reason is the last of `broken`.
        """
        if self._pm.has_plugin(name):
            self._blame(
                name, distribution, version, "registering: a plugin of this name is already registered"
            )
            return False
        try:
            self._pm.register(plugin, name)
            self._check_hooks(plugin, name)
            offers = self._collect(plugin, name, distribution, version)
        except (Exception, SystemExit) as error:
            if self._pm.has_plugin(name):
                self._pm.unregister(name=name)
            self._blame(name, distribution, version, f"registering: {type(error).__name__}: {error}")
            return False
        for offer in offers:
            self._offers[offer.kind.id, offer.name] = offer
        return True

    def unregister(self, name: str) -> None:
        """Forget the plugin called `name` and all that it offered."""
        self._pm.unregister(name=name)
        self._offers = {key: offer for key, offer in self._offers.items() if offer.plugin != name}

    def _blame(self, name: str, distribution: str, version: str, reason: str) -> None:
        self.broken.append(Broken(name, distribution, version, " ".join(reason.split())))

    def _check_hooks(self, plugin: object, name: str) -> None:
        known = [kind.hook for kind in KINDS]
        for caller in self._pm.get_hookcallers(plugin) or ():
            if not caller.has_spec():
                raise TypeError(f"unknown hook '{caller.name}'{suggest(caller.name, known)}")
        for hook in known:
            function = getattr(plugin, hook, None)
            if callable(function) and self._pm.parse_hookimpl_opts(plugin, hook) is None:
                raise TypeError(f"function '{hook}' is not marked with @hookimpl")
        if not self._pm.get_hookcallers(plugin):
            raise TypeError("it implements no hook (is a function missing @hookimpl?)")

    def _collect(self, plugin: object, name: str, distribution: str, version: str) -> list[Offer]:
        offers: list[Offer] = []
        for kind in KINDS:
            for impl in getattr(self._pm.hook, kind.hook).get_hookimpls():
                if impl.plugin is plugin:
                    for cls in impl.function():
                        offer = Offer(kind, _checked_name(kind, cls), cls, name, distribution, version)
                        self._refuse_taken(offer, offers)
                        offers.append(offer)
        return offers

    def _refuse_taken(self, offer: Offer, others: Iterable[Offer]) -> None:
        taken = self._offers.get((offer.kind.id, offer.name))
        for other in (
            [taken] if taken else [o for o in others if (o.kind, o.name) == (offer.kind, offer.name)]
        ):
            origin = describe_origin(other.plugin, other.distribution, other.version)
            raise ValueError(f"{offer.kind.title} '{offer.name}' is already offered by {origin}")

    # -- looking up ---------------------------------------------------------------------------------

    def without(self, names: Iterable[str]) -> Registry:
        """The same plugins less those called `names` (plugin names or the names they offer)."""
        other = Registry.__new__(Registry)
        other._pm, other.broken, other._offers = self._pm, self.broken, self._offers
        other._disabled = self._disabled | frozenset(names)
        return other

    def names_to_disable(self) -> list[str]:
        """Every name that `without` understands, sorted."""
        return sorted({offer.plugin for offer in self._offers.values()} | {name for _, name in self._offers})

    def offers(self, kind: Kind | None = None) -> list[Offer]:
        """What is offered and not disabled, in order of registration; of one kind if given."""
        return [
            offer
            for offer in self._offers.values()
            if (kind is None or offer.kind is kind) and not self._is_disabled(offer)
        ]

    def _is_disabled(self, offer: Offer) -> bool:
        return offer.name in self._disabled or offer.plugin in self._disabled

    def find(self, kind: Kind, name: str) -> Offer:
        """The offer called `name`; raises `UnknownPlugin` with suggestion, known names, and what failed."""
        offer = self._offers.get((kind.id, name.lower() if kind.ignore_case else name))
        if offer is None:
            raise UnknownPlugin(self._unknown(kind, name))
        if self._is_disabled(offer):
            raise UnknownPlugin(f"{kind.title} '{name}' is disabled by plugins.disable")
        return offer

    def _unknown(self, kind: Kind, name: str) -> str:
        known = sorted(offer.name for offer in self.offers(kind))
        text = (
            f"no {kind.title} is called '{name}'{suggest(name, known)}; known: {', '.join(known) or 'none'}"
        )
        if self.broken:
            text += "; not loaded: " + "; ".join(str(broken) for broken in self.broken)
        return text

    def make(self, kind: Kind, name: str, options: Mapping[str, Any], *, comma_lists: bool = False) -> Any:
        """An object of the class called `name`, with its options structured from text.

        `comma_lists` splits a text where a list is wanted (options in queue properties). Raises
        `UnknownPlugin`, `OptionError` (paths are below the options), or `PluginError` when the class
        itself refuses to be made with an unexpected exception.
        """
        offer = self.find(kind, name)
        if not attrs.has(offer.cls):
            if options:
                raise OptionError((f".{key}", f"{offer.origin} takes no options") for key in options)
            return self._construct(offer, {})
        return self._construct(offer, dict(options), comma_lists)

    def _construct(self, offer: Offer, options: dict[str, Any], comma_lists: bool = False) -> Any:
        try:
            if not attrs.has(offer.cls):
                return offer.cls()
            return make_converter(comma_lists=comma_lists).structure(options, offer.cls)
        except Exception as error:
            found = [(path, message) for path, message in faults(error)]
            if attrs.has(offer.cls) and all(_is_expected(inner) for inner in _leaves(error)):
                raise OptionError(
                    (path, self._explain(offer, path, message)) for path, message in found
                ) from error
            raise PluginError(offer.origin, "making it", error) from error

    def _explain(self, offer: Offer, path: str, message: str) -> str:
        if message == "unknown key":
            known = [option.name for option in offer.options]
            asked = path.lstrip(".")
            message = f"unknown option '{asked}'{suggest(asked, known)}; known: {', '.join(known) or 'none'}"
        return f"{offer.kind.title} {offer.origin}: {message}"


def suggest(name: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` when something known is close, else nothing."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return f", did you mean '{close[0]}'?" if close else ""


def _checked_name(kind: Kind, cls: Any) -> str:
    if not isinstance(cls, type) or not issubclass(cls, kind.base):
        raise TypeError(f"{kind.hook} returned {cls!r}, which is not a subclass of {kind.base.__name__}")
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"{cls.__qualname__} has no name: set the class attribute 'name' to a text")
    own = getattr(cls, kind.method, None)
    if own is None or own is getattr(kind.base, kind.method, None):
        raise TypeError(f"{cls.__qualname__} lacks the method '{kind.method}'")
    return name.lower() if kind.ignore_case else name


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _is_expected(error: BaseException) -> bool:
    import cattrs

    return isinstance(
        error,
        (ValueError, TypeError, KeyError, cattrs.BaseValidationError, cattrs.StructureHandlerNotFoundError),
    ) or type(error).__module__.startswith("cattrs")


def _type_name(annotation: Any) -> str:
    if annotation is None:
        return "any"
    text = (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", "")
        if not hasattr(annotation, "__args__")
        else ""
    )
    return text or str(annotation).replace("typing.", "")


def _default(default: Any) -> Any:
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default.factory() if not default.takes_self else attrs.NOTHING
    return default


def _own_version() -> str:
    from yunikorn import __version__

    return __version__
