"""Snapshots of clusters in which no scheduler of ours runs."""
