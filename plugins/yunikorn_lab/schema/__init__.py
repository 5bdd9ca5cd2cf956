"""The description of queues.yaml as JSON Schema and as a page."""
