"""Short configurations for tests: keys that a test does not set have defaults."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from yunikorn.config.load import Outcome, check_config
from yunikorn.config.queues_yaml import PartitionConfig, QueueConfig, SchedulerConfig
from yunikorn.framework.registry import Registry

Check = Callable[[str], Outcome]


@pytest.fixture
def check(registry: Registry) -> Check:
    """Check a whole text."""
    return lambda text: check_config(textwrap.dedent(text), registry)


@pytest.fixture
def check_partition(check: Check) -> Check:
    """Check the one partition of a configuration; without queues it has an empty list of them."""

    def run(text: str) -> Outcome:
        body = textwrap.dedent(text).strip("\n")
        if not body.startswith("queues:") and "\nqueues:" not in body:
            body += "\nqueues: []"
        return check("partitions:\n- name: default\n" + textwrap.indent(body, "  "))

    return run


@pytest.fixture
def check_queues(check_partition: Check) -> Check:
    """Check the list of queues below root."""
    return lambda text: check_partition(
        "queues:\n- name: root\n  queues:\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    )


@pytest.fixture
def config(check: Check) -> Callable[[str], SchedulerConfig]:
    """Return the configuration of a valid text."""
    return lambda text: made(check(text))


@pytest.fixture
def partition(check_partition: Check) -> Callable[[str], PartitionConfig]:
    """Return the partition of a valid text."""
    return lambda text: made(check_partition(text)).partitions[0]


@pytest.fixture
def queues(check_queues: Check) -> Callable[[str], dict[str, QueueConfig]]:
    """Return the queues of a valid text, by path."""
    return lambda text: dict(made(check_queues(text)).partitions[0].root.walk())


def made(outcome: Outcome) -> SchedulerConfig:
    """Return the configuration of a valid text; fail if there are errors."""
    assert outcome.problems == ()
    assert outcome.config is not None
    return outcome.config
