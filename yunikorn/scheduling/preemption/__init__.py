"""Preemption: begin with `victims`, which chooses them; `preemptor` says for which request, and when.

Candidates for victims are in one of two stores. `candidates` has those of one round, for any policy: they are
collected and ordered once, with the costs that the policy gives them, and forgotten after the round.
`candidate_store` has those of a policy with constant answers by node, and keeps them from round to round
(`kept_candidates`). One store for both would be slower where either is used: candidates that are kept for a
thousand queues with few victims each cost more to list by node than to collect, and bounds by cost cannot be
read from amounts by node.
"""
