"""The fixture under test, from the checkout: where the package is installed, pytest finds it by itself."""

from __future__ import annotations

from yunikorn.pytest_plugin import scheduler as scheduler
