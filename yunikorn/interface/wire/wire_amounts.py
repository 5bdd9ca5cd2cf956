"""Amounts of resources and what preemption may do, in either layout of the wire: there they are alike.

Amounts repeat: thousands of asks are of a handful of sizes. Both ways remember the last few thousand they
have translated, which is what makes a batch of asks cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from yunikorn.interface.messages import PreemptionPolicy
from yunikorn.interface.wire.generated import si_v0_11_pb2 as v0_11
from yunikorn.resources import NOTHING, Resource

REMEMBERED = 4096
LONGEST = 512
"""Bytes of an amount that is remembered: what is longer is rare, and might be meant to fill the memory."""


class WireAmount(Protocol):
    """A `Resource` of either layout."""

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:
        """Its bytes, which are the same in either."""
        ...

    def MergeFromString(self, serialized: bytes) -> int:
        """Take the content of such bytes in."""
        ...


class WirePolicy(Protocol):
    """A `PreemptionPolicy` of either layout."""

    allowPreemptSelf: bool
    allowPreemptOther: bool

    def SetInParent(self) -> None:
        """Be there even if empty."""
        ...


def from_amount(message: WireAmount) -> Resource:
    """The amount; without any entry, or not there at all, nothing."""
    serialized = message.SerializeToString()
    if not serialized:
        return NOTHING
    return _remembered(serialized) if len(serialized) <= LONGEST else _parse(serialized)


def _parse(serialized: bytes) -> Resource:
    resources = v0_11.Resource.FromString(serialized).resources
    return Resource({name: resources[name].value for name in resources})


_remembered = lru_cache(REMEMBERED)(_parse)


def fill_amount(amount: Mapping[str, int], message: WireAmount) -> None:
    """Write an amount into a message; raises `ValueError` for what is not a 64-bit integer."""
    if amount:
        serialized = _written(amount) if type(amount) is Resource else _write(amount)
        message.MergeFromString(serialized)


def _write(amount: Mapping[str, int]) -> bytes:
    message = v0_11.Resource()
    resources = message.resources
    for name, value in amount.items():
        resources[name].value = value
    return message.SerializeToString(deterministic=True)


@lru_cache(REMEMBERED)
def _written(amount: Resource) -> bytes:
    return _write(amount)


def from_policy(message: WirePolicy) -> PreemptionPolicy:
    """What preemption may do."""
    return PreemptionPolicy(message.allowPreemptSelf, message.allowPreemptOther)


def fill_policy(policy: PreemptionPolicy, message: WirePolicy) -> None:
    """Write what preemption may do; a message in which neither is set says that it may do nothing."""
    message.SetInParent()
    message.allowPreemptSelf = policy.allow_preempt_self
    message.allowPreemptOther = policy.allow_preempt_other
