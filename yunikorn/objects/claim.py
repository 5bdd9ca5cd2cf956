"""Claims: the requests of one ask class under the same limits, with a pair of bits of their own.

Nodes answer by ask class; limits of users and groups answer by owner. What queues keep of "is there
anything worth trying here?" are bits of claims, and "may anything of this claim be placed now?" is one
bit in `ClaimTable.open`, whether it is closed because no node has room or because a user has enough.

The second bit of the pair stands for the same requests of applications that have not started: they need
a place among the running applications too, and where that is full only their bit is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from yunikorn.objects.ask_class import AskClass, AskClasses

if TYPE_CHECKING:
    from yunikorn.objects.allowance import Allowance

IDLE_CLAIMS = 256
"""Claims without a waiting request that are kept for the next one, before all idle ones are dropped."""


@lru_cache(maxsize=64)
def _fresh_mask(pairs: int) -> int:
    return sum(2 << (2 * pair) for pair in range(pairs))


def fresh_part(bits: int) -> int:
    """Of these bits, those of applications that have not started."""
    return bits & _fresh_mask((bits.bit_length() // 128 + 1) * 64)


class Claim:
    """Requests of one ask class with the same owner: the limits that count for them."""

    __slots__ = ("ask_class", "asks", "bit", "bits", "insists", "over", "owner")

    def __init__(self, ask_class: AskClass, owner: tuple[Allowance, ...], bit: int, *, insists: bool) -> None:
        self.ask_class = ask_class
        self.owner = owner
        self.bit = bit
        self.bits = bit | bit << 1
        self.asks = 0
        """Waiting requests of this claim."""
        self.over = False
        """Whether a limit on resources leaves no room for it."""
        self.insists = insists
        """Whether its requests have their turn although there is no room (see `AtomicGang.insists`)."""


class ClaimTable:
    """The live claims of a partition."""

    def __init__(self, ask_classes: AskClasses) -> None:
        self.ask_classes = ask_classes
        self._free: list[int] = []
        self._used = 0
        self._claims = 0
        self._idle = 0
        self.open = 0
        """Bits of the claims of which a request may be placed now, as far as is known."""
        self.fills = 0
        """Counts how often as many applications came to run under a limit as may."""
        self.on_forget: list[Callable[[int], None]] = []
        """Called with the bits of dropped claims, before the bits serve again."""
        ask_classes.on_drop.append(self._drop)

    def of(self, ask_class: AskClass, owner: tuple[Allowance, ...], *, insists: bool = False) -> Claim:
        """The claim of requests of `ask_class` by `owner`; of those that insist on their turn, another."""
        key = (*owner, None) if insists else owner
        claim = ask_class.claims.get(key)
        if claim is None:
            if self._idle >= IDLE_CLAIMS and self._idle * 2 > self._claims:
                for one in list(self.ask_classes):
                    self._drop(one)
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << 2 * self._used
                self._used += 1
            claim = ask_class.claims[key] = Claim(ask_class, owner, bit, insists=insists)
            for allowance in owner:
                allowance.claims[bit] = claim
            self._claims += 1
            self._idle += 1
            self.weigh(claim)
        return claim

    def weigh(self, claim: Claim) -> None:
        """Open or close the bits of a claim by all that is known of it."""
        if (claim.ask_class.closed or claim.over) and not claim.insists:
            self.open &= ~claim.bits
        elif any(allowance.full for allowance in claim.owner):
            self.open = self.open & ~claim.bits | claim.bit
        else:
            self.open |= claim.bits

    def wait(self, claim: Claim) -> None:
        """One more request of this claim waits."""
        if not claim.asks:
            self._idle -= 1
            self.ask_classes.wait(claim.ask_class)
        claim.asks += 1

    def leave(self, claim: Claim) -> None:
        """One request of this claim waits no more."""
        claim.asks -= 1
        if not claim.asks:
            self._idle += 1
            self.ask_classes.leave(claim.ask_class)

    # -- nodes --------------------------------------------------------------------------------------

    def close(self, ask_class: AskClass) -> None:
        """No node has room for this ask class, until `reopen`."""
        self.ask_classes.close(ask_class)
        for claim in ask_class.claims.values():
            if not claim.insists:
                self.open &= ~claim.bits

    def reopen(self, ask_class: AskClass) -> None:
        """Some node may have room for this ask class again."""
        if ask_class.closed:
            self.ask_classes.reopen(ask_class)
            for claim in ask_class.claims.values():
                self.weigh(claim)

    # -- limits -------------------------------------------------------------------------------------

    def exceed(self, claim: Claim, allowance: Allowance) -> None:
        """A limit has no room for this claim, until `room_grew`."""
        claim.over = True
        allowance.over[claim.bit] = claim
        self.open &= ~claim.bits

    def room_grew(self, allowance: Allowance) -> None:
        """Usage under a limit fell: try again what has room now."""
        for bit, claim in list(allowance.over.items()):
            if allowance.has_room(claim.ask_class.pairs):
                del allowance.over[bit]
                claim.over = False
                self.weigh(claim)

    def count_changed(self, allowance: Allowance) -> None:
        """The number of applications that run under a limit changed."""
        full = allowance.is_full
        if full != allowance.full:
            allowance.full = full
            self.fills += full
            for claim in allowance.claims.values():
                self.weigh(claim)

    def reconsider(self) -> None:
        """Policies or limits changed: whatever was tried in vain is worth trying again."""
        for ask_class in self.ask_classes:
            self.ask_classes.reopen(ask_class)
            for claim in ask_class.claims.values():
                claim.over = False
                for allowance in claim.owner:
                    allowance.over.pop(claim.bit, None)
                self.weigh(claim)

    # -- forgetting ---------------------------------------------------------------------------------

    def _drop(self, ask_class: AskClass) -> None:
        """Drop the claims of an ask class that no request waits for."""
        gone = 0
        for key, claim in list(ask_class.claims.items()):
            if not claim.asks:
                del ask_class.claims[key]
                for allowance in claim.owner:
                    allowance.claims.pop(claim.bit, None)
                    allowance.over.pop(claim.bit, None)
                self._free.append(claim.bit)
                self._claims -= 1
                self._idle -= 1
                gone |= claim.bits
        if gone:
            self.open &= ~gone
            for forget in self.on_forget:
                forget(gone)
