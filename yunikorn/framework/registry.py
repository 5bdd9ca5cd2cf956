"""Registry of plugins: discovery, validation, and construction of plugin objects.

A `Registry` is a plain value without global state. Default plugins are registered first, in the fixed
order of `DEFAULT_PLUGINS`, then third-party plugins from the entry-point group `yunikorn`. A plugin that
cannot be used is left out as a whole and listed in `broken`. A configuration that names such a plugin gets
the reason; all other configurations are not affected.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

import attrs
import cattrs
import pluggy

from yunikorn import __version__
from yunikorn.containment import contained, describe_error, entries_of, safe_repr
from yunikorn.errors import DisabledPlugin, UnknownPlugin
from yunikorn.framework.creation import create
from yunikorn.framework.defaults import DEFAULT_PLUGINS, PendingDefaults, import_default
from yunikorn.framework.hook_manager import plugin_manager
from yunikorn.framework.installed import InstalledPlugin, PendingPlugins
from yunikorn.framework.kinds import ALL_KINDS, KINDS, PluginKind
from yunikorn.framework.nested_policies import NestedOptions
from yunikorn.framework.offers import (
    Broken,
    InvalidOffer,
    Offer,
    check_class,
    describe_origin,
    type_name,
)
from yunikorn.framework.options import has_text_form, make_converter
from yunikorn.framework.plugin_code import NO_CODE, CodeSource, LoadedPlugin
from yunikorn.text import listed, suggest

DISTRIBUTION = "yunikorn"


class PluginCounter(Protocol):
    """Counter of the calls of plugins."""

    @property
    def chain(self) -> type[Any]:
        """Class to use instead of `PredicateChain`."""

    def count(self, plugin: Any, kind: PluginKind, origin: str) -> None:
        """Count the calls of an object from now on, if its class permits that."""


class Registry:
    """Plugins by kind and name."""

    def __init__(self) -> None:
        self._pm = plugin_manager()
        self._beneath: Registry | None = None
        """Registry that this one extends, or None."""
        self._below: tuple[Registry, ...] = ()
        """Registries whose offers come before those of this one."""
        self._offers: dict[tuple[str, str], tuple[Offer, ...]] = {}
        """Offers registered here, by kind and name, in the order of registration."""
        self._broken: list[Broken] = []
        self._defaults = PendingDefaults({}, self._load_default)
        self.installed = PendingPlugins()
        """Installed plugins, which are imported when an offer is looked up."""
        self._disabled: frozenset[str] = frozenset()
        self._overriding: Mapping[tuple[str, str], Offer] = {}
        """Offers that a configuration uses instead of others of the same name, by kind and name."""
        self.code: CodeSource = NO_CODE
        """Plugins that a configuration may load; see `permitting`."""
        self.stopwatch: Callable[[], float] | None = None
        """Stopwatch for imports (s); None if they are not measured."""
        self._plain = make_converter()
        self._comma = make_converter(comma_lists=True)
        self.statistics: PluginCounter | None = None
        """Statistics of the plugin objects in use; see `counting`."""

    @classmethod
    def load(
        cls,
        *,
        third_party: bool = True,
        only: Collection[str] | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> Registry:
        """Return a registry of the default plugins and the installed third-party plugins.

        Default plugins are imported at the first look-up of their kind, third-party plugins at the first
        look-up of any kind, except those that the look-up has disabled.
        `only` has the names of the plugins or distributions to use, or is None for all; raises `UsageError`
        for a name that is not installed. With a `stopwatch` (seconds), slow imports are logged.
        """
        registry = cls()
        registry.stopwatch = stopwatch
        registry._defaults = PendingDefaults(DEFAULT_PLUGINS, registry._load_default)
        if third_party:
            registry.installed = PendingPlugins.found(only, registry._load, stopwatch)
        return registry

    def _load_default(self, module: str) -> None:
        default = InstalledPlugin(module, DISTRIBUTION, __version__, partial(import_default, module))
        self._load(default, None, checked=False)

    def _load(
        self, one: InstalledPlugin, stopwatch: Callable[[], float] | None, *, checked: bool = True
    ) -> None:
        try:
            plugin = one.load_timed(stopwatch)
        except contained() as error:
            self._blame(one.name, one.distribution, one.version, f"importing: {describe_error(error)}")
            return
        self.register(plugin, one.name, one.distribution, one.version, checked=checked)

    @property
    def broken(self) -> list[Broken]:
        """Plugins that were left out and are not disabled."""
        self._import_pending()
        found = [broken for registry in (*self._below, self) for broken in registry._broken]
        return [broken for broken in found if broken.plugin not in self._disabled]

    def import_defaults(self) -> None:
        """Import all default plugins now instead of at the first look-up of their kinds."""
        self._defaults.load()

    def _import_pending(self, kind_id: str = "") -> None:
        """Import the default plugins of a kind, or all, and the installed plugins that are not disabled."""
        self._defaults.load(kind_id)
        self.installed.load(self._disabled)

    # -- registration -------------------------------------------------------------------------------

    def register(
        self, plugin: object, name: str, distribution: str = "", version: str = "", *, checked: bool = True
    ) -> bool:
        """Register all classes that `plugin`, a module or an object with hookimpls, offers, or none of them.

        Returns False if the plugin is not usable; the reason is then the last entry of `broken`. The classes
        of default plugins need not be `checked` at each start, because tests check them.
        """
        if checked:
            # Names and order do not depend on what was looked up before.
            self._defaults.load()
        key = name
        if distribution and self.has_plugin(name) and self._beneath is None:
            key = f"{name}@{distribution}"
        taken = self._pm.get_plugin(key)
        try:
            if self.has_plugin(key):
                raise InvalidOffer("a plugin of this name is already registered")
            if self._pm.is_registered(plugin):
                raise InvalidOffer(f"the plugin is already registered as '{self._pm.get_name(plugin)}'")
            self._pm.register(plugin, key)
            self._check_hooks(plugin)
            offers = self._collect(plugin, name, distribution, version, checked)
        except contained() as error:
            if taken is None and self._pm.has_plugin(key):
                self._pm.unregister(name=key)
            what = str(error) if type(error) is InvalidOffer else describe_error(error)
            self._blame(name, distribution, version, f"registering: {what}")
            return False
        for offer in offers:
            place = offer.kind.id, offer.name
            self._offers[place] = (*self._offers.get(place, ()), offer)
        return True

    def has_plugin(self, name: str) -> bool:
        """Return True if a plugin of this name is registered, here or in the extended registry."""
        return self._pm.has_plugin(name) or (self._beneath is not None and self._beneath.has_plugin(name))

    def unregister(self, name: str) -> None:
        """Remove a plugin and its classes; `name` must be registered in this registry."""
        self._pm.unregister(name=name)
        kept = {
            key: tuple(offer for offer in offers if offer.plugin != name)
            for key, offers in self._offers.items()
        }
        self._offers = {key: offers for key, offers in kept.items() if offers}

    def _blame(self, name: str, distribution: str, version: str, reason: str) -> None:
        self._broken.append(Broken(name, distribution, version, " ".join(reason.split())))

    def _check_hooks(self, plugin: object) -> None:
        known = [kind.hook for kind in ALL_KINDS]
        callers = self._pm.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                raise InvalidOffer(f"unknown hook '{caller.name}'{suggest(caller.name, known)}")
            for impl in caller.get_hookimpls():
                if impl.plugin is plugin:
                    _refuse_marks(caller.name, impl)
        marked = {caller.name for caller in callers}
        for name in sorted(vars(plugin)) if hasattr(plugin, "__dict__") else ():
            if name.startswith("yunikorn_") and name not in marked and callable(getattr(plugin, name)):
                hint = "" if name in known else suggest(name, known)
                raise InvalidOffer(f"function '{name}' is not marked with @hookimpl{hint}")
        if not marked:
            raise InvalidOffer("it implements no hook; write a function such as yunikorn_placement_rules")

    def _collect(
        self, plugin: object, name: str, distribution: str, version: str, checked: bool
    ) -> list[Offer]:
        offers: list[Offer] = []
        for kind in ALL_KINDS:
            for impl in getattr(self._pm.hook, kind.hook).get_hookimpls():
                if impl.plugin is plugin:
                    for cls in _classes(kind, impl.function()):
                        known = check_class(kind, cls) if checked else kind.normal(cls.name)
                        offer = Offer(kind, known, cls, name, distribution, version)
                        if checked:
                            self._check_types(offer)
                        self._refuse_taken(offer, offers)
                        offers.append(offer)
        return offers

    def _check_types(self, offer: Offer) -> None:
        fields: Iterable[Any] = ()
        if attrs.has(offer.cls):
            fields = attrs.fields(offer.cls)
        elif dataclasses.is_dataclass(offer.cls):
            fields = dataclasses.fields(offer.cls)
        for field in fields:
            try:
                if field.init and field.type is not None:
                    self._plain.get_structure_hook(field.type)
            except cattrs.StructureHandlerNotFoundError:
                raise InvalidOffer(
                    f"the option '{field.name}' of {offer.cls.__qualname__} has the type "
                    f"{type_name(field.type)}, which no configuration can give"
                ) from None
            if offer.kind.in_properties and field.init and not has_text_form(field.type):
                raise InvalidOffer(
                    f"the option '{field.name}' of {offer.cls.__qualname__} has the type "
                    f"{type_name(field.type)}, but options of this kind of plugin ({offer.kind.title}) are "
                    "texts: use a scalar, a list of scalars or a mapping of scalars"
                )

    def _refuse_taken(self, offer: Offer, siblings: list[Offer]) -> None:
        """Refuse a second offer of the same plugin, and one of a resource manager that others have already.

        Offers of different distributions may share a name: a configuration that uses the name chooses.
        """
        key = (offer.kind.id, offer.name)
        others = [one for one in siblings if (one.kind.id, one.name) == key]
        if self._beneath is not None:
            others += self._offers_of(*key)
        if others:
            origin = describe_origin(others[0].plugin, others[0].distribution, others[0].version)
            raise InvalidOffer(f"{offer.kind.title} '{offer.name}' is already offered by {origin}")

    # -- look-up ------------------------------------------------------------------------------------

    def extended(self) -> Registry:
        """Return a registry with the same plugins, to which a resource manager's own plugins can be added."""
        other = self._above()
        other._beneath = self
        return other

    def _above(self) -> Registry:
        """Return a registry whose own plugins come after those of this one."""
        other = Registry.__new__(Registry)
        other.__dict__.update(self.__dict__)
        other._below = (*self._below, self)
        other._pm, other._offers, other._broken = plugin_manager(), {}, []
        return other

    @property
    def has_own_plugins(self) -> bool:
        """True if a resource manager has added plugins to this registry."""
        return self._beneath is not None and bool(self._pm.get_plugins())

    def own_plugin(self, name: str) -> object | None:
        """Return the plugin registered here under `name`; the extended registry is not searched."""
        found: object | None = self._pm.get_plugin(name)
        return found

    def own_offers(self, kind: PluginKind) -> list[Offer]:
        """Return the offers that the extended registry does not have; empty if there is no such registry."""
        if not self.has_own_plugins:
            # Most resource managers add none: then the plugins of this kind need not be imported.
            return []
        return [offer for offer in self.offers(kind) if self._pm.has_plugin(offer.plugin)]

    def without(self, names: Iterable[str]) -> Registry:
        """Return a copy without the plugins called `names` (see `names_to_disable`)."""
        other = Registry.__new__(Registry)
        other.__dict__.update(self.__dict__)
        other._disabled = self._disabled | frozenset(names)
        return other

    def permitting(self, code: CodeSource) -> Registry:
        """Return a copy for configurations that may load these plugins."""
        other = self.without(())
        other.code = code
        return other

    def configured(
        self, disabled: Iterable[str], overriding: Iterable[str] = (), loaded: Iterable[LoadedPlugin] = ()
    ) -> Registry:
        """Return a copy as a configuration wants it: with these plugins, and without the disabled ones.

        `overriding` are references such as `fair@my-plugins`; raises `UnknownPlugin` for a wrong one.
        """
        other = self.without(disabled)
        plugins = list(loaded)
        if plugins:
            top = other._above()
            top._beneath = None
            for one in plugins:
                if not top.register(one.module, one.name):
                    raise UnknownPlugin(str(top._broken[-1]))
            other = top.without(())
            other._pm, other._beneath = self._pm, self._beneath
        chosen: dict[tuple[str, str], Offer] = {}
        for text in overriding:
            for offer in other.find_all(text):
                chosen[offer.kind.id, offer.name] = offer
        other._overriding = chosen
        return other

    def imported(self) -> Registry:
        """Return a copy with the plugins that are imported so far, disabled ones included; imports none."""
        other = self.without(())
        other._disabled, other.installed = frozenset(), PendingPlugins()
        return other

    def counting(self, statistics: PluginCounter) -> Registry:
        """Return a registry with the same plugins; `statistics` counts the objects that a scheduler uses."""
        other = self.without(())
        other.statistics = statistics
        return other

    def names_to_disable(self) -> list[str]:
        """Return all names that `without` accepts, sorted.

        A name is that of a plugin (`yunikorn_plugins.events`), of an offer of any kind (`fair`), or of an
        offer of one kind (`app-sort:fair`), the latter two also with a source (`fair@my-plugins`). Broken
        plugins are included, so that their reports can be silenced.
        """
        names = {broken.plugin for broken in self.broken}
        for offer in self._all():
            names |= _disabling(offer)
        return sorted(names | self.installed.names)

    def _all(self, kind_id: str = "") -> list[Offer]:
        """Return all offers of a kind, or of all kinds: the default plugins first."""
        self._import_pending(kind_id)
        found = [
            offer
            for registry in (*self._below, self)
            for (offered, _), offers in list(registry._offers.items())
            if not kind_id or offered == kind_id
            for offer in offers
        ]
        return sorted(found, key=_place)

    def _offers_of(self, kind_id: str, name: str) -> tuple[Offer, ...]:
        self._import_pending(kind_id)
        found: tuple[Offer, ...] = ()
        for registry in (*self._below, self):
            found += registry._offers.get((kind_id, name), ())
        return found

    def offers(self, kind: PluginKind | None = None) -> list[Offer]:
        """Return the offers that are not disabled, in order of registration; of one kind if given."""
        return [offer for offer in self._all("" if kind is None else kind.id) if not self._is_disabled(offer)]

    def _is_disabled(self, offer: Offer) -> bool:
        return bool(self._disabled) and not self._disabled.isdisjoint(_disabling(offer))

    def find(self, kind: PluginKind, name: str) -> Offer:
        """Return the offer called `name`, or `NAME@SOURCE` with a distribution or plugin as the source.

        Several distributions may offer one name. Then the name alone means the offer that the configuration
        has chosen by `plugins.override`, or else the default plugin. Raises `UnknownPlugin` if there is no
        such offer, or if the name is ambiguous, and `DisabledPlugin` if the offer is disabled.
        """
        plain, _, source = name.partition("@")
        offers = self._offers_of(kind.id, kind.normal(plain))
        if not offers:
            raise UnknownPlugin(self._unknown(kind, plain))
        fitting = [offer for offer in offers if not source or _is_from(offer, source)]
        if not fitting:
            raise UnknownPlugin(
                f"{kind.title} '{plain}' is not offered by '{source}', only by {_sources(offers)}"
            )
        enabled = [offer for offer in fitting if not self._is_disabled(offer)]
        if not enabled:
            raise DisabledPlugin(f"{kind.title} '{name}' is disabled by plugins.disable")
        chosen = self._overriding.get((kind.id, kind.normal(plain)))
        if not source and chosen is not None and chosen in enabled:
            return chosen
        defaults = [offer for offer in enabled if offer.distribution == DISTRIBUTION]
        found = defaults or enabled
        if any(offer.cls is not found[0].cls for offer in found):
            written = " or ".join(_reference(offer) for offer in enabled)
            raise UnknownPlugin(
                f"{kind.title} '{name}' is offered by {_sources(enabled)}: write {written}, or disable one"
            )
        return found[0]

    def find_all(self, text: str) -> list[Offer]:
        """Return the offers that an entry of `plugins.override` means: `NAME@SOURCE` or `KIND:NAME@SOURCE`.

        Raises `UnknownPlugin` if there is none.
        """
        kind_id, colon, rest = text.rpartition(":")
        plain, _, source = rest.partition("@")
        if not plain or not source:
            raise UnknownPlugin(f"expected NAME@DISTRIBUTION or KIND:NAME@DISTRIBUTION, got '{text}'")
        found = [
            self.find(kind, rest)
            for kind in KINDS
            if (not colon or kind.id == kind_id)
            and any(_is_from(offer, source) for offer in self._offers_of(kind.id, kind.normal(plain)))
        ]
        if not found:
            raise UnknownPlugin(f"no plugin of '{source}' is called '{rest.partition('@')[0]}'")
        return found

    def reference(self, offer: Offer) -> str:
        """Return how a configuration names an offer: by its name, or with its source if that is ambiguous."""
        try:
            return offer.name if self.find(offer.kind, offer.name) is offer else _reference(offer)
        except UnknownPlugin:
            return _reference(offer)

    def _unknown(self, kind: PluginKind, name: str) -> str:
        if name in kind.core_names:
            return f"'{name}' is part of the core, not a {kind.title} that a plugin offers"
        known = sorted({*kind.core_names, *(offer.name for offer in self.offers(kind))})
        text = f"no {kind.title} is called '{name}'{suggest(name, known)}; known: {listed(known)}"
        elsewhere = [offer.kind.title for offer in self.offers() if offer.name == name]
        if elsewhere:
            text += f"; '{name}' is the name of another kind: {listed(elsewhere)}"
        if self.broken:
            shown = "; ".join(str(broken) for broken in self.broken[:MOST_BROKEN])
            more = len(self.broken) - MOST_BROKEN
            text += f"; not loaded: {shown}" + (f"; and {more} more" if more > 0 else "")
        return text

    # -- construction -------------------------------------------------------------------------------

    def make(
        self, kind: PluginKind, name: str, options: Mapping[str, Any], *, comma_lists: bool = False
    ) -> Any:
        """Return a new object of the class called `name`, with options converted from text.

        `comma_lists` reads lists and mappings from texts, as in queue properties. Raises
        `UnknownPlugin`, `OptionError` (with paths below the options), or `PluginError` if the class raises
        an unexpected exception.
        """
        offer = self.find(kind, name)
        parts = NestedOptions.of(offer, options)
        policies = parts.make(partial(self.make_counted, kind, comma_lists=comma_lists))
        return create(offer, parts.own, self._comma if comma_lists else self._plain, policies)

    def make_counted(
        self, kind: PluginKind, name: str, options: Mapping[str, Any], *, comma_lists: bool = False
    ) -> Any:
        """Return a new object as `make`, whose calls are counted if the registry counts."""
        made = self.make(kind, name, options, comma_lists=comma_lists)
        if self.statistics is not None:
            self.statistics.count(made, kind, self.find(kind, name).origin)
        return made

    def classes_of(self, kind: PluginKind, name: str, options: Mapping[str, Any]) -> tuple[type[Any], ...]:
        """Return the class called `name`, and those of the policies that its options name.

        Raises as `make`.
        """
        offer = self.find(kind, name)
        found = [offer.cls]
        for entries in NestedOptions.of(offer, options).nested.values():
            for policy, further in entries.values():
                found += self.classes_of(kind, policy, further)
        return tuple(found)


