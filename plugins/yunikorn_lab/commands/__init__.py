"""Commands that work on files, without a running scheduler."""
