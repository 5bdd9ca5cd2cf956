"""Pages of the scheduler for a browser: the answers of the REST interface as HTML, rendered on the server."""