MOST_BROKEN = 5
"""Largest number of plugins that were not loaded in a message."""
MARKS = ("wrapper", "hookwrapper", "tryfirst", "trylast", "optionalhook")
"""Options of `@hookimpl` without effect here, because hooks are called for one plugin at a time."""


def _refuse_marks(hook: str, impl: pluggy.HookImpl) -> None:
    given = [mark for mark in MARKS if getattr(impl, mark)]
    if given:
        raise InvalidOffer(
            f"{hook} is marked with {' and '.join(given)}, which {'is' if len(given) == 1 else 'are'}"
            " not supported: each hook is called separately, in the order of registration;"
            " write @hookimpl alone"
        )


def _classes(kind: PluginKind, answer: object) -> Iterable[Any]:
    if isinstance(answer, (set, frozenset)):
        # The order of a set depends on memory addresses.
        return sorted(entries_of(answer), key=lambda cls: (str(getattr(cls, "name", "")), repr(cls)))
    if not isinstance(answer, (list, tuple)):
        raise InvalidOffer(f"{kind.hook} returned {safe_repr(answer)}; it must return a list of classes")
    return entries_of(answer)


_PLACES = {module: place for place, module in enumerate(DEFAULT_PLUGINS)}


def _place(offer: Offer) -> int:
    """Return the place of a default plugin, however late it was imported; others follow in their order."""
    return _PLACES.get(offer.plugin, len(_PLACES))


def _disabling(offer: Offer) -> set[str]:
    names = {offer.plugin, offer.name, f"{offer.kind.id}:{offer.name}"}
    if offer.distribution != DISTRIBUTION:
        names |= {_reference(offer), f"{offer.kind.id}:{_reference(offer)}"}
    return names


def _is_from(offer: Offer, source: str) -> bool:
    return source == offer.plugin or _plain_name(source) == _plain_name(offer.distribution)


def _plain_name(distribution: str) -> str:
    # Package indexes do not distinguish these names.
    return re.sub("[-_.]+", "-", distribution).lower()


def _reference(offer: Offer) -> str:
    return f"{offer.name}@{offer.distribution or offer.plugin}"


def _sources(offers: Iterable[Offer]) -> str:
    return " and ".join(describe_origin(offer.plugin, offer.distribution, offer.version) for offer in offers)
