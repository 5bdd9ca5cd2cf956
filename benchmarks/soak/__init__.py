"""Soak test: resource managers and a service with random failures, whose accounting must stay equal."""
