"""The things that are scheduled, and their books: state and accounting, no decisions."""
