"""Kinds of work that are recognised without annotations: readers of owners, and their gangs."""
