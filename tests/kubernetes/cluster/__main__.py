"""Commands for the test cluster: `python -m tests.kubernetes.cluster build | up | path`."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import PARTS, Cluster, ClusterError
from tests.kubernetes.cluster.kubectl import ApiFault, Kubectl
from tests.kubernetes.cluster.objects import node, pod

_HELP = """\
A cluster runs at {url}; its logs are in {logs}.

  export KUBECONFIG={kubeconfig}
  kubectl get nodes                                   # any client works
  python -m tests.kubernetes.cluster nodes 10         # adds 10 nodes of 16 CPUs and 64 GiB
  python -m tests.kubernetes.cluster pods 20          # adds 20 pods with schedulerName: yunikorn

kwok plays the kubelets: every node becomes ready, every bound pod runs. Ctrl-C ends the cluster.
"""


class _Problem(Exception):
    """A command cannot be run as it is called."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the programs that are missing (minutes, once)")
    build.add_argument("program", nargs="*", default=list(programs.PROGRAMS))
    path = commands.add_parser("path", help="print the files of the programs")
    path.add_argument("program", nargs="*", default=list(programs.PROGRAMS))
    up = commands.add_parser("up", help="start a cluster, print its kubeconfig, stay until Ctrl-C")
    up.add_argument("--nodes", type=int, default=0, metavar="N", help="make N nodes")
    up.add_argument("--folder", type=Path, help="keep data and logs here (default: a temporary folder)")
    for name, what in (("nodes", "nodes of 16 CPUs and 64 GiB"), ("pods", "pods for the scheduler yunikorn")):
        add = commands.add_parser(name, help=f"add {what} to the cluster of KUBECONFIG")
        add.add_argument("count", type=int)
    options = parser.parse_args(arguments)
    try:
        for name in getattr(options, "program", ()):
            if name not in programs.PROGRAMS:
                parser.error(f"no program {name}: choose from {', '.join(programs.PROGRAMS)}")
        if options.command == "build":
            programs.build(options.program, report=print)
        elif options.command == "path":
            print(*(programs.PROGRAMS[name].path for name in options.program), sep="\n")
        elif options.command == "up":
            _up(options.nodes, options.folder)
        else:
            _add(options.command, options.count)
    except (programs.BuildError, ClusterError, ApiFault, _Problem) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _up(nodes: int, folder: Path | None) -> None:
    programs.build(PARTS, report=print)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: ended.set())
    with Cluster(folder) as cluster:
        cluster.kubectl.create_all([node(f"node-{number}") for number in range(nodes)])
        print(_HELP.format(url=cluster.url, logs=cluster.logs, kubeconfig=cluster.kubeconfig), flush=True)
        ended.wait()


def _add(kind: str, count: int) -> None:
    try:
        config = json.loads(Path(os.environ["KUBECONFIG"]).read_text("utf-8"))
        here, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    except (KeyError, OSError, ValueError):
        raise _Problem("set KUBECONFIG to the file that `up` has printed") from None
    kubectl = Kubectl(here["server"], token, Path(here["certificate-authority"]))
    build = node if kind == "nodes" else pod
    taken = {obj["metadata"]["name"] for obj in kubectl.list("Node" if kind == "nodes" else "Pod")}
    names = (name for number in itertools.count() if (name := f"{kind[:-1]}-{number}") not in taken)
    try:
        for name in itertools.islice(names, count):
            kubectl.create(build(name))
    except OSError as error:
        raise _Problem(f"no cluster at {here['server']}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
