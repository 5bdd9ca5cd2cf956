"""The command `yunikorn`, which loads the command line."""
