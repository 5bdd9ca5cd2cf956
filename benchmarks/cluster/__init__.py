"""Benchmark in a real Kubernetes cluster: `yunikorn kubernetes` beside kube-scheduler on the same server."""
