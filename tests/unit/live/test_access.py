"""Every path of the live page with every token, name of host and origin; on a real server."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airloom.errors import HostError, ScenarioError
from airloom.live import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from airloom.live.app import FILES
from airloom.live.page import Page
from airloom.live.server import address_of, serving

pytestmark = pytest.mark.timeout(120)
ROUTES = ["", "state", "events", *FILES]


@dataclass
class Live:
    """A served page without a run."""

    page: Page
    port: int
    path: str
    tokens: dict[str, str]

    def get(self, path: str, *, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        """Returns the answer to one request; the body of a stream is not read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(
            method, path, headers={key.replace("_", "-"): value for key, value in headers.items()}
        )
        answer = connection.getresponse()
        if answer.headers.get_content_type() != "text/event-stream":
            answer.read()
        connection.close()
        return answer

    def cookie(self, role: str) -> str:
        """Logs in by URL, and returns the cookie."""
        answer = self.get(f"{self.path}/?token={self.tokens[role]}")
        assert answer.status == 303
        assert answer.headers["location"] == f"{self.path}/"
        kept = answer.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=strict" in kept
        assert f"path={self.path}" in kept
        return str(answer.headers["set-cookie"]).partition(";")[0]


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    page = Page()
    with serving(page) as served:
        found = [
            re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{16})/\?token=([\w-]{43})", url)
            for url in (served.operator, served.viewer)
        ]
        first, second = found
        assert first is not None
        assert second is not None
        assert served.local
        yield Live(page, int(first[1]), first[2], {"operator": first[3], "viewer": second[3]})


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_both_tokens_read_every_path(live: Live, route: str, role: str) -> None:
    answer = live.get(f"{live.path}/{route}", cookie=live.cookie(role))
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "cookie", ["", "airloom-live=", "airloom-live=wrong", "airloom-live=\xff", "other=x"]
)
def test_nothing_is_read_without_a_token(live: Live, route: str, cookie: str) -> None:
    assert live.get(f"{live.path}/{route}", cookie=cookie).status == 401
    assert live.get(f"{live.path}/{route}").status == 401


def test_a_token_counts_in_the_url_of_the_page_only(live: Live) -> None:
    token = live.tokens["operator"]
    assert live.get(f"{live.path}/state?token={token}").status == 401
    assert live.get(f"/?token={token}").status == 401
    assert live.get(f"{live.path}/?token=wrong").status == 401
    assert live.get(f"{live.path}/?token={token[:-1]}").status == 401


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "%2e%2e/app.py", "index.html", "xterm/../../app.py", "xterm/README.md"]
)
def test_only_the_pages_files_are_served(live: Live, path: str) -> None:
    assert live.get(f"{live.path}/{path}", cookie=live.cookie("operator")).status in (401, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_is_written(live: Live, method: str) -> None:
    assert live.get(f"{live.path}/state", method=method, cookie=live.cookie("operator")).status == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("192.0.2.1:8080", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example:1", 421), ("[", 421),
    ],
)  # fmt: skip
def test_a_foreign_name_of_the_host_is_refused(live: Live, host: str, status: int) -> None:
    assert live.get(f"{live.path}/state", cookie=live.cookie("operator"), host=host).status == status


def refused(live: Live, **headers: str) -> int:
    """The status with which a console is refused."""
    given = {key.capitalize(): value for key, value in headers.items()}
    with pytest.raises(InvalidStatus) as caught:
        connect(f"ws://127.0.0.1:{live.port}{live.path}/console/h1", additional_headers=given).close()
    return caught.value.response.status_code


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1:1", "file://127.0.0.1", "http://localhost"],
)
def test_a_console_is_refused_to_another_origin(live: Live, origin: str) -> None:
    assert refused(live, cookie=live.cookie("operator"), origin=origin) == 403


def test_a_console_is_refused_to_a_viewer_a_stranger_and_without_a_run(live: Live) -> None:
    own = f"http://127.0.0.1:{live.port}"
    assert refused(live, cookie=live.cookie("viewer"), origin=own) == 403
    assert refused(live, cookie="airloom-live=wrong", origin=own) == 403
    assert refused(live, origin=own) == 403
    assert refused(live, cookie=live.cookie("operator"), origin=own) == 403


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)), ("localhost:80", ("127.0.0.1", 80)),
        (":8080", ("127.0.0.1", 8080)),
        ("[::1]:8080", ("::1", 8080)), ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)  # fmt: skip
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text", ["", "8080", "127.0.0.1", "127.0.0.1:", "a.example:80", "1.2.3.4:65536", "::1"]
)
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="is no address and port to serve the live page at"):
        address_of(text)


def test_a_taken_port_is_refused(live: Live) -> None:
    with (
        pytest.raises(HostError, match=r"cannot be served at 127\.0\.0\.1"),
        serving(Page(), f"127.0.0.1:{live.port}"),
    ):
        pass
