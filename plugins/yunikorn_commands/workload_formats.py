"""Marks of the formats of workloads, by which commands recognise files; `yunikorn_lab` reads them."""

from __future__ import annotations

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu")
"""Columns of a list of nodes of the openb traces."""
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
"""Columns of a list of pods of the openb traces."""


HISTORY = b'{"history":['
"""Beginning of the content that stands for a history, which is no file to read."""


def is_history(content: bytes) -> bool:
    """Return True for the content that stands for a history."""
    return content.startswith(HISTORY)


def is_batsim(content: bytes) -> bool:
    """Return True for the content of a JSON object with jobs and profiles."""
    return content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and all(
        key in content for key in (b'"jobs"', b'"profiles"')
    )


def delimiter_of(content: bytes) -> str:
    """Return the character between the names of a header with `JobID`; empty if the first line is none."""
    line = content.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0][:2000].decode(errors="replace").strip()
    for delimiter in "|;\t":
        names = line.split(delimiter)
        if len(names) > 1 and ("JobID" in names or "JobIDRaw" in names):
            return delimiter
    return ""


def is_slurm(content: bytes) -> bool:
    """Return True for output of `sacct`, also in a layout that cannot be read."""
    start = content.lstrip()[:4000]
    is_json = start.startswith(b"{") and b'"jobs"' in content and b'"profiles"' not in content
    has_header = b"JobID" in start.partition(b"\n")[0]
    return bool(delimiter_of(content)) or has_header or (is_json and b"lurm" in content)
