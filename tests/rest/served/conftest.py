"""Fixtures of tests of REST in a service, which are those of the service."""

from __future__ import annotations

from tests.service.conftest import config, start

__all__ = ["config", "start"]
