"""Pytest plugin of the test kit, with the fixture `scheduler`.

Every run of pytest in an environment with this package imports this module. To keep such runs fast, the
module imports other code only when a test requests the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from yunikorn_testing import MakeScheduler


@pytest.fixture
def scheduler() -> Iterator[MakeScheduler]:
    """Return a factory of clusters: `scheduler(YAML, node("n1", vcore=4), plugins=[Mine])`.

    The scheduler of a cluster is the real one. A test in which a plugin fails is reported as failed at its
    end, unless the cluster was created with `failures="expected"`.
    """
    from yunikorn_testing import Clusters

    clusters = Clusters()
    yield clusters
    clusters.close()
