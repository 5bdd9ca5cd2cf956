"""Settings of pytest in child processes of tests."""

from __future__ import annotations

WITH_HYPOTHESIS = "-p no:schemathesis"
"""Options of a process whose tests use options of hypothesis."""
PYTEST_ENVIRONMENT = {"PYTEST_ADDOPTS": f"{WITH_HYPOTHESIS} -p no:hypothesispytest"}
"""Environment variables of processes that may run pytest.

Only tests of the REST interface use the first plugin, which takes a second to import; the second takes half
of the time of a process that runs a small file.
"""
