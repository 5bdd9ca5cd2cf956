"""Client of a Kubernetes API server: connection, calls, watches, writes, events and leader election."""
