"""The command line, and what commands of several packages share: options, input files, text in columns."""
