"""Reports of what a history database has: usage, waits, fairness, preemption and waste."""
