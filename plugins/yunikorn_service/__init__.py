"""The scheduler as a service: one core behind gRPC, for resource managers on any machine."""
