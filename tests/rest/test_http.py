"""HTTP of the REST interface: paths, methods, headers, errors, compression and conditional requests."""

from __future__ import annotations

import asyncio
import gzip
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import Rest
from yunikorn_rest.answers import Answer
from yunikorn_rest.encoding import to_bytes
from yunikorn_rest.endpoints import Spelling

CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "X-Requested-With,Content-Type,Accept,Origin",
}
BAD_QUEUE = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters and"
    " '-', '_', '#', '@', '/', ':' allowed"
)

LIMIT = "limit: expected a whole number from 1 on, got "


@pytest.fixture
def rest() -> Rest:
    """A cluster with a node, and a queue whose name has special characters."""
    rm = RM(configuration(queue("a"), queue("a/b#c"), queue("c")))
    rm.node("n1", vcore=4)
    rm.app("app", user="ann")
    rm.ask(vcore=1)
    rm.schedule()
    return Rest(rm)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("partition/none/queues", 404, "Partition not found"),
        ("partition/DEFAULT/queues", 404, "Partition not found"),
        ("partition//queues", 404, "Partition not found"),
        ("partition/none/nodes", 404, "Partition not found"),
        ("partition/none/placementrules", 404, "Partition not found"),
        ("partition/none/usage/users", 404, "Partition not found"),
        ("partition/default/queue/root.none", 404, "Queue not found"),
        ("partition/default/queue/a", 404, "Queue not found"),
        ("partition/default/queue/root.a%20b", 400, BAD_QUEUE),
        ("partition/none/queue/root.a%20b", 404, "Partition not found"),
        ("partition/none/queue/root.a%20b/applications", 400, BAD_QUEUE),
        ("partition/default/queue/root.a%25zz", 400, 'invalid URL escape "%zz"'),
        ("partition/default/queue/root.a%25", 400, 'invalid URL escape "%"'),
        ("partition/default/node/none", 404, "Node not found"),
        ("partition/default/application/none", 404, "Application not found"),
        ("partition/default/queue/root.a/application/none", 404, "Application not found"),
        ("partition/default/queue/root.none/application/app", 404, "Queue not found"),
        (
            "partition/default/applications/running",
            400,
            "Only following application states are allowed: active, rejected, completed",
        ),
        (
            "partition/default/queue/root.a/applications/completed",
            400,
            "Only following application states are allowed: active",
        ),
        (
            "partition/default/applications/active?status=done",
            400,
            "Only following active statuses are allowed: new,accepted,running,completing,failing,resuming",
        ),
        ("partition/default/usage/user/none", 404, "User not found"),
        ("partition/default/usage/user/0none", 400, "Invalid user name"),
        ("partition/default/usage/group/none", 404, "Group not found"),
        ("partition/default/usage/group/no$", 400, "Invalid group name"),
        ("partition/default/nodes?limit=0", 400, LIMIT + '"0"'),
        ("partition/default/nodes?limit=x", 400, LIMIT + '"x"'),
        ("partition/default/nodes?limit=-1", 400, LIMIT + '"-1"'),
        (
            f"partition/default/nodes?limit={1 << 64}",
            400,
            f'limit: expected a whole number from 1 to {(1 << 64) - 1}, got "{1 << 64}"',
        ),
        ("partition/default/nodes?limit=1&continue=%FF", 400, '"continue" is not a token of this server'),
        ("partition/default/nodes?continue=bjE=", 400, '"continue" needs "limit"'),
    ],
)
def test_errors(rest: Rest, path: str, status: int, message: str) -> None:
    assert rest.error(path) == (status, message)
    headers = rest.get(path).headers
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert CORS.items() <= headers.items()


def test_headers_of_answers(rest: Rest) -> None:
    answer = rest.get("partitions")
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert CORS.items() <= answer.headers.items()
    assert answer.content.endswith(b"}]\n")
    assert "set-cookie" not in answer.headers


def test_unknown_paths_are_not_json(rest: Rest) -> None:
    for path in ("/", "/ws/v1/none", "/ws/v1/partition/default", "/ws/v2/partitions", "/ws/v1/%zz"):
        answer = rest.get(path)
        assert (answer.status_code, answer.text) == (404, "404 page not found\n"), path
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "PATCH"])
def test_other_methods_are_refused(rest: Rest, method: str) -> None:
    answer = rest.request(method, "partitions")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, OPTIONS"
    assert answer.text == ("" if method == "HEAD" else "Method Not Allowed\n")
    assert rest.request("GET", "validate-conf").headers["allow"] == "OPTIONS, POST"


def test_preflight_requests_are_answered(rest: Rest) -> None:
    answer = rest.request("OPTIONS", "partition/none/queues")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["allow"] == "GET, OPTIONS"
    assert CORS.items() <= answer.headers.items()


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/ws/v1/partitions/", "/ws/v1/partitions"),
        ("/ws/v1/CLUSTERS", "/ws/v1/clusters"),
        ("/ws//v1/./x/../clusters?a=b%20c", "/ws/v1/clusters?a=b%20c"),
        ("/WS/v1/Partition/Default/Queues/", "/ws/v1/partition/Default/queues"),
        ("/ws/v1/partition/a%20%3Cb%3E/QUEUES", "/ws/v1/partition/a%20%3Cb%3E/queues"),
    ],
)
def test_nearly_correct_paths_are_redirected(rest: Rest, path: str, target: str) -> None:
    answer = rest.request("GET", path)
    assert (answer.status_code, answer.headers["location"]) == (301, target)
    assert rest.request("POST", path).status_code == 307


