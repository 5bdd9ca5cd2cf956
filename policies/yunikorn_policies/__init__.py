"""Default sort policies of applications, queues and nodes."""
