"""The command line, which finds the commands of all packages and imports them when they are called."""
