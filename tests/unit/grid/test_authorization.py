"""Every route for every role: who is let in, and that nobody else changes or learns anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.grid import Manager, at, request

pytestmark = pytest.mark.slow

ROLES = ("admin", "lead", "holder", "member", "viewer", "outsider")
"""``holder`` is the member who booked; ``outsider`` leads another project."""
SCOPES = ("read", "reserve", "manage")
ALL = frozenset(ROLES)
ADMIN = frozenset({"admin"})
LEAD = ADMIN | {"lead"}
HOLDER = LEAD | {"holder"}
MEMBER = HOLDER | {"member"}
VIEWER = MEMBER | {"viewer"}
OPEN = None
"""Needs no token."""


@dataclass(frozen=True)
class Rule:
    """Who may call a route, and with which scope; ``hidden``: outsiders hear that there is no such thing."""

    roles: frozenset[str] | None
    scope: str | None = None
    body: Any = None
    hidden: bool = False
    query: str = ""


NEW = request((5, 6), slice="another", nodes=["b1"])
LIVE = "http://127.0.0.1:8400/abc/?token=def"
VIOLATION = {
    "at": at(0.5), "until": at(0.6), "radio": "a1:wlan0", "what": "power", "frames": 3, "channel": 36,
}  # fmt: skip
RULES: dict[tuple[str, str], Rule] = {
    ("GET", "/v1/health"): Rule(OPEN),
    ("GET", "/v1/me"): Rule(ALL, "read"),
    ("GET", "/v1/users"): Rule(ADMIN, "manage"),
    ("POST", "/v1/users"): Rule(ADMIN, "manage", {"name": "eve"}),
    ("POST", "/v1/users/{name}/disable"): Rule(ADMIN, "manage"),
    ("POST", "/v1/users/{name}/enable"): Rule(ADMIN, "manage"),
    ("POST", "/v1/users/{name}/tokens"): Rule(ADMIN, "manage", {}),
    ("GET", "/v1/tokens"): Rule(ALL, "read"),
    ("POST", "/v1/tokens"): Rule(ALL, None, {"scopes": ["read"]}),
    ("DELETE", "/v1/tokens/{identity}"): Rule(ADMIN, "manage", hidden=True),
    ("GET", "/v1/projects"): Rule(ALL, "read"),
    ("POST", "/v1/projects"): Rule(ADMIN, "manage", {"name": "r"}),
    ("GET", "/v1/projects/{name}"): Rule(VIEWER, "read", hidden=True),
    ("PUT", "/v1/projects/{name}/quota"): Rule(ADMIN, "manage", {"nodes": 3}),
    ("PUT", "/v1/projects/{name}/members/{user}"): Rule(LEAD, "manage", {"role": "lead"}, hidden=True),
    ("DELETE", "/v1/projects/{name}/members/{user}"): Rule(LEAD, "manage", hidden=True),
    ("GET", "/v1/audit"): Rule(LEAD, "read", hidden=True, query="?project=p"),
    ("GET", "/v1/inventory"): Rule(ALL, "read"),
    ("GET", "/v1/calendar"): Rule(ALL, "read", query="?from=2027-01-15T08:00:00Z&to=2027-01-15T09:00:00Z"),
    ("GET", "/v1/violations"): Rule(ALL, "read"),
    ("GET", "/v1/reservations"): Rule(ALL, "read"),
    ("POST", "/v1/reservations"): Rule(MEMBER, "reserve", NEW, hidden=True),
    ("POST", "/v1/reservations/check"): Rule(MEMBER, "reserve", NEW, hidden=True),
    ("GET", "/v1/reservations/{identity}"): Rule(VIEWER, "read", hidden=True),
    ("GET", "/v1/reservations/{identity}/grant"): Rule(HOLDER, "reserve", hidden=True),
    ("PUT", "/v1/reservations/{identity}/live"): Rule(HOLDER, "reserve", {"url": LIVE}, hidden=True),
    ("POST", "/v1/reservations/{identity}/violations"): Rule(
        HOLDER, "reserve", {"found": [VIOLATION]}, hidden=True
    ),
    ("POST", "/v1/reservations/{identity}/extend"): Rule(HOLDER, "reserve", {"end": at(3)}, hidden=True),
    ("POST", "/v1/reservations/{identity}/release"): Rule(HOLDER, "reserve", hidden=True),
}


class World:
    """A manager whose database is set back before each call."""

    def __init__(self, folder: Path):
        self.file, self.kept = folder / "grid.db", folder / "kept.db"
        self.manager = Manager(self.file)
        self.tokens = {"admin": self.manager.admin}
        for role in ("lead", "holder", "member", "viewer"):
            self.tokens[role] = self.manager.user(role, "member" if role == "holder" else role)
        self.tokens["outsider"] = self.manager.user("outsider", "lead", "q")
        self.victim = self.manager.user("victim", "viewer")
        self.scoped = {
            (role, scope): self.manager.token(role, scopes=[scope]) for role in ROLES for scope in SCOPES
        }
        self.reservation = self.manager.book((0, 2), self.tokens["holder"], nodes=["a1"])["id"]
        self.manager.database.close()  # which ends the write-ahead log
        shutil.copy(self.file, self.kept)
        self.content = self.manager.dump()

    def call(self, route: tuple[str, str], token: str) -> tuple[int, str, bool]:
        """Calls a route; returns status, code of the error, and whether the database changed."""
        method, path = route
        rule = RULES[route]
        identity = self.victim.split("_")[1] if "tokens" in path else self.reservation
        name = "p" if "projects" in path else "victim"
        filled = path.format(name=name, user="victim", identity=identity) + rule.query
        answer = self.manager.call(method, filled, rule.body, token)
        said = answer.json()
        code = said.get("code", "") if isinstance(said, dict) else ""
        changed = self.manager.dump() != self.content
        if changed:
            self.manager.database.close()
            shutil.copy(self.kept, self.file)
        return answer.status_code, code, changed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("grid"))
    yield world
    world.manager.close()


routes = pytest.mark.parametrize("route", list(RULES), ids=" ".join)


def test_every_route_has_a_rule(world: World) -> None:
    paths = world.manager.call("GET", "/openapi.json", token="").json()["paths"]
    assert {(method.upper(), path) for path, item in paths.items() for method in item} == set(RULES)


@routes
def test_who_is_let_in(world: World, route: tuple[str, str]) -> None:
    rule = RULES[route]
    for role in ROLES:
        status, code, changed = world.call(route, world.tokens[role])
        if rule.roles is None or role in rule.roles:
            assert status < 300, (role, status, code)
            continue
        expected = 404 if rule.hidden and (role == "outsider" or "tokens" in route[1]) else 403
        assert (status, changed) == (expected, False), (role, code)


@routes
def test_a_token_without_the_scope_is_refused(world: World, route: tuple[str, str]) -> None:
    rule = RULES[route]
    for role in sorted(rule.roles or ()):
        for scope in SCOPES:
            status, code, changed = world.call(route, world.scoped[role, scope])
            allowed = scope in rule.body["scopes"] if rule.scope is None else scope == rule.scope
            assert (status < 300) == allowed, (role, scope, status, code)
            assert allowed or (code, changed) == ("token.scope", False)


@routes
def test_without_a_valid_token_nobody_is_let_in(world: World, route: tuple[str, str]) -> None:
    good = world.tokens["admin"]
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    for token in (
        "",
        "x",
        wrong,
        good + "A",
        good.replace("alg_", "alg-"),
        "alg_" + "0" * 16 + "_" + "A" * 43,
    ):
        status, code, changed = world.call(route, token)
        if RULES[route].roles is None:
            assert status == 200
        else:
            assert (status, code, changed) == (401, "token.invalid", False)


def test_ended_tokens_and_disabled_users_are_shut_out(manager: Manager) -> None:
    token = manager.user("ann", "member", hours=1)
    other = manager.token("ann", hours=10)
    manager.must("DELETE", f"/v1/tokens/{other.split('_')[1]}", token=other)
    assert manager.refused("GET", "/v1/me", token=other)["status"] == 401
    manager.must("GET", "/v1/me", token=token)
    manager.must("POST", "/v1/users/ann/disable")
    assert manager.refused("GET", "/v1/me", token=token)["status"] == 401
    manager.must("POST", "/v1/users/ann/enable")
    manager.must("GET", "/v1/me", token=token)
    manager.now += 3600
    assert manager.refused("GET", "/v1/me", token=token)["status"] == 401


def test_a_token_gives_no_more_than_it_has(manager: Manager) -> None:
    token = manager.user("ann", "member", scopes=["read"], hours=2)
    assert manager.refused("POST", "/v1/tokens", {"scopes": ["reserve"]}, token)["code"] == "token.scope"
    made = manager.must("POST", "/v1/tokens", {"scopes": ["read"], "hours": 8000}, token)
    own = {one["id"]: one for one in manager.must("GET", "/v1/tokens", token=token)}
    assert made["expires"] == own[token.split("_")[1]]["expires"]
    assert not any("token" in one or "digest" in one for one in own.values())


def test_secrets_are_not_stored(manager: Manager) -> None:
    secret = manager.admin.split("_", 2)[2]
    assert secret not in "".join(manager.dump())


def test_others_learn_nothing_but_what_is_taken(manager: Manager) -> None:
    holder, outsider = manager.user("ann", "member"), manager.user("bob", "member", "q")
    booked = manager.book((0, 2), holder, nodes=["a1"], slice="private")
    query = f"/v1/calendar?from={at(0)}&to={at(3)}".replace("+00:00", "Z")
    (seen,) = manager.must("GET", query, token=outsider)
    assert set(seen) == {"start", "end", "radios", "channels", "slots", "mine"}
    assert seen["radios"] == booked["grant"]["radios"]
    assert manager.must("GET", "/v1/reservations", token=outsider) == []
    assert [one["name"] for one in manager.must("GET", "/v1/projects", token=outsider)] == ["q"]
    missing = manager.refused("GET", "/v1/projects/nothing", token=outsider)
    hidden = manager.refused("GET", "/v1/projects/p", token=outsider)
    assert missing["message"].replace("nothing", "p") == hidden["message"]
    refused = manager.refused(
        "POST", "/v1/reservations", request((0, 2), project="q", nodes=["a1"], radios=2), outsider
    )
    assert "ann" not in str(refused)
    assert "private" not in str(refused)
