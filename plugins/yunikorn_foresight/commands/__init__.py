"""Commands of foresight."""
