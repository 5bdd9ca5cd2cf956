"""Results of one variant of a comparison."""

from __future__ import annotations

import attrs

from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.variants import VariantSetting


@attrs.frozen
class Variant:
    """A configuration variant and its results, one per seed."""

    name: str
    results: list[FullReport]
    settings: tuple[VariantSetting, ...] = ()
    """Settings that have changed its configuration; empty for finished folders."""
    file: str = ""
    """Path of the configuration, if the variant was simulated by this comparison."""
