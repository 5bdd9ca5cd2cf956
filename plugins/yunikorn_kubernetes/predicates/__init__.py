"""Predicates with the rules of kube-scheduler, as far as they concern pods, labels, taints and host ports.

Each module has the predicates of one subject. Everything that a decision depends on is in the tags of
requests and allocations and in the attributes of nodes, so that the predicates work in a recording and in a
simulation as they do in a cluster. See `docs/kubernetes/predicates.md`.
"""
