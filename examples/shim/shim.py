"""A toy resource manager: jobs are files in a folder, their tasks are processes on this machine."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from examples.shim.container import Container
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    EventRecord,
    NewNodeInfo,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.client import AsyncClient, ClientError


@attrs.frozen
class Job:
    """Job described by a file `NAME.job`."""

    name: str
    command: list[str]
    tasks: int = 1
    vcore: int = 1000
    """Size of each task in milli-vcores."""
    queue: str = "root.batch"
    user: str = "me"

    def application(self) -> AddApplicationRequest:
        return AddApplicationRequest(self.name, self.queue, ugi=UserGroupInformation(self.user))

    def ask(self, key: str) -> AllocationAsk:
        return AllocationAsk(key, self.name, resource_ask=Resource(vcore=self.vcore))


class Shim:
    """Resource manager whose whole state is in a folder.

    A task without a file is pending; any other task runs or has ended.
    """

    def __init__(self, folder: Path, nodes: Sequence[str], vcore: int) -> None:
        self.folder, self.nodes, self.vcore = folder, nodes, vcore
        self.jobs: dict[str, Job] = {}
        self.tasks: dict[str, tuple[Job, Container | None]] = {}
        """Tasks that have not ended, by key, with their processes."""
        self.told_to_end: dict[str, TerminationType] = {}

    # -- callbacks of the scheduler -----------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        for placed in response.new_allocations:
            job, container = self.tasks.get(placed.allocation_key, (None, None))
            if job is not None and container is None:
                file = self.folder / f"{placed.allocation_key}.task"
                container = Container.start(file, placed.uuid, placed.node_id, job.command)
                self.tasks[placed.allocation_key] = job, container
                print(f"{placed.allocation_key} runs on {placed.node_id}")
        for release in response.released_allocations:
            _, container = self.tasks.get(release.allocation_key, (None, None))
            if container is not None and container.uuid == release.uuid:
                self.told_to_end[release.allocation_key] = release.termination_type
                container.stop()
        for refused in response.rejected_applications:
            self._refuse(self.folder / f"{refused.application_id}.job", refused.reason)

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Refuse a node that is closed by a file."""
        return "closed by hand" if (self.folder / f"{args.node_id}.closed").exists() else None

    def send_events(self, events: Sequence[EventRecord]) -> None:
        with (self.folder / "events.log").open("a") as log:
            log.writelines(f"{event.type.name} {event.object_id}: {event.message}\n" for event in events)

    def report(self) -> Iterable[UpdateRequest]:
        """Yield the complete state, at the beginning of each session."""
        nodes = [NewNodeInfo(name, schedulable_resource=Resource(vcore=self.vcore)) for name in self.nodes]
        by_name = {node.node_id: node for node in nodes}
        update = UpdateRequest("", new_schedulable_nodes=nodes)
        update.new_applications = [job.application() for job in self.jobs.values()]
        for key, (job, container) in self.tasks.items():
            if container is None:
                update.asks.append(job.ask(key))
            else:
                placed = Allocation(key, job.name, container.uuid, container.node, Resource(vcore=job.vcore))
                by_name[container.node].existing_allocations.append(placed)
        print(f"reporting {sum(c is not None for _, c in self.tasks.values())} running tasks")
        yield update

    # -- jobs and processes -------------------------------------------------------------------------------

    def look(self) -> UpdateRequest:
        """Return the changes since the last call: new jobs, ended processes, and finished jobs."""
        update = UpdateRequest("")
        for file in sorted(self.folder.glob("*.job")):
            if file.stem not in self.jobs:
                self._submit(file, update)
        for key, (job, container) in list(self.tasks.items()):
            if container is not None and not container.lives:
                self._ended(key, job, container, update)
        for name in self.jobs.keys() - {job.name for job, _ in self.tasks.values()}:
            del self.jobs[name]
            (self.folder / f"{name}.job").rename(self.folder / f"{name}.done")
            update.remove_applications.append(RemoveApplicationRequest(name))
            print(f"{name} is done")
        return update

    def _submit(self, file: Path, update: UpdateRequest) -> None:
        try:
            job = self.jobs[file.stem] = Job(file.stem, **json.loads(file.read_text("utf-8")))
        except (ValueError, TypeError) as error:
            return self._refuse(file, str(error))
        update.new_applications.append(job.application())
        for key in (f"{job.name}-{number}" for number in range(1, job.tasks + 1)):
            container = Container.find(self.folder / f"{key}.task")
            if container is None or container.lives:
                self.tasks[key] = job, container
            if container is None:
                update.asks.append(job.ask(key))

    def _refuse(self, file: Path, reason: str) -> None:
        print(f"{file.stem} is refused: {reason}")
        if self.jobs.pop(file.stem, None):
            self.tasks = {key: task for key, task in self.tasks.items() if task[0].name != file.stem}
        file.rename(file.with_suffix(".refused"))

    def _ended(self, key: str, job: Job, container: Container, update: UpdateRequest) -> None:
        why = self.told_to_end.pop(key, TerminationType.STOPPED_BY_RM)
        release = AllocationRelease(job.name, container.uuid, "", why, allocation_key=key)
        update.releases.allocations_to_release.append(release)
        print(f"{key} has ended ({why.name})")
        if why is TerminationType.STOPPED_BY_RM:
            del self.tasks[key]
        else:  # ended by the scheduler: run the task again
            container.file.unlink()
            self.tasks[key] = job, None
            update.asks.append(job.ask(key))


async def main() -> None:
    """Run until a signal; the processes keep running, and the next shim finds them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where jobs are, and the state of their tasks")
    parser.add_argument("--scheduler", default="127.0.0.1:3333", help="where it listens")
    parser.add_argument("--nodes", default="left,right", help="names of nodes that this machine plays")
    parser.add_argument("--vcore", type=int, default=2000, help="of each node, in milli-cores")
    parser.add_argument("--tick", type=float, default=1.0, help="seconds between looks at what has changed")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    shim = Shim(options.folder, options.nodes.split(","), options.vcore)
    shim.look()  # restores the state from the folder; the first report contains it
    registration = RegisterResourceManagerRequest("toy-shim", version="1")
    client = AsyncClient(options.scheduler, registration, shim)
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    starting = asyncio.create_task(client.start())
    try:
        while not over.is_set():
            if starting.done():
                starting.result()
                await client.update(shim.look())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), options.tick)
    finally:
        starting.cancel()
        await client.disconnect()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"{error}")
