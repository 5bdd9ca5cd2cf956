"""History of applications, allocations, queues and nodes in a database, written beside a running core."""
