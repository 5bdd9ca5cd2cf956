"""Rate limit of requests: a token bucket on the clock of the event loop."""

from __future__ import annotations

import asyncio


class RateLimit:
    """Permits `rate` operations per second, and `burst` at once after a pause; a rate of 0 is no limit."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = max(burst, 1.0)
        self._tokens = self._burst
        self._filled = 0.0
        """Time of the loop when `_tokens` was computed; tokens are negative while callers wait."""

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now

    def try_acquire(self) -> bool:
        """Take a permit if one is available at once."""
        if self._rate <= 0:
            return True
        self._fill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def acquire(self) -> None:
        """Wait for a permit; callers are served in the order of their calls."""
        if self._rate <= 0:
            return
        self._fill()
        self._tokens -= 1.0
        if self._tokens < 0.0:
            try:
                await asyncio.sleep(-self._tokens / self._rate)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise
