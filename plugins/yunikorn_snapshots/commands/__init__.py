"""Commands of snapshots."""
