"""Devices of dynamic resource allocation: those that drivers offer, and those that claims get."""
