"""Codecs of amounts and preemption policies, for both layouts of the wire, which agree here.

Amounts repeat, since thousands of asks share a handful of sizes. Both directions cache the most recent
amounts, which makes a batch of asks cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from yunikorn.interface.messages import PreemptionPolicy
from yunikorn.resources import NOTHING, Resource
from yunikorn.wire.generated import si_v0_11_pb2 as v0_11

REMEMBERED = 4096
LONGEST = 512
"""Maximum encoded bytes of a cached amount: longer amounts are rare, and might be sent to fill the memory."""


class WireAmount(Protocol):
    """A `Resource` of either layout."""

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:
        """Return the encoded bytes, which are the same in both layouts."""
        ...

    def MergeFromString(self, serialized: bytes) -> int:
        """Merge encoded bytes into this message."""
        ...


class WirePolicy(Protocol):
    """A `PreemptionPolicy` of either layout."""

    allowPreemptSelf: bool
    allowPreemptOther: bool

    def SetInParent(self) -> None:
        """Mark the field as present, even if it is empty."""
        ...


def from_amount(message: WireAmount) -> Resource:
    """Decode an amount; a missing or empty one is `NOTHING`."""
    serialized = message.SerializeToString()
    if not serialized:
        return NOTHING
    return _remembered(serialized) if len(serialized) <= LONGEST else _parse(serialized)


def _parse(serialized: bytes) -> Resource:
    resources = v0_11.Resource.FromString(serialized).resources
    return Resource({name: resources[name].value for name in resources})


_remembered = lru_cache(REMEMBERED)(_parse)


def fill_amount(amount: Mapping[str, int], message: WireAmount) -> None:
    """Encode an amount; raise `ValueError` for a value that is not a 64-bit integer."""
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
    """Decode a preemption policy."""
    return PreemptionPolicy(message.allowPreemptSelf, message.allowPreemptOther)


def fill_policy(policy: PreemptionPolicy, message: WirePolicy) -> None:
    """Encode a preemption policy; a message with neither field set forbids all preemption."""
    message.SetInParent()
    message.allowPreemptSelf = policy.allow_preempt_self
    message.allowPreemptOther = policy.allow_preempt_other
