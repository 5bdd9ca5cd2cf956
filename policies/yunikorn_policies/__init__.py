"""The default policies that order: applications in a queue, queues under a parent, nodes for a request."""
