"""Foresight: when waiting work starts, and what a change would do, from snapshots run forward."""
