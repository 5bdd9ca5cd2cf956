"""Data structures that know nothing of the domain."""
