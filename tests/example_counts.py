"""Number of random examples of a test: few by default, for more of the same.

`YUNIKORN_TEST_EXAMPLES=4` makes all of them four times as many. To look for new ones as well:
`--hypothesis-profile=explore`.
"""

from __future__ import annotations

import os

FACTOR = float(os.environ.get("YUNIKORN_TEST_EXAMPLES", "1"))


def examples(usual: int) -> int:
    """Return the number of examples of this run, where `usual` is that of other runs."""
    return max(round(usual * FACTOR), 1)
