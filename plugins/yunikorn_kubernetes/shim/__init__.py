"""The shim: from changes of Kubernetes objects to updates of the core, and from its decisions to writes."""
