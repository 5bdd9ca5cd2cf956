"""Commands that run a scheduler as a service, or replay what one recorded."""
