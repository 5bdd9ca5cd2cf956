"""Policies that may let something wait: submit, admission, permit and quota policies, and placement rules.

One machine (`questions.py`) for all kinds: a policy is asked in the core's thread or by a worker
(`asked_policies.py`, `worker_questions.py`), at once or again at a time. A kind adds what it asks about, and
what an answer leads to.
"""
