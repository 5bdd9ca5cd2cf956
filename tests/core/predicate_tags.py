"""Tags and attributes that the predicates of the tests read."""

ZONE, DISK, SHY = "zone", "disk", "shy"
