"""The scheduler interface in process: the calls of a resource manager, and its callback."""