@given(st.text(alphabet="/.%\\\\:@evilQUS", max_size=30))
def test_a_redirect_never_leaves_the_server(path: str) -> None:
    spelling = Spelling(["/ws/v1/partition/{partition}/queues"])
    assert spelling.corrected("//WS/v1/partition/default/queues") == "/ws/v1/partition/default/queues"
    for whole in (path, f"/ws/v1/partition/{path}/queues", f"{path}/ws/v1/partition/x/queues"):
        corrected = spelling.corrected(whole)
        assert corrected is None or corrected.startswith("/ws/v1/partition/")


def test_names_are_decoded_twice(rest: Rest) -> None:
    once = quote("root.a/b#c", safe="")
    assert rest.get(f"partition/default/queue/{once}").status_code == 404
    twice = quote(once, safe="")
    assert rest.json(f"partition/default/queue/{twice}")["queuename"] == "root.a/b#c"
    assert rest.json(f"partition/default/queue/{twice}/applications") == []


def test_the_same_partition_by_its_whole_name(rest: Rest) -> None:
    assert rest.json("partition/[rm]default/queues") == rest.json("partition/default/queues")


# -- compression -----------------------------------------------------------------------------------------


def test_long_answers_are_compressed_once(rest: Rest) -> None:
    plain = rest.get("partition/default/queues")
    assert len(plain.content) >= 1400
    assert "content-encoding" not in plain.headers
    answer = rest.get("partition/default/queues", accept_encoding="deflate, GZIP;q=0.5")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) < len(plain.content)
    assert answer.content == plain.content  # httpx has decompressed it
    assert not answer.content.startswith(gzip.compress(b"")[:2])


@pytest.mark.parametrize("accepted", ["", "identity", "*", "gzip;q=0", "gzip; q=0", "xgzip"])
def test_answers_are_not_compressed_for_other_clients(rest: Rest, accepted: str) -> None:
    answer = rest.get("partition/default/queues", accept_encoding=accepted)
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(("size", "compressed"), [(1399, False), (1400, True)])
def test_the_smallest_compressed_answer(size: int, compressed: bool) -> None:
    app = Answer(pieces=(b"x" * 1000, b"y" * (size - 1000)), content_type="text/plain")

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/", headers={"accept-encoding": "gzip"})

    answer = asyncio.run(get())
    assert len(answer.content) == size
    assert ("content-encoding" in answer.headers) == ("vary" in answer.headers) == compressed


def test_short_answers_are_not_compressed(rest: Rest) -> None:
    for path in ("clusters", "partition/none/queues", "none"):
        answer = rest.get(path, accept_encoding="gzip")
        assert not {"content-encoding", "vary"} & answer.headers.keys()


# -- conditional requests --------------------------------------------------------------------------------


def test_unchanged_answers_are_not_sent_again() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rest = Rest(rm)
    first = rest.get("partition/default/nodes")
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    for known in (etag, f'"x", {etag}', etag.removeprefix("W/"), "*"):
        again = rest.get("partition/default/nodes", if_none_match=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    assert rest.get("partition/default/nodes", if_none_match='"x"').status_code == 200
    rm.node("n2", vcore=4)
    changed = rest.get("partition/default/nodes", if_none_match=etag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


def test_the_etag_does_not_depend_on_the_compression(rest: Rest) -> None:
    plain = rest.get("partition/default/queues")
    packed = rest.get("partition/default/queues", accept_encoding="gzip")
    assert plain.headers["etag"] == packed.headers["etag"]
    assert plain.headers["etag"].startswith('W/"')


def test_errors_have_no_etag(rest: Rest) -> None:
    assert "etag" not in rest.get("partition/none/queues").headers


# -- text ------------------------------------------------------------------------------------------------


def test_markup_in_names_is_escaped() -> None:
    rm = RM()
    rm.node("<b>&\u2028é", {"<i>": "&"}, vcore=4)
    rest = Rest(rm)
    body = rest.get("partition/default/nodes").content
    assert b"\\u003cb\\u003e\\u0026\\u2028\xc3\xa9" in body
    assert not set(b"<>&") & set(body)
    assert rest.json("partition/default/nodes")[0]["nodeID"] == "<b>&\u2028é"


def test_text_without_an_encoding_is_replaced() -> None:
    assert to_bytes('"\ud800"') == b'"?"'


def test_keys_of_mappings_are_sorted() -> None:
    rm = RM()
    rm.node("n", {"b": "1", "a": "2"}, vcore=4, memory=3)
    body = Rest(rm).get("partition/default/nodes").text
    assert '"attributes":{"a":"2","b":"1"},"capacity":{"memory":3,"vcore":4}' in body
