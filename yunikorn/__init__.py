"""YuniKorn for Python: a resource scheduler in which every policy is a plugin."""

__version__ = "0.1.0"
