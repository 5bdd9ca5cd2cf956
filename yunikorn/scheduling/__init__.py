"""Scheduling decisions: queue, application, request and node."""
