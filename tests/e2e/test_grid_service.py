"""The grid manager as a process of its own, on SQLite and PostgreSQL: races, and SIGKILL at any point."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import HostError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

import httpx2

from airloom.grid.admission import Held, beside, conflicts
from airloom.grid.grants import Grant
from airloom.grid.inventory import load
from airloom.grid.isolation import Isolation
from helpers.grid import ONE_NODE, SMALL
from helpers.grid_server import WAIT_S, Server, postgres

CLIENTS = 200
DEATHS = 2
STOPPED = 143
BOOK = "/v1/reservations"

pytestmark = pytest.mark.timeout(300)
"""Starts of the service load its packages anew, and other tests use the same processors."""


def at(hours: float) -> str:
    when = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=round(hours * 3600))
    return when.isoformat()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "grid.db")
    else:
        with postgres() as server:
            yield server.url


def test_of_200_clients_that_book_the_last_slot_exactly_one_wins(database: str, tmp_path: Path) -> None:
    inventory = tmp_path / "one.yaml"
    inventory.write_text(ONE_NODE)
    server = Server(inventory, database)
    try:
        server.must("POST", "/v1/projects", {"name": "p"})
        window = {"project": "p", "start": at(1), "end": at(2)}
        server.must("POST", BOOK, {**window, "slice": "first", "slots": 1, "channels": [36]})
        together = threading.Barrier(CLIENTS)

        def book(number: int) -> tuple[int, str]:
            with server.client() as client:
                client.get("/v1/health")
            together.wait(60)
            # On a new connection: the service may have closed one that was idle for seconds.
            with server.client() as client:
                body = {**window, "slice": f"s{number}", "slots": 1, "channels": [36]}
                answer = client.post(BOOK, json=body)
            return answer.status_code, answer.json().get("code", "")

        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(book, range(CLIENTS)))
        assert answers.count((201, "")) == 1, answers
        assert answers.count((409, "reservation.impossible")) == CLIENTS - 1, answers
        assert len(server.must("GET", BOOK)) == 2
        assert server.stop() == STOPPED
    finally:
        server.kill()


def test_nothing_is_lost_when_the_service_is_killed(database: str) -> None:
    """Clients book, extend and release without pause, while the service dies again and again."""
    dice = random.Random(database)
    server = Server(SMALL, database)
    isolation = Isolation(load(SMALL))
    told: dict[str, dict[str, Any]] = {}
    """The last answer for each reservation."""
    unsure: dict[str, dict[str, Any]] = {}
    """Requests without an answer, by key."""
    try:
        server.must("POST", "/v1/projects", {"name": "p"})
        numbers = itertools.count()
        for _ in range(DEATHS):
            over = threading.Event()

            def work(over: threading.Event) -> None:
                with server.client() as client:
                    while not over.is_set():
                        key = f"k{next(numbers)}"
                        first = 1 + random.random() * 100
                        body = {"project": "p", "slice": key, "count": 2, "key": key}
                        body |= {"start": at(first), "end": at(first + 1)}
                        unsure[key] = body
                        try:
                            answer = client.post(BOOK, json=body)
                            del unsure[key]
                            if answer.status_code == 409:
                                continue
                            assert answer.status_code == 201, answer.text
                            one = answer.json()
                            told[one["id"]] = one
                            word = random.choice(["extend", "release", "none"])
                            if word == "none":
                                continue
                            # Without an answer both states are right.
                            told[one["id"]] = {**one, "maybe": word}
                            more = {"end": at(first + 1.5)} if word == "extend" else None
                            changed = client.post(f"{BOOK}/{one['id']}/{word}", json=more)
                            told[one["id"]] = changed.json() if changed.is_success else one
                        except httpx2.HTTPError:
                            return

            with ThreadPoolExecutor(4) as pool:
                working = [pool.submit(work, over) for _ in range(4)]
                enough, end = len(told) + 3, time.monotonic() + WAIT_S
                while len(told) < enough and time.monotonic() < end:
                    time.sleep(0.01)
                time.sleep(dice.random() * 0.3)  # decides where it dies, and nothing else
                server.kill()
                over.set()
                for one in working:
                    one.result()
            assert len(told) >= enough
            server.start()
            found = {one["id"]: one for one in server.must("GET", BOOK + "?past=true")}
            for identity, one in told.items():
                assert_kept(found[identity], one)
            for key, body in list(unsure.items()):
                again = server.must("POST", BOOK, body)  # books once, whether it was lost or not
                assert again["slice"] == key
                told[again["id"]] = again
            unsure.clear()
            assert_consistent(isolation, server)
        assert server.stop() == STOPPED
    finally:
        server.kill()


def assert_kept(found: dict[str, Any], told: dict[str, Any]) -> None:
    """What was answered is there; a change without an answer happened as a whole or not at all."""
    assert found["grant"] == told["grant"]
    if "maybe" not in told:
        assert (found["state"], found["end"]) == (told["state"], told["end"])
    elif told["maybe"] == "release":
        assert found["state"] in ("released", told["state"])
    else:
        assert found["state"] == told["state"]


def assert_consistent(isolation: Isolation, server: Server) -> None:
    """No two grants disturb each other, and each reservation has its row in the audit log."""
    rows = server.must("GET", BOOK)
    held = [
        Held(
            one["id"],
            one["slice"],
            int(datetime.fromisoformat(one["start"]).timestamp()),
            int(datetime.fromisoformat(one["end"]).timestamp()),
            Grant.of(one["grant"]),
        )
        for one in rows
    ]
    for number, one in enumerate(held):
        assert not list(conflicts(isolation, one.slice, one.grant, beside(held[:number], one.start, one.end)))
    noted = {row["subject"] for row in server.must("GET", "/v1/audit?project=p")}
    assert {one.id for one in held} <= noted


def test_calls_say_that_the_database_is_away_and_go_on_when_it_is_back(tmp_path: Path) -> None:
    with postgres() as database:
        server = Server(SMALL, database.url)
        try:
            server.must("POST", "/v1/projects", {"name": "before"})
            database.stop()
            with server.client() as client:
                answer = client.get("/v1/projects")
            assert answer.status_code == 503, answer.text
            assert answer.json()["code"] == "grid.database"
            database.start()
            server.must("POST", "/v1/projects", {"name": "after"})
            names = {one["name"] for one in server.must("GET", "/v1/projects")}
            assert names == {"before", "after"}
        finally:
            server.kill()
