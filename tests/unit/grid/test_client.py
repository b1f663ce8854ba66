"""Answers that are not those of this version's grid manager are one clear error."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from airloom.errors import HostError, RunError, ScenarioError
from airloom.grid.client import Client, Login

ME = {"user": "ann", "admin": False, "scopes": ["read"], "projects": {}}


class Service:
    """An HTTP server that answers every call with one status and body."""

    def __init__(self) -> None:
        self.status, self.body = 200, b""
        service = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(service.status)
                self.send_header("content-length", str(len(service.body)))
                self.end_headers()
                self.wfile.write(service.body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def says(self, status: int, said: Any) -> None:
        """Sets what it answers."""
        self.status, self.body = status, json.dumps(said).encode()

    def close(self) -> None:
        """Ends it."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    one = Service()
    yield one
    one.close()


def asked(service: Service, ask: Callable[[Client], Any]) -> Any:
    with Client(Login(service.url, "alg_x")) as client:
        return ask(client)


def test_keys_of_later_releases_are_ignored(service: Service) -> None:
    service.says(200, {**ME, "more": 1})
    assert asked(service, Client.me).user == "ann"


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({key: value for key, value in ME.items() if key != "user"}, "user: Field required"),
        ({**ME, "scopes": ["read", "fly"]}, "scopes.1: "),
        ({**ME, "projects": {"p": "king"}}, "projects.p: "),
        ([], "Input should be"),
        (None, "Input should be"),
    ],
    ids=["missing", "word", "deep", "list", "null"],
)
def test_an_answer_of_another_version_is_one_error(service: Service, said: Any, place: str) -> None:
    service.says(200, said)
    with pytest.raises(HostError) as found:
        asked(service, Client.me)
    assert (found.value.code, found.value.where) == ("grid.answer", f"GET {service.url}/v1/me")
    assert place in found.value.message
    assert "version" in str(found.value.cure)


def test_a_refusal_has_code_place_cure_and_all_mistakes(service: Service) -> None:
    further = [{"code": "key.unknown", "message": "what is that?", "where": "more"}]
    service.says(422, {"code": "key.missing", "message": "none", "where": "end", "cure": "give it",
                       "further": further})  # fmt: skip
    with pytest.raises(ScenarioError) as found:
        asked(service, Client.me)
    error = found.value
    assert (error.code, error.message, error.where, error.cure) == ("key.missing", "none", "end", "give it")
    assert [(one.code, one.where) for one in error.further] == [("key.unknown", "more")]


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_cannot_answer_now_is_no_bad_input(service: Service, status: int) -> None:
    service.says(status, {"code": "grid.database", "message": "away"})
    with pytest.raises(RunError, match="away"):
        asked(service, Client.me)


@pytest.mark.parametrize("said", [{"detail": "Not Found"}, "no", []], ids=repr)
def test_an_error_of_another_service_is_one_error(service: Service, said: Any) -> None:
    service.says(404, said)
    with pytest.raises(HostError) as found:
        asked(service, Client.me)
    assert found.value.code == "grid.answer"
    assert "404" in found.value.message
    service.body = b"<html>"
    with pytest.raises(HostError, match="this is no grid manager"):
        asked(service, Client.me)
