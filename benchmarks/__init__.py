"""How fast the scheduler decides: `python -m benchmarks`, from a checkout. See README.md beside this file."""
