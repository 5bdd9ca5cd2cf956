"""The soak: resource managers and a service that lose each other at random, and books that stay right."""
