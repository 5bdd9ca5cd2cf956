"""Model: the objects that a resource manager reports, and the queues. No policy, no order of decisions."""
