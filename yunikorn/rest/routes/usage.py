"""Routes of the usage of users and groups."""

from __future__ import annotations

from collections.abc import Generator

from yunikorn.accounting.partition import Partition
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.usage_tracker import GROUP, USER
from yunikorn.rest import shapes
from yunikorn.rest.answers import Answer, Refused
from yunikorn.rest.endpoints import Call, Endpoint
from yunikorn.rest.lists import PAGES, Page, listed
from yunikorn.rest.lookup import check_group_name, check_user_name, find_partition
from yunikorn.rest.partitions import book_usage, read_group, read_user
from yunikorn.rest.routes.partitions import PARTITION

NAMES_PER_STEP = 20
"""Number of users or groups that are read without a pause."""


def read_users(partition: Partition, page: Page) -> Generator[None, None, tuple[list[shapes.UserUsage], str]]:
    """Read a page of users, and the last name of the page if another one follows."""
    yield from book_usage(partition)
    names, last = yield from page.select(partition.usage.names(USER), str, bool)
    found = []
    for index, user_name in enumerate(names):
        if partition.usage.through(USER, user_name):
            found.append(read_user(partition, user_name))
        if index % NAMES_PER_STEP == 0:
            yield
    return found, last


def read_groups(
    partition: Partition, page: Page
) -> Generator[None, None, tuple[list[shapes.GroupUsage], str]]:
    """Read a page of groups with a limit, and the last name of the page if another one follows."""
    yield from book_usage(partition)
    names, last = yield from page.select(partition.usage.names(GROUP), str, bool)
    found = []
    for index, group_name in enumerate(names):
        if partition.usage.through(GROUP, group_name):
            found.append(read_group(partition, group_name))
        if index % NAMES_PER_STEP == 0:
            yield
    return found, last


async def users(call: Call) -> Answer:
    """Answer with the usage of all users of a partition."""
    name, page = call.text("partition"), Page.of(call)

    def read(scheduler: Scheduler) -> Generator[None, None, tuple[list[shapes.UserUsage], str]]:
        return (yield from read_users(find_partition(scheduler, name)[1].partition, page))

    return await listed(call, page, *(await call.read(read)))


async def user(call: Call) -> Answer:
    """Answer with the usage of one user."""
    name, user_name = call.text("partition"), call.name("user")
    check_user_name(user_name)

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.UserUsage]:
        partition = find_partition(scheduler, name)[1].partition
        yield from book_usage(partition)
        if not partition.usage.through(USER, user_name):
            raise Refused(404, "User not found")
        return read_user(partition, user_name)

    return await call.json(await call.read(read))


async def groups(call: Call) -> Answer:
    """Answer with the usage of all groups of a partition that have a limit."""
    name, page = call.text("partition"), Page.of(call)

    def read(scheduler: Scheduler) -> Generator[None, None, tuple[list[shapes.GroupUsage], str]]:
        return (yield from read_groups(find_partition(scheduler, name)[1].partition, page))

    return await listed(call, page, *(await call.read(read)))


async def group(call: Call) -> Answer:
    """Answer with the usage of one group that has a limit."""
    name, group_name = call.text("partition"), call.name("group")
    check_group_name(group_name)

    def read(scheduler: Scheduler) -> Generator[None, None, shapes.GroupUsage]:
        partition = find_partition(scheduler, name)[1].partition
        yield from book_usage(partition)
        if not partition.usage.through(GROUP, group_name):
            raise Refused(404, "Group not found")
        return read_group(partition, group_name)

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
