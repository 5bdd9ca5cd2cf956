"""Preemption: taking capacity back from what runs (facts §9)."""
