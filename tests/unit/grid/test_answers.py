"""What the REST API answers, to the letter; and that its description has each of these answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from airloom import __version__
from airloom.grid.api.app import api
from airloom.grid.client import Client
from helpers.grid import Manager, at, request

EIGHT, NINE, TEN = (f"2027-01-15T{hour}:00:00Z" for hour in ("08", "09", "10"))
ADMIN = {"name": "admin", "admin": True, "disabled": False, "created": EIGHT}
ANN = {**ADMIN, "name": "ann", "admin": False}
FREE = {"nodes": None, "radio_hours": None, "reservations": None}
GRANT = {"radios": {"n": ["w0"]}, "channels": [36], "slots": [0], "power_dbm": 16.0}
ASKED = {
    "nodes": [], "count": 1, "area": None, "radios": 1, "channels": [36], "channel_count": 1, "slots": 1,
    "power_dbm": 16.0, "apart": False,
}  # fmt: skip
WAITING = {**ASKED, "radios": 2, "channels": [], "slots": None}
BOOKED = {
    "project": "p", "user": "ann", "slice": "s", "state": "active", "start": EIGHT, "end": NINE,
    "latest": EIGHT, "created": EIGHT, "asked": ASKED, "grant": GRANT, "live": None,
}  # fmt: skip
ONE = request((0, 1), slots=1, channels=[36], key="k")


@pytest.fixture
def ann(one_node: Manager) -> str:
    return one_node.user("ann", "member")


def without(said: dict[str, Any], *keys: str) -> dict[str, Any]:
    """An answer without what is drawn by lot; fails if that is not there."""
    assert set(keys) <= set(said)
    return {key: value for key, value in said.items() if key not in keys}


def test_who_there_is(one_node: Manager, ann: str) -> None:
    must = one_node.must
    assert must("GET", "/v1/health", token="") == {"status": "ok", "version": __version__, "testbed": "one"}
    assert must("GET", "/v1/me", token=ann) == {
        "user": "ann", "admin": False, "scopes": ["manage", "read", "reserve"], "projects": {"p": "member"},
    }  # fmt: skip
    assert must("POST", "/v1/users/ann/disable") == {**ANN, "disabled": True}
    assert must("POST", "/v1/users/ann/enable") == ANN
    assert must("POST", "/v1/users", {"name": "eve"}) == {**ANN, "name": "eve"}
    assert must("GET", "/v1/users") == [ADMIN, ANN, {**ANN, "name": "eve"}]


def test_tokens(one_node: Manager, ann: str) -> None:
    made = one_node.must("POST", "/v1/tokens", {"scopes": ["read"], "label": "mine", "hours": 2}, ann)
    token = {"label": "mine", "scopes": ["read"], "created": EIGHT, "expires": TEN, "revoked": False}
    assert without(made, "id", "token") == {**token, "user": "ann"}
    own = one_node.must("GET", "/v1/tokens", token=ann)
    assert without(next(one for one in own if one["label"]), "id") == token
    ended = one_node.must("DELETE", f"/v1/tokens/{made['id']}", token=ann)
    assert ended == {**token, "id": made["id"], "revoked": True}


def test_projects(one_node: Manager, ann: str) -> None:
    must, r = one_node.must, {"name": "r", "members": {}}
    made = must("POST", "/v1/projects", {"name": "r", "quota": {"nodes": 3}})
    assert made == {**r, "quota": {**FREE, "nodes": 3}}
    r["quota"] = {**FREE, "radio_hours": 5}
    assert must("PUT", "/v1/projects/r/quota", {"radio_hours": 5}) == r
    with_ann = {**r, "members": {"ann": "viewer"}}
    assert must("PUT", "/v1/projects/r/members/ann", {"role": "viewer"}) == with_ann
    assert must("GET", "/v1/projects/r", token=ann) == with_ann
    assert must("DELETE", "/v1/projects/r/members/ann") == r
    assert must("GET", "/v1/projects", token=ann) == [
        {"name": "p", "quota": FREE, "members": {"ann": "member"}}
    ]
    (row,) = must("GET", "/v1/audit?project=r")[-1:]
    assert without(row, "id") == {
        "at": EIGHT, "user": "admin", "action": "project.make", "project": "r", "subject": "r",
        "detail": {**FREE, "nodes": 3},
    }  # fmt: skip


def test_the_inventory(one_node: Manager) -> None:
    assert one_node.must("GET", "/v1/inventory") == {
        "name": "one", "description": "", "phy": "802.11a", "medium": {}, "channels": [36, 40],
        "power_dbm": 16.0, "isolation_db": 10.0,
        "slots": {"frame": 2, "length_ns": 10_000_000, "guard_ns": 100_000},
        "nodes": {"n": {"position_m": [0.0, 0.0, 0.0], "radios": ["w0", "w1"],
                        "noise_dbm": {"36": -93.96, "40": -93.96}}},
    }  # fmt: skip


def test_the_medium_of_the_inventory_has_what_it_says(manager: Manager) -> None:
    medium = manager.must("GET", "/v1/inventory")["medium"]
    assert medium["propagation"]["model"] == "log-distance"
    assert "noise" not in medium, "defaults are absent"


def test_reservations(one_node: Manager, ann: str) -> None:
    must, path = one_node.must, "/v1/reservations"
    possible = must("POST", f"{path}/check", ONE, ann)
    assert possible == {"start": EIGHT, "end": NINE, "grant": GRANT, "best": True}
    booked = must("POST", path, ONE, ann)
    one = {"id": booked["id"], **BOOKED}
    assert booked == {**one, "best": True}
    assert must("POST", path, ONE, ann) == one, "a repeated call is not searched again"
    waits = must("POST", path, request((0, 1), slice="s-2", radios=2, wait=True), ann)
    waiting = {**BOOKED, "slice": "s-2", "state": "waiting", "asked": WAITING, "grant": None}
    assert without(waits, "id") == {**waiting, "best": False}
    assert must("GET", path, token=ann) == [one, {"id": waits["id"], **waiting}]
    one_path = f"{path}/{booked['id']}"
    assert must("GET", one_path, token=ann) == one
    must("POST", path, request((1, 2), slice="s-3", radios=2))
    assert must("GET", f"{one_path}/grant", token=ann) == {
        **one, "now": EIGHT, "remaining_s": 3600, "positions": {"n": [0.0, 0.0, 0.0]}, "booked": ["s-3"],
    }  # fmt: skip
    url = "http://127.0.0.1:8401/a"
    assert must("PUT", f"{one_path}/live", {"url": url}, ann) == {**one, "live": url}
    refused = one_node.refused("POST", f"{one_path}/extend", {"end": at(2)}, ann)
    assert refused == {
        "status": 409, "code": "reservation.conflict", "cure": "book something else", "latest_end": NINE,
        "message": f"what it holds is promised to others from {NINE} on",
    }  # fmt: skip
    assert must("POST", f"{one_path}/release", token=ann) == {
        **one, "state": "released", "end": EIGHT,
    }  # fmt: skip


def test_an_extension(one_node: Manager, ann: str) -> None:
    one = one_node.must("POST", "/v1/reservations", ONE, ann)
    extended = one_node.must("POST", f"/v1/reservations/{one['id']}/extend", {"end": at(2)}, ann)
    assert extended == {"id": one["id"], **BOOKED, "end": TEN}


def test_the_calendar_has_no_keys_for_what_others_may_not_know(one_node: Manager, ann: str) -> None:
    bob = one_node.user("bob", "member", "q")
    identity = one_node.must("POST", "/v1/reservations", ONE, ann)["id"]
    path = f"/v1/calendar?from={EIGHT}&to={TEN}"
    taken = {
        "start": EIGHT, "end": NINE, "radios": {"n": ["w0"]}, "channels": [36], "slots": [0], "mine": False,
    }  # fmt: skip
    assert one_node.must("GET", path, token=bob) == [taken]
    assert one_node.must("GET", path, token=ann) == [
        {**taken, "mine": True, "id": identity, "project": "p", "user": "ann", "slice": "s"}
    ]


def test_violations(one_node: Manager, ann: str) -> None:
    identity = one_node.must("POST", "/v1/reservations", ONE, ann)["id"]
    found = {"radio": "n:w0", "what": "power", "amount": 2.5, "unit": "dB", "frames": 3, "channel": 36}
    body = {"found": [{**found, "at": at(0.5), "until": at(0.5)}]}
    path = f"/v1/reservations/{identity}/violations"
    assert one_node.must("POST", path, body, ann) == {"new": 1, "refused": 0}
    half = "2027-01-15T08:30:00Z"
    whose = {"reservation": identity, "project": "p", "user": "ann", "slice": "s"}
    assert one_node.must("GET", "/v1/violations", token=ann) == [
        {**whose, **found, "at": half, "until": half}
    ]


def test_errors_have_only_the_keys_that_say_something(one_node: Manager, ann: str) -> None:
    refused = one_node.refused
    one_node.must("POST", "/v1/reservations", ONE, ann)
    assert refused("POST", "/v1/reservations", request((0, 1), slice="x", radios=2), ann) == {
        "status": 409, "code": "reservation.impossible", "message": "0 nodes have free radios then",
        "cure": f"the nearest possible start is {NINE}; or let it wait", "proven": True,
        "nearest": {"start": NINE, "end": TEN},
    }  # fmt: skip
    missing = {"code": "key.missing", "message": "Field required"}
    assert refused("POST", "/v1/reservations", {"project": "p", "more": 1}, ann) == {
        "status": 422, **missing, "where": "slice",
        "further": [
            {**missing, "where": "end"},
            {"code": "key.unknown", "message": "Extra inputs are not permitted", "where": "more"},
        ],
    }  # fmt: skip
    assert refused("POST", "/v1/users", {})["further"] == []
    assert refused("GET", "/v1/nothing") == {"status": 404, "code": "http", "message": "Not Found"}
    assert refused("GET", "/v1/me", token="") == {
        "status": 401, "code": "token.invalid", "message": "this needs a valid token",
        "cure": "airloom grid login",
    }  # fmt: skip


# The description

FREE_FORM = {("AuditRow", "detail")}
"""Objects whose keys differ by what they tell of."""


def described(manager: Manager) -> dict[str, Any]:
    found: dict[str, Any] = manager.call("GET", "/openapi.json", token="").json()
    return found


def objects(schemas: dict[str, Any], schema: dict[str, Any], where: str, seen: set[str]) -> Iterator[str]:
    """Yields places of objects without known keys and without a schema of their values."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            seen.add(name)
            for key, one in schemas[name].get("properties", {}).items():
                if (name, key) not in FREE_FORM:
                    yield from objects(schemas, one, f"{name}.{key}", seen)
            if not schemas[name].get("properties"):
                yield name
        return
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from objects(schemas, part, where, seen)
    if schema.get("type") == "array":
        for part in [*schema.get("prefixItems", ()), *([schema["items"]] if "items" in schema else [])]:
            yield from objects(schemas, part, where, seen)
    if schema.get("type") == "object":
        values = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        typed = [one for one in values if isinstance(one, dict) and one]
        for one in typed:
            yield from objects(schemas, one, where, seen)
        if not typed:
            yield where
    if not {"$ref", "anyOf", "oneOf", "type", "const", "enum"} & set(schema):
        yield where


