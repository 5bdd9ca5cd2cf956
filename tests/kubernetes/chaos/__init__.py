"""Chaos: a loaded cluster whose scheduler and API server fail at random moments, and rules that it keeps."""
