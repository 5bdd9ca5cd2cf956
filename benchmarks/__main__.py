"""Entry point: `python -m benchmarks` measures the checkout, `PYTHON benchmarks` an installed scheduler."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Started as a folder, which must not be an import path; the checkout is only a fallback.
    folder = Path(sys.path.pop(0)).resolve()
    sys.path.append(str(folder.parent))

from benchmarks.command import main

if __name__ == "__main__":
    main()
