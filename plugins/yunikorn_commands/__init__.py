"""Parts that the commands of several packages share: options, input files, text in columns."""
