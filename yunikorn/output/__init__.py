"""Output derived from the state of the scheduler, besides responses and events."""
