"""Entry point of `python -m yunikorn`, the same command line as `yunikorn`."""

from __future__ import annotations

import sys

from yunikorn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
