"""The decisions: which queue, which application, which request, which node."""
