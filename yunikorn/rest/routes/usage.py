"""Routes of the usage of users and groups."""

from __future__ import annotations

from collections.abc import Callable, Generator

from yunikorn.accounting.partition import Partition
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.usage_tracker import GROUP, USER
from yunikorn.rest import shapes
from yunikorn.rest.answers import Answer, Refused
from yunikorn.rest.endpoints import Call, Endpoint
from yunikorn.rest.gathering import Gathering
from yunikorn.rest.lists import PAGES, Page, listed
from yunikorn.rest.lookup import check_group_name, check_user_name, find_partition
from yunikorn.rest.partitions import book_usage, read_group, read_user
from yunikorn.rest.routes.partitions import PARTITION
from yunikorn.runtime.sliced_reads import Reading, Slices

NAMES_PER_STEP = 20
"""Number of users or groups without usage that are looked at without a pause."""


Read = Callable[[Partition, str], Generator[None, None, shapes.UserUsage | shapes.GroupUsage]]
"""Reader of one user or group."""


def _read_all(partition: Partition, kind: str, read: Read, page: Page, gathering: Gathering) -> Slices[str]:
    """Pass a page of users or groups on; return the last name of the page if another one follows."""
    yield from book_usage(partition)
    names, last = yield from page.select(partition.usage.names(kind), str, bool)
    for index, name in enumerate(names):
        if trackers := len(partition.usage.through(kind, name)):
            yield from gathering.put((yield from read(partition, name)), weight=trackers)
        elif index % NAMES_PER_STEP == 0:
            yield None
    return last


async def _all(call: Call, kind: str, read_one: Read) -> Answer:
    """Answer with the usage of all users or groups of a partition."""
    name, page = call.text("partition"), Page.of(call)

    def reading(gathering: Gathering) -> Reading[str]:
        def read(scheduler: Scheduler) -> Slices[str]:
            partition = find_partition(scheduler, name)[1].partition
            return (yield from _read_all(partition, kind, read_one, page, gathering))

        return read

    last, gathering = await call.gather(reading)
    return await listed(call, page, gathering.list(), last)


async def users(call: Call) -> Answer:
    """Answer with the usage of all users of a partition."""
    return await _all(call, USER, read_user)


async def user(call: Call) -> Answer:
    """Answer with the usage of one user."""
    name, user_name = call.text("partition"), call.name("user")
    check_user_name(user_name)

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.UserUsage]:
        partition = find_partition(scheduler, name)[1].partition
        yield from book_usage(partition)
        if not partition.usage.through(USER, user_name):
            raise Refused(404, "User not found")
        return (yield from read_user(partition, user_name))

    return await call.json(await call.read(read))


async def groups(call: Call) -> Answer:
    """Answer with the usage of all groups of a partition that have a limit."""
    return await _all(call, GROUP, read_group)


async def group(call: Call) -> Answer:
    """Answer with the usage of one group that has a limit."""
    name, group_name = call.text("partition"), call.name("group")
    check_group_name(group_name)

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.GroupUsage]:
        partition = find_partition(scheduler, name)[1].partition
        yield from book_usage(partition)
        if not partition.usage.through(GROUP, group_name):
            raise Refused(404, "Group not found")
        return (yield from read_group(partition, group_name))

    return await call.json(await call.read(read))


ENDPOINTS = (
    Endpoint(
        path=PARTITION + "/usage/users",
        answer=users,
        summary="Usage of all users",
        result=list[shapes.UserUsage],
        queries=PAGES,
        errors=(400, 404),
    ),
    Endpoint(
        path=PARTITION + "/usage/user/{user}",
        answer=user,
        summary="Usage of one user",
        result=shapes.UserUsage,
        errors=(400, 404),
    ),
    Endpoint(
        path=PARTITION + "/usage/groups",
        answer=groups,
        summary="Usage of all groups with a limit",
        result=list[shapes.GroupUsage],
        queries=PAGES,
        errors=(400, 404),
    ),
    Endpoint(
        path=PARTITION + "/usage/group/{group}",
        answer=group,
        summary="Usage of one group with a limit",
        result=shapes.GroupUsage,
        errors=(400, 404),
    ),
)
