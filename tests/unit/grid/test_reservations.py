"""Reservations over the API: windows, quotas, the queue, extension, release; refusals change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from airloom.errors import ScenarioError
from airloom.grid import inventory, service
from airloom.grid.storage.database import Database
from airloom.scenario.source import Source
from helpers.grid import ONE_NODE, Manager, at, request

BOOK = "/v1/reservations"


def same(one: str, other: str) -> bool:
    return datetime.fromisoformat(one) == datetime.fromisoformat(other)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """One manager for all calls that are refused and change nothing."""
    manager = Manager(tmp_path_factory.mktemp("grid") / "grid.db")
    yield manager
    manager.close()


BAD = {
    "empty": (request((1, 1)), "window.empty", "end"),
    "backwards": (request((2, 1)), "window.empty", "end"),
    "past": (request((-1, 1)), "window.past", "start"),
    "long": (request((0, 169)), "window.long", "end"),
    "ahead": (request((2159, 2161)), "window.ahead", "end"),
    "latest": (request((2, 3), latest=at(1)), "window.latest", "latest"),
    "endless": ({"project": "p", "slice": "s"}, "key.missing", "end"),
    "zone": ({**request((1, 2)), "end": "2027-01-15T10:00:00"}, "value.invalid", "end"),
    "fraction": ({**request((1, 2)), "end": "2027-01-15T10:00:00.5Z"}, "value.invalid", "end"),
    "number": ({**request((1, 2)), "end": "inf"}, "value.invalid", "end"),
    "node": (request((1, 2), nodes=["a1", "a9"]), "node.unknown", "nodes[1]"),
    "node-twice": (request((1, 2), nodes=["a1", "a1"]), "node.twice", "nodes[1]"),
    "node-path": (request((1, 2), nodes=["../../etc/passwd"]), "value.invalid", "nodes.0"),
    "node-sql": (request((1, 2), nodes=["a1'; DROP TABLE users"]), "value.invalid", "nodes.0"),
    "channel": (request((1, 2), channels=[40, 157]), "channel.unknown", "channels[1]"),
    "channel-twice": (request((1, 2), channels=[40, 40]), "channel.twice", "channels[1]"),
    "slots": (request((1, 2), slots=2), "slots.large", "slots"),
    "radios": (request((1, 2), nodes=["a1"], radios=3), "radios.large", "radios"),
    "count": (request((1, 2), count=7), "count.large", "count"),
    "count-small": (request((1, 2), nodes=["a1", "a2"], count=1), "count.small", "count"),
    "channel-count": (request((1, 2), channel_count=4), "count.large", "channel_count"),
    "zero": (request((1, 2), count=0), "value.invalid", "count"),
    "power": (request((1, 2), power_dbm=10.5), "power.large", "power_dbm"),
    "area": (request((1, 2), area=[1, 0, 0, 0]), "area.empty", "area"),
    "key": (request((1, 2), surprise=1), "key.unknown", "surprise"),
    "slice": (request((1, 2), slice="a" * 33), "value.invalid", "slice"),
    "no-project": (request((1, 2), project="nothing"), "project.unknown", None),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_and_changes_nothing(unchanged: Manager, name: str) -> None:
    body, code, where = BAD[name]
    said = unchanged.refused("POST", BOOK, body)
    assert (said["code"], said.get("where")) == (code, where)
    assert said["message"]
    assert unchanged.refused("POST", BOOK + "/check", body)["code"] == code


@pytest.mark.parametrize("body", ["[]", '"x"', "{", "null", '{"end": NaN}', "\x00", "[" * 5000])
def test_bodies_that_are_no_request_are_refused(unchanged: Manager, body: str) -> None:
    headers = {"Authorization": f"Bearer {unchanged.admin}", "Content-Type": "application/json"}
    answer = unchanged.runner.run(unchanged.client.post(BOOK, content=body, headers=headers))
    assert answer.status_code in (400, 422)
    assert answer.json()["code"]


def test_a_body_that_is_too_large_is_refused(unchanged: Manager) -> None:
    assert unchanged.refused("POST", BOOK, {"x": "y" * 300_000})["code"] == "body.size"


def test_a_grant_has_what_was_asked_for(manager: Manager) -> None:
    one = manager.book((1, 2), nodes=["a2"], count=3, radios=2, channels=[40])
    assert one["state"] == "booked"
    assert one["grant"] == {
        "radios": {name: ["wlan0", "wlan1"] for name in ("a1", "a2", "a3")},
        "channels": [40],
        "slots": [0],
        "power_dbm": 10.0,
    }
    assert manager.must("GET", f"{BOOK}/{one['id']}")["grant"] == one["grant"]


def test_the_state_follows_the_clock(manager: Manager) -> None:
    one = manager.book((1, 2))
    path = f"{BOOK}/{one['id']}"
    assert manager.refused("GET", path + "/grant")["code"] == "reservation.inactive"
    manager.now += 3600
    held = manager.must("GET", path + "/grant")
    assert (held["state"], held["remaining_s"]) == ("active", 3600)
    assert set(held["positions"]) == set(one["grant"]["radios"])
    manager.now += 3600
    assert manager.must("GET", path)["state"] == "ended"
    assert manager.refused("GET", path + "/grant")["code"] == "reservation.inactive"
    assert manager.refused("POST", path + "/release")["code"] == "reservation.over"


def test_a_refusal_offers_the_nearest_window(one_node: Manager) -> None:
    one_node.book((0, 3), radios=2, channel_count=2)
    said = one_node.refused("POST", BOOK, request((2, 4), slice="t"))
    assert (said["code"], said["proven"]) == ("reservation.impossible", True)
    assert same(said["nearest"]["start"], at(3))
    assert same(said["nearest"]["end"], at(5))
    one_node.must("POST", BOOK, {**request((0, 0), slice="t"), **said["nearest"]})


def test_a_window_may_move_up_to_the_latest_start(one_node: Manager) -> None:
    one_node.book((0, 3), radios=2)
    assert one_node.refused("POST", BOOK, request((2, 4), slice="t", latest=at(2.5)))["proven"]
    moved = one_node.book((2, 4), slice="t", latest=at(4))
    assert same(moved["start"], at(3))


def test_the_slots_of_a_channel_are_shared(one_node: Manager) -> None:
    found = [one_node.book((0, 1), slice=f"s{number}", slots=1, channels=[36])["grant"] for number in (0, 1)]
    assert [one["slots"] for one in found] == [[0], [1]]
    assert [one["radios"] for one in found] == [{"n": ["w0"]}, {"n": ["w1"]}]


def test_a_repeated_call_books_once(manager: Manager) -> None:
    one, again = (manager.book((1, 2), key="k1") for _ in range(2))
    assert one["id"] == again["id"]
    assert manager.refused("POST", BOOK, request((1, 2), slice="t", key="k1"))["code"] == "reservation.key"
    assert len(manager.must("GET", BOOK)) == 1


def test_the_queue_is_served_in_order_when_something_is_released(one_node: Manager) -> None:
    held = one_node.book((0, 4), radios=2)
    waiting = [one_node.book((1, 2), slice=f"w{number}", radios=2, wait=True) for number in range(2)]
    assert [one["state"] for one in waiting] == ["waiting", "waiting"]
    one_node.must("POST", f"{BOOK}/{held['id']}/release")
    states = [one_node.must("GET", f"{BOOK}/{one['id']}") for one in waiting]
    assert [one["state"] for one in states] == ["booked", "waiting"]
    one_node.must("POST", f"{BOOK}/{waiting[0]['id']}/release")
    assert one_node.must("GET", f"{BOOK}/{waiting[1]['id']}")["grant"]["radios"] == {"n": ["w0", "w1"]}


def test_newcomers_do_not_overtake_the_queue(one_node: Manager) -> None:
    """After a restart nothing has served the queue yet; the first call does."""
    held = one_node.book((0, 4), radios=2)
    waiting = one_node.book((1, 2), slice="w", radios=2, wait=True)
    one_node.service.reservations.serve_queue = lambda: 0  # type: ignore[method-assign]
    one_node.must("POST", f"{BOOK}/{held['id']}/release")
    del one_node.service.reservations.serve_queue
    assert (
        one_node.refused_booking(request((1, 2), slice="new", radios=2))["code"] == "reservation.impossible"
    )
    assert one_node.must("GET", f"{BOOK}/{waiting['id']}")["state"] == "booked"


def test_a_request_that_waits_too_long_expires(one_node: Manager) -> None:
    one_node.book((0, 4), radios=2)
    waiting = one_node.book((1, 2), slice="w", radios=2, wait=True)
    one_node.now += 3601
    one_node.service.reservations.serve_queue()
    assert one_node.must("GET", f"{BOOK}/{waiting['id']}")["state"] == "expired"


def test_the_queue_has_an_end(one_node: Manager) -> None:
    one_node.book((0, 4), radios=2)
    for number in range(3):
        one_node.book((1, 2), slice=f"w{number}", wait=True)
    assert one_node.refused("POST", BOOK, request((1, 2), slice="x", wait=True))["code"] == "queue.full"


def test_an_early_release_frees_the_rest(one_node: Manager) -> None:
    held = one_node.book((0, 4), radios=2)
    one_node.now += 3600
    released = one_node.must("POST", f"{BOOK}/{held['id']}/release")
    assert released["state"] == "released"
    assert same(released["end"], at(1))
    one_node.book((1, 4), slice="t", radios=2)
    query = f"/v1/calendar?from={at(0)}&to={at(4)}".replace("+", "%2B")
    assert [one["slice"] for one in one_node.must("GET", query)] == ["s", "t"]


def test_the_live_page_of_a_run_is_for_the_project_and_while_it_runs(one_node: Manager) -> None:
    one = one_node.book((1, 2))
    path, live = f"{BOOK}/{one['id']}/live", {"url": "http://127.0.0.1:8401/a_b/?token=c-D0"}
    assert one["live"] is None
    assert one_node.refused("PUT", path, live)["code"] == "reservation.inactive"
    one_node.now += 3600
    assert one_node.must("PUT", path, live)["live"] == live["url"]
    member, outsider = one_node.user("m", "viewer"), one_node.user("o", "lead", "q")
    assert one_node.must("GET", BOOK, token=member)[0]["live"] == live["url"]
    assert one_node.must("GET", BOOK, token=outsider) == []
    query = f"/v1/calendar?from={at(0)}&to={at(4)}".replace("+", "%2B")
    assert "live" not in str(one_node.must("GET", query, token=outsider))
    for wrong in ("javascript:alert(1)", 'http://a/"onclick', "http://a/ b", "http://" + "a" * 300):
        assert one_node.refused("PUT", path, {"url": wrong})["code"] == "value.invalid"
    assert one_node.must("PUT", path, {"url": None})["live"] is None
    one_node.must("PUT", path, live)
    one_node.now += 3600
    assert one_node.must("GET", f"{BOOK}/{one['id']}")["live"] is None, "the window is over"


def test_a_database_of_the_first_version_is_brought_to_this_one(tmp_path: Path) -> None:
    manager = Manager(tmp_path / "grid.db")
    booked = manager.book((0, 1))
    with manager.database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE reservations DROP COLUMN live")
        connection.exec_driver_sql("DROP TABLE violations")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    manager.database.upgrade()
    assert manager.must("GET", f"{BOOK}/{booked['id']}")["grant"] == booked["grant"]
    assert manager.must("GET", "/v1/violations") == []
    manager.close()


def test_an_extension_keeps_the_grant_or_says_how_far_it_goes(one_node: Manager) -> None:
    one = one_node.book((0, 1), radios=2)
    path = f"{BOOK}/{one['id']}/extend"
    longer = one_node.must("POST", path, {"end": at(2)})
    assert longer["grant"] == one["grant"]
    assert same(longer["end"], at(2))
    one_node.book((3, 4), slice="t")
    said = one_node.refused("POST", path, {"end": at(5)})
    assert said["code"] == "reservation.conflict"
    assert same(said["latest_end"], at(3))
    one_node.must("POST", path, {"end": at(3)})
    for end, code in ((at(3), "window.end"), (at(1), "window.end"), (at(25), "window.long")):
        assert one_node.refused("POST", path, {"end": end})["code"] == code


@pytest.mark.parametrize(
    ("quota", "second"),
    [
        ({"nodes": 3}, {"count": 2}),
        ({"radio_hours": 7}, {"count": 2, "radios": 1}),
        ({"reservations": 1}, {"count": 1}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_quotas_hold(manager: Manager, quota: dict[str, int], second: dict[str, Any]) -> None:
    manager.must("PUT", "/v1/projects/p/quota", quota)
    manager.book((0, 2), count=2, slice="one")
    said = manager.refused("POST", BOOK, request((1, 3), slice="two", **second))
    assert said["code"] == "quota.exceeded"
    manager.must("PUT", "/v1/projects/p/quota", {})
    manager.book((1, 3), slice="two", **second)


@pytest.mark.parametrize(
    ("quota", "asked", "said"),
    [
        ({"nodes": 4}, {"count": 5}, "5 nodes are more than the 4 that 'p' may hold at one time"),
        ({"radio_hours": 3}, {"count": 2, "radios": 2}, "it takes 4 radio-hours, and 'p' may hold 3"),
        ({"reservations": 0}, {"count": 1}, "'p' may hold 0 reservations, and this makes it 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("wait", [False, True], ids=["now", "waiting"])
def test_a_request_above_the_quota_is_told_so_whatever_else_is_against_it(
    manager: Manager, quota: dict[str, int], asked: dict[str, Any], said: str, wait: bool
) -> None:
    """The six nodes are in two rooms, so that five have no common part of the testbed."""
    manager.must("PUT", "/v1/projects/p/quota", quota)
    for path in (BOOK, f"{BOOK}/check"):
        refused = manager.refused("POST", path, request((1, 2), wait=wait, **asked))
        assert (refused["code"], refused["message"]) == ("quota.exceeded", said)


def test_a_refusal_names_the_quota_beside_what_others_hold(one_node: Manager) -> None:
    one_node.must("PUT", "/v1/projects/p/quota", {"reservations": 1})
    one_node.book((0, 1), radios=2)
    refused = one_node.refused("POST", BOOK, request((0, 1), slice="t"))
    assert refused["code"] == "reservation.impossible"
    assert "its quota does not allow it" in refused["message"]
    assert "'p' may hold 1 reservations, and this makes it 2" in refused["message"]


def test_an_extension_counts_for_the_quota(manager: Manager) -> None:
    manager.must("PUT", "/v1/projects/p/quota", {"radio_hours": 2})
    one = manager.book((0, 2))
    said = manager.refused("POST", f"{BOOK}/{one['id']}/extend", {"end": at(3)})
    assert said["code"] == "quota.exceeded"


def test_everything_is_in_the_audit_log(manager: Manager) -> None:
    one = manager.book((0, 2))
    manager.must("POST", f"{BOOK}/{one['id']}/extend", {"end": at(3)})
    manager.must("POST", f"{BOOK}/{one['id']}/release")
    rows = manager.must("GET", "/v1/audit?project=p")
    actions = [row["action"] for row in reversed(rows)]
    assert actions == ["project.make", "reservation.grant", "reservation.extend", "reservation.release"]
    assert {row["user"] for row in rows} == {"admin"}


def test_too_many_calls_are_refused(tmp_path: Any) -> None:
    from airloom.grid.api.gate import Rate

    now = [0.0]
    rate = Rate(2.0, 3, lambda: now[0])
    assert [rate.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert rate.wait("b") == 0
    now[0] = 0.5
    assert [rate.wait("a"), rate.wait("a")] == [0, 0.5]


def test_new_invalid_tokens_do_not_get_around_the_limit() -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from airloom.grid.api.gate import Gate, Rate

    def answer(request: Request) -> Response:
        return Response(status_code=200 if request.headers["authorization"] == "Bearer good" else 401)

    app = Gate(
        Starlette(routes=[Route("/", answer)]), Rate(1.0, 3, lambda: 0.0), lambda token: token == "good"
    )

    async def statuses() -> list[int]:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://grid") as client:
            tokens = ["good", "bad1", "bad2", "bad3", "bad4", "good"]
            return [
                (await client.get("/", headers={"Authorization": f"Bearer {token}"})).status_code
                for token in tokens
            ]

    assert asyncio.run(statuses()) == [200, 401, 401, 401, 429, 200]


def test_an_inventory_without_what_is_held_is_refused(one_node: Manager) -> None:
    one_node.book((0, 2), channels=[40])
    bed = inventory.checked(Source.of_text(ONE_NODE.replace("[36, 40]", "[36]")))
    with pytest.raises(ScenarioError, match="the inventory lacks channel 40"):
        service.make(bed, Database(str(one_node.path)), clock=lambda: one_node.now)


def test_the_migrations_make_the_tables_of_the_code(one_node: Manager) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from airloom.grid.storage.tables import Table

    with one_node.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []
