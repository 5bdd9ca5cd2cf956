"""Reservation of a node: begin with `reservations`, which makes, serves and ends them."""
