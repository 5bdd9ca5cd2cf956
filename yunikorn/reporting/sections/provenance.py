"""Section of the provenance of a run: the inputs, options and versions that it is a result of."""

from __future__ import annotations

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Section


def section(result: FullReport) -> Section | None:
    """Return the provenance; None if it is unknown."""
    found = result.provenance
    if found is None:
        return None
    details = [("configuration", found.config_text)]
    return Section("provenance", "Provenance", facts=found.rows(), details=details)
