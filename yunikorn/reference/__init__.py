"""Description of all keys of queues.yaml, the source of the JSON Schema and of the reference page."""
