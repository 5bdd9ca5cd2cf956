"""What pytest loads where this package is installed: the fixture `scheduler`.

Every run of pytest in such an environment imports this file, so that it imports as little as can be: what
a test needs is imported when it asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from yunikorn.testing import MakeScheduler


@pytest.fixture
def scheduler() -> Iterator[MakeScheduler]:
    """Makes clusters with a real scheduler: `scheduler(YAML, node("n1", vcore=4), plugins=[Mine])`.

    A test in which a plugin does what it must not fails at its end, whatever it asserts, unless the cluster
    was made with `faults="expected"`.
    """
    from yunikorn.testing import Clusters

    clusters = Clusters()
    yield clusters
    clusters.close()
