"""Routes of the usage of users and groups."""

from __future__ import annotations

from collections.abc import Callable, Generator

from yunikorn.accounting.partition import Partition
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.usage_tracker import GROUP, USER
from yunikorn_rest import shapes
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import AnswerLists
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.lists import PAGES, Page, listed
from yunikorn_rest.lookup import check_group_name, check_user_name, find_partition
from yunikorn_rest.partition_reader import book_usage, read_group, read_user
from yunikorn_rest.routes.partition_routes import PARTITION
from yunikorn_service.runtime.sliced_reads import Slices

NAMES_PER_STEP = 20
"""Number of users or groups without usage that are looked at without a pause."""


Read = Callable[[Partition, str], Generator[None, None, shapes.UserUsage | shapes.GroupUsage]]
"""Reader of one user or group."""


def _read_all(partition: Partition, kind: str, read: Read, page: Page, gathering: AnswerLists) -> Slices[str]:
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

    def read(scheduler: Scheduler, gathering: AnswerLists) -> Slices[str]:
        partition = find_partition(scheduler, name)[1].partition
        return (yield from _read_all(partition, kind, read_one, page, gathering))

    return await listed(call, read)


def _one(
    call: Call, scheduler: Scheduler, kind: str, read: Read
) -> Slices[shapes.UserUsage | shapes.GroupUsage]:
    """Read the usage of the user or group that a request names."""
    name = call.name(kind)
    (check_user_name if kind == USER else check_group_name)(name)
    partition = find_partition(scheduler, call.text("partition"))[1].partition
    yield from book_usage(partition)
    if not partition.usage.through(kind, name):
        raise RequestRefused(404, f"{kind.capitalize()} not found")
    return (yield from read(partition, name))


@Route(PARTITION + "/usage/users", list[shapes.UserUsage], queries=PAGES, errors=(400, 404))
async def users(call: Call) -> Answer:
    """Usage of all users."""
    return await _all(call, USER, read_user)


@Route(PARTITION + "/usage/user/{user}", shapes.UserUsage, errors=(400, 404)).reads
def user(call: Call, scheduler: Scheduler) -> Slices[object]:
    """Usage of one user."""
    return _one(call, scheduler, USER, read_user)


@Route(PARTITION + "/usage/groups", list[shapes.GroupUsage], queries=PAGES, errors=(400, 404))
async def groups(call: Call) -> Answer:
    """Usage of all groups with a limit."""
    return await _all(call, GROUP, read_group)


@Route(PARTITION + "/usage/group/{group}", shapes.GroupUsage, errors=(400, 404)).reads
def group(call: Call, scheduler: Scheduler) -> Slices[object]:
    """Usage of one group with a limit."""
    return _one(call, scheduler, GROUP, read_group)


ENDPOINTS = (users, user, groups, group)
