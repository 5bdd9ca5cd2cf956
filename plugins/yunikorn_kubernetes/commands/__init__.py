"""Commands that run the scheduler of a Kubernetes cluster, and its admission controller."""
