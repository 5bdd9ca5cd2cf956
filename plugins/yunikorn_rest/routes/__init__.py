"""Routes of the REST interface, one module per subject."""
