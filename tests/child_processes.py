"""Settings of pytest in child processes of tests."""

from __future__ import annotations

PYTEST_ENVIRONMENT = {"PYTEST_ADDOPTS": "-p no:schemathesis"}
"""Environment variables of processes that may run pytest.

The plugin, which only tests of the REST interface use, takes a second to import.
"""
