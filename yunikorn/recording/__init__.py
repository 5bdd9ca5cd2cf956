"""What goes into a core and comes out of it, as lines of JSON: recorded, written by hand, played again."""
