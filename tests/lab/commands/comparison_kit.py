"""A configuration and a workload whose decisions differ between `fifo` and `fair`."""

from __future__ import annotations

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a, properties: {application.sort.policy: fifo}}
"""
# Of two vcores the long job takes both again and again under fifo; under fair the short jobs come between.
WORKLOAD = """
nodes: [{name: n, count: 2, resources: {vcore: 1}}]
applications:
  - {id: long, queue: root.a, user: ann, tasks: [{name: t, count: 10, resources: {vcore: 1}, runtime: 60}]}
  - {id: short, count: 3, submit: 10, every: 50, queue: root.a, user: bob,
     tasks: [{name: t, resources: {vcore: 1}, runtime: 20}]}
"""
