"""The fixture under test, from the checkout; with an installed package pytest finds the fixture by itself."""

from __future__ import annotations

from yunikorn_pytest import scheduler as scheduler
