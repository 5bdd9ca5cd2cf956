"""A core in a thread of its own, and event loops in front of that thread."""
