"""Topology: domains of nodes, and the placement of whole gangs in them."""
