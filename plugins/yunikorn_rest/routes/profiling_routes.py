"""Routes of profiles, with the paths of Go: `go tool pprof http://127.0.0.1:9080/debug/pprof/profile`.

Profiles without an equivalent in Python are refused with status 501 and the reason.
"""

from __future__ import annotations

import sys
import tracemalloc
from functools import partial

from yunikorn_rest.answers import TEXT, Answer, RequestRefused, plain_error
from yunikorn_rest.endpoints import Call, Endpoint, Query, Route
from yunikorn_rest.lists import unsigned
from yunikorn_rest.profiler import CONTENT_TYPE, heap_profile, thread_profile
from yunikorn_rest.routes.dump_routes import stacks

PPROF = "/debug/pprof/"
DEFAULT_SECONDS = 30
MOST_SECONDS = 60
"""Maximum duration of a profile."""
SECONDS = Query(
    "seconds",
    f"duration of the profile, {DEFAULT_SECONDS} by default and {MOST_SECONDS} at most",
    "10",
    {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS},
)
DEBUG = Query("debug", "with a value other than 0: text instead of a profile", "1")
FOR_PPROF = {"x-go-pprof": "1"}
"""Header that makes `go tool pprof` show the text of an error."""

NO_HEAP = "memory is not traced: start the service with PYTHONTRACEMALLOC=20 (frames per stack) to use this"
MISSING = {
    "allocs": "Python does not count allocations that have ended; /debug/pprof/heap has those that have not",
    "block": "Python does not record where threads wait; the type wall of /debug/pprof/profile shows it",
    "mutex": "Python does not record where threads wait for locks; the type wall of /debug/pprof/profile"
    " shows it",
    "symbol": "profiles of this server contain the names of functions already",
    "threadcreate": "Python does not record where threads were started; /debug/pprof/goroutine has them all",
    "trace": "Python has no execution traces; /debug/pprof/profile has the time by function",
}
"""Profiles of Go without an equivalent, with the reason."""
INDEX = f"""\
profile?seconds=N  time of each function, sampled: processor time (cpu) and waiting included (wall)
goroutine          stacks of all threads; ?debug=1 as text
heap               allocated memory, if the service was started with PYTHONTRACEMALLOC=20
cmdline            command line of the service

Not available: {", ".join(MISSING)}.
"""


# Pages of other sites cannot read profiles.
_OwnRoute = partial(Route, cross_origin=False)


def _profile(data: bytes, name: str) -> Answer:
    headers = {"content-disposition": f'attachment; filename="{name}.pb.gz"', "cache-control": "no-store"}
    # Compressed already.
    return Answer(pieces=(data,), content_type=CONTENT_TYPE, headers=headers, compressible=False)


@_OwnRoute(PPROF, content_type="text/plain")
async def index(call: Call) -> Answer:
    """List of profiles."""
    return Answer(pieces=(INDEX.encode(),), content_type=TEXT)


@_OwnRoute(PPROF + "profile", content_type=CONTENT_TYPE, queries=(SECONDS,), errors=(400,), plain_errors=True)
async def profile(call: Call) -> Answer:
    """Time by function, in the format of pprof; one at a time."""
    given = call.query("seconds")
    seconds = unsigned(given, "seconds") if given else DEFAULT_SECONDS
    if seconds > MOST_SECONDS:
        raise RequestRefused(400, f'{seconds} is not a valid value for "seconds": at most {MOST_SECONDS}')
    profiler = call.context.profiler
    if profiler.busy:
        headers = {**FOR_PPROF, "retry-after": str(MOST_SECONDS)}
        return plain_error(503, "a profile is being taken; there can be one at a time", headers)
    return _profile(await profiler.take(seconds, call.request.is_disconnected), "profile")


@_OwnRoute(PPROF + "goroutine", content_type=CONTENT_TYPE, other_content_type="text/plain", queries=(DEBUG,))
async def threads(call: Call) -> Answer:
    """Stacks of all threads, in the format of pprof."""
    if call.query("debug") not in ("", "0"):
        return await stacks.answer(call)
    return _profile(await call.apart(thread_profile), "goroutine")


@_OwnRoute(PPROF + "heap", content_type=CONTENT_TYPE, errors=(501,), plain_errors=True)
async def heap(call: Call) -> Answer:
    """Allocated memory, in the format of pprof."""
    if not tracemalloc.is_tracing():
        return plain_error(501, NO_HEAP, FOR_PPROF)
    return _profile(await call.apart(heap_profile), "heap")


@_OwnRoute(PPROF + "cmdline", content_type="text/plain")
async def cmdline(call: Call) -> Answer:
    """Command line of the process.

    Its parts are separated by zero bytes.
    """
    return Answer(pieces=("\0".join(sys.orig_argv).encode("utf-8", "replace"),), content_type=TEXT)


def _refusal(name: str, reason: str) -> Endpoint:
    """Return the endpoint that refuses a profile with the reason."""

    async def refuse(call: Call) -> Answer:
        return plain_error(501, reason, FOR_PPROF)

    route = _OwnRoute(PPROF + name, errors=(501,), plain_errors=True, content_type="text/plain")
    return route(refuse, f"Refused: {reason}")


ENDPOINTS = (
    index,
    profile,
    threads,
    heap,
    cmdline,
    *(_refusal(name, reason) for name, reason in MISSING.items()),
)
