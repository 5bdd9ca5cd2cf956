"""`python -m benchmarks` measures the checkout, `PYTHON benchmarks` what is installed for that Python."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Called by its folder: that is no place to import from, and the checkout only where nothing is installed.
    folder = Path(sys.path.pop(0)).resolve()
    sys.path.append(str(folder.parent))

from benchmarks.command import main

if __name__ == "__main__":
    main()
