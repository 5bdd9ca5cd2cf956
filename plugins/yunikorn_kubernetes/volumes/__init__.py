"""Volumes of pods: tags and node attributes for the predicates, the choice of volumes, and their binding."""
