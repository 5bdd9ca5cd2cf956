"""Accounting: every change of the model, booked on all objects that it concerns."""
