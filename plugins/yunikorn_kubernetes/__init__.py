"""Shim for Kubernetes: translates the objects of an API server into the scheduler interface, and back."""
