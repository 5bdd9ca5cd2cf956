"""Preemption: reclaims capacity from running allocations."""
