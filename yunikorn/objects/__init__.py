"""Scheduled objects and their accounting: state and bookkeeping, without scheduling decisions."""
