"""Metrics of a running scheduler for Prometheus."""
