"""Commands of the default packages: names, help lines and places, so that `--help` imports none of them."""

from __future__ import annotations

from typing import NamedTuple


class DefaultCommand(NamedTuple):
    """Command of a default package."""

    line: str
    """Help line."""
    module: str
    """Module of the package `yunikorn_PACKAGE`, below its folder `commands`, as `PACKAGE.MODULE`."""
    attribute: str = "command"

    @property
    def place(self) -> str:
        """Dotted name of the module."""
        package, _, module = self.module.partition(".")
        return f"yunikorn_{package}.commands.{module}"


_SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "Simulation and replay": {
        "simulate": ("Run a workload on a virtual clock and report what was scheduled.", "lab.simulate"),
        "workload": ("Generate a workload from named distributions and a seed.", "lab.workload"),
        "compare": ("Run a workload under several configurations, side by side.", "lab.compare"),
        "size": ("Find the smallest cluster on which a workload meets targets.", "lab.size"),
        "estimate": ("Estimate when waiting applications start.", "foresight.estimate"),
        "sweep": ("Search settings for the best ones, over seeds and workloads.", "foresight.sweep"),
        "whatif": ("Show what a change would do to a cluster.", "foresight.whatif"),
        "report": ("Report usage, waits, fairness and more from a history.", "lab.report"),
        "replay": ("Replay a recording, real or written by hand, in a new core.", "service.replay"),
    },
    "Configurations and plugins": {
        "validate": ("Check queues.yaml files and list all problems.", "lab.validate"),
        "diff": ("Show what differs between two configurations.", "lab.diff"),
        "plan": ("Show what a queues.yaml would change in a scheduler.", "foresight.plan"),
        "place": ("Show the queue and the placement rule of an application.", "lab.place"),
        "plugins": ("List the installed plugins, their options, and broken plugins.", "lab.plugins"),
        "estimators": ("Print how good estimators of run times are.", "lab.estimators"),
        "completion": ("Print the completion script of bash, zsh or fish.", "commands.completion"),
        "schema": ("Print the JSON Schema of queues.yaml, or its reference.", "lab.schema"),
        "states": ("Print the state machines as Mermaid diagrams.", "lab.states"),
    },
    "Service": {
        "serve": ("Serve resource managers over gRPC, and the state over REST.", "service.serve"),
        "kubernetes": ("Schedule the pods of a Kubernetes cluster.", "kubernetes.kubernetes"),
        "token": ("Make a token for an operator who changes things over REST.", "rest.token"),
        "admission": ("Prepare the pods of a Kubernetes cluster for the scheduler.", "kubernetes.admission"),
    },
    "Look into a running scheduler": {
        "top": ("Show queues, nodes or apps, refreshed on the terminal.", "rest.top"),
        "get": ("List queues, apps, nodes, users or events.", "rest.get"),
        "describe": ("Describe one app, queue or node.", "rest.describe"),
        "explain": ("Explain why the requests of an application wait.", "rest.explain"),
        "decisions": ("Show the latest decisions about an app, queue or node.", "rest.decisions"),
        "events": ("Show events, also as they occur.", "rest.events"),
        "history": ("Show what ran, from the history of a scheduler.", "history.history"),
        "snapshot": ("Write a snapshot, from which a scheduler goes on elsewhere.", "snapshots.snapshot"),
        "dump": ("Write the whole state, for a report of a problem.", "rest.dump"),
    },
    "Change a running scheduler": {
        "stop": ("Stop queues, or a whole partition.", "rest.operator_calls", "stop"),
        "start": ("Start queues or a partition that were stopped.", "rest.operator_calls", "start"),
        "drain": ("Keep new tasks off nodes.", "rest.operator_calls", "drain"),
        "undrain": ("Let drained nodes get tasks again.", "rest.operator_calls", "undrain"),
        "fail": ("Fail applications.", "rest.operator_calls", "fail"),
        "config": ("Print the configuration in use, to edit it.", "rest.configuration", "config"),
        "apply": ("Use a queues.yaml, after showing what it changes.", "rest.configuration", "apply"),
        "log-level": ("Show or set log levels.", "rest.log_level"),
        "whoami": ("Show name and role of the token in use.", "rest.whoami"),
    },
}
DEFAULT_SECTIONS = {
    title: {name: DefaultCommand(*entry) for name, entry in entries.items()}
    for title, entries in _SECTIONS.items()
}
"""Commands by name, in the sections of `--help`."""
DEFAULT_COMMANDS = {name: found for section in DEFAULT_SECTIONS.values() for name, found in section.items()}
