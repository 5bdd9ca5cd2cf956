"""`python -m benchmarks`."""

from __future__ import annotations

from benchmarks.command import main

if __name__ == "__main__":
    main()