def test_every_route_describes_its_answer_and_its_errors(manager: Manager) -> None:
    description = described(manager)
    schemas, seen, count = description["components"]["schemas"], set[str](), 0
    for path, methods in description["paths"].items():
        for method, call in methods.items():
            count += 1
            (good,) = (one for status, one in call["responses"].items() if status.startswith("2"))
            schema = good["content"]["application/json"]["schema"]
            assert list(objects(schemas, schema, f"{method} {path}", seen)) == []
            error = call["responses"]["default"]["content"]["application/json"]["schema"]
            assert error == {"$ref": "#/components/schemas/Error"}
    assert count == 29
    assert {"Reservation", "Grant", "Asked", "Inventory", "Node", "Medium", "Radio"} <= seen
    # The test sees an object without keys.
    assert list(objects({}, {"type": "object", "additionalProperties": True}, "here", set())) == ["here"]
    assert list(objects({}, {"type": "array", "items": {}}, "here", set())) == ["here"]


class Recording(Client):
    """A client that keeps what it would ask, and which answer it expects."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, str, str]] = []

    def _ask(self, kind: Any, method: str, path: str, body: Any = None, *, query: Any = None) -> Any:
        self.asked.append((kind, method, path))


def test_the_client_expects_what_the_routes_answer() -> None:
    routes = {
        (method, re.sub(r"\{\w+\}", "X", route.path)): route.response_model
        for route in api.routes
        for method in route.methods
    }
    client, called = Recording(), set()
    for name, call in inspect.getmembers(Client, inspect.isfunction):
        if name.startswith("_") or name == "full_identity":
            continue
        wanted = [one for one in inspect.signature(call).parameters.values() if one.name != "self"]
        must = {one.name: () if one.name == "found" else "X" for one in wanted if one.default is one.empty}
        for given in (must, {**must, **{one.name: "X" for one in wanted if one.name == "user"}}):
            getattr(client, name)(**given)
    for kind, method, path in client.asked:
        assert kind == routes[method, f"/v1{path}"], (method, path)
        called.add((method, f"/v1{path}"))
    # Not called by commands and runs.
    assert set(routes) - called == {
        ("GET", "/v1/health"), ("GET", "/v1/users"), ("GET", "/v1/tokens"), ("GET", "/v1/projects"),
        ("GET", "/v1/projects/X"), ("POST", "/v1/users/X/enable"),
    }  # fmt: skip
