"""The command line: commands that need no other package."""
