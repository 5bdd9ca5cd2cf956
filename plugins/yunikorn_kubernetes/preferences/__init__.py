"""Preferences of pods as scores of nodes, with the formulas of kube-scheduler's scoring plugins.

Like the predicates, the policy reads only tags of requests and allocations and attributes of nodes, so that
it also decides in a recording and in a simulation. See `docs/kubernetes/preferences.md`.
"""
