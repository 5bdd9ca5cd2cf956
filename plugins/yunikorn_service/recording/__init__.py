"""Recordings: inputs and outputs of a core as lines of JSON, which can be written by hand and replayed."""
