"""Snapshots of everything that decides, from which a scheduler goes on elsewhere."""
