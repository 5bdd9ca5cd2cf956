"""What may stand in a queues.yaml: every key once, told to editors as JSON Schema and to people as a page."""
