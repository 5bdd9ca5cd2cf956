"""Benchmarks of the scheduler: `python -m benchmarks` in a checkout; see README.md in this folder."""
