"""Asks a grid manager, and keeps where it is and with which token: ``~/.config/airloom/grid.json``."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from airloom import extras
from airloom.errors import HostError, LabError, RunError, ScenarioError, writing
from airloom.grid import answers
from airloom.grid.messages import Violation, Violations
from airloom.host.files import content

Kind = TypeVar("Kind")

TIMEOUT_S = 60.0
_IDENTITY = 32
"""Letters of a reservation's ID."""
_LARGEST = 65536
URL, TOKEN = "AIRLOOM_GRID_URL", "AIRLOOM_GRID_TOKEN"
"""Environment variables that override the file."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where the manager is, and the token for it."""

    url: str
    token: str


def file() -> Path:
    """Returns the path of the file with the login."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "airloom" / "grid.json"


def remember(login: Login) -> Path:
    """Writes the login into a file that only this user can read; returns its path."""
    path = file()
    with writing(path, "grid.login", "the login", f"give {URL} and {TOKEN} in the environment"):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            json.dump(asdict(login), out)
        new.replace(path)
    return path


def remembered() -> Login:
    """Returns the login of the environment or the file."""
    url, token = os.environ.get(URL), os.environ.get(TOKEN)
    if url and token:
        return Login(checked_url(url), token)
    try:
        said = json.loads(content(file(), _LARGEST))
        return Login(checked_url(str(said["url"])), str(said["token"]))
    except FileNotFoundError:
        raise ScenarioError(
            "grid.login", "there is no login", cure="airloom grid login --url http://HOST:8400"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(
            "grid.login", f"cannot be read: {error}", where=str(file()), cure="airloom grid login again"
        ) from None


def checked_url(url: str) -> str:
    """Returns the URL of a service without its last slash; raises an error for what is no such URL."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise ScenarioError(
            "grid.url", f"{url!r} is not the URL of a service", where="--url", cure="http://HOST:8400"
        )
    return url.rstrip("/")


class Client:
    """Calls to a grid manager."""

    def __init__(self, login: Login):
        extras.require("grid")
        import httpx2

        self.login = login
        if not login.token.isascii() or not login.token.isprintable():
            raise ScenarioError(
                "grid.token", "the token has a character that no token has", where="--token",
                cure="copy it again: alg_...",
            )  # fmt: skip
        headers = {"Authorization": f"Bearer {login.token}"} if login.token else {}
        try:
            self._http = httpx2.Client(base_url=login.url, headers=headers, timeout=TIMEOUT_S)
        except (httpx2.InvalidURL, ValueError) as error:
            raise ScenarioError(
                "grid.url", f"{login.url!r} is not the URL of a service: {error}", where="--url",
                cure="http://HOST:8400",
            ) from None  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    # Accounts

    def me(self) -> answers.Me:
        """Who calls."""
        return self._ask(answers.Me, "GET", "/me")

    def add_user(self, name: str, *, admin: bool = False) -> answers.User:
        """Makes a user."""
        return self._ask(answers.User, "POST", "/users", {"name": name, "admin": admin})

    def set_disabled(self, name: str, disabled: bool) -> answers.User:
        """Shuts a user out, or lets the user in again."""
        return self._ask(answers.User, "POST", f"/users/{name}/{'disable' if disabled else 'enable'}")

    def add_token(
        self, scopes: Sequence[str], hours: int, label: str = "", user: str | None = None
    ) -> answers.MadeToken:
        """Makes a token of the caller, or of a user."""
        body = {"scopes": list(scopes), "hours": hours, "label": label}
        path = "/tokens" if user is None else f"/users/{user}/tokens"
        return self._ask(answers.MadeToken, "POST", path, body)

    def revoke_token(self, identity: str) -> answers.Token:
        """Ends a token."""
        return self._ask(answers.Token, "DELETE", f"/tokens/{identity}")

    def add_project(self, name: str, quota: Mapping[str, int | None]) -> answers.Project:
        """Makes a project; ``quota`` as :class:`~airloom.grid.messages.Quota` has it."""
        return self._ask(answers.Project, "POST", "/projects", {"name": name, "quota": quota})

    def set_quota(self, name: str, quota: Mapping[str, int | None]) -> answers.Project:
        """Sets what a project may hold; ``quota`` as :class:`~airloom.grid.messages.Quota` has it."""
        return self._ask(answers.Project, "PUT", f"/projects/{name}/quota", quota)

    def set_member(self, project: str, user: str, role: str) -> answers.Project:
        """Gives a user a role in a project."""
        return self._ask(answers.Project, "PUT", f"/projects/{project}/members/{user}", {"role": role})

    def remove_member(self, project: str, user: str) -> answers.Project:
        """Takes a user out of a project."""
        return self._ask(answers.Project, "DELETE", f"/projects/{project}/members/{user}")

    def audit(self, project: str | None = None) -> list[answers.AuditRow]:
        """Who did what, the newest first."""
        return self._ask(list[answers.AuditRow], "GET", "/audit", query={"project": project})

    # The testbed

    def inventory(self) -> answers.Inventory:
        """The nodes, channels and slots that are lent."""
        return self._ask(answers.Inventory, "GET", "/inventory")

    def calendar(self, start: str, end: str) -> list[answers.OwnTaken | answers.Taken]:
        """What is held in a window."""
        kind = list[answers.OwnTaken | answers.Taken]
        return self._ask(kind, "GET", "/calendar", query={"from": start, "to": end})

    def violations(self, project: str | None = None) -> list[answers.RecordedViolation]:
        """Violations of grants, the newest first."""
        return self._ask(list[answers.RecordedViolation], "GET", "/violations", query={"project": project})

    # Reservations

    def reservations(self, project: str | None = None, *, past: bool = False) -> list[answers.Reservation]:
        """The reservations of the caller's projects; ``past``: also what is over."""
        query = {"project": project, "past": "true" if past else None}
        return self._ask(list[answers.Reservation], "GET", "/reservations", query=query)

    def reservation(self, identity: str) -> answers.Reservation:
        """A reservation."""
        return self._ask(answers.Reservation, "GET", f"/reservations/{identity}")

    def full_identity(self, begin: str) -> str:
        """Returns the ID that begins so, of the caller's reservations."""
        if len(begin) == _IDENTITY:
            return begin
        found = [one.id for one in self.reservations(past=True) if one.id.startswith(begin)]
        if len(found) != 1:
            said = "several reservations begin" if found else "no reservation begins"
            cure = "airloom grid list --past"
            raise ScenarioError("reservation.unknown", f"{said} with {begin!r}", cure=cure)
        return found[0]

    def check(self, asked: Mapping[str, object]) -> answers.Possible:
        """What a request (:class:`~airloom.grid.messages.Request`) would be granted now."""
        return self._ask(answers.Possible, "POST", "/reservations/check", asked)

    def book(self, asked: Mapping[str, object]) -> answers.Booked | answers.Reservation:
        """Books what a request (:class:`~airloom.grid.messages.Request`) asks for, or lets it wait."""
        kind: Any = answers.Booked | answers.Reservation
        booked: answers.Booked | answers.Reservation = self._ask(kind, "POST", "/reservations", asked)
        return booked

    def grant(self, identity: str) -> answers.Lent:
        """What the holder may use now."""
        return self._ask(answers.Lent, "GET", f"/reservations/{identity}/grant")

    def extend(self, identity: str, end: str) -> answers.Reservation:
        """Moves the end of a reservation to a later time."""
        return self._ask(answers.Reservation, "POST", f"/reservations/{identity}/extend", {"end": end})

    def release(self, identity: str) -> answers.Reservation:
        """Ends a reservation now, or takes a request out of the queue."""
        return self._ask(answers.Reservation, "POST", f"/reservations/{identity}/release")

    def set_live(self, identity: str, url: str | None) -> answers.Reservation:
        """Tells where the run in a reservation can be watched; None if nowhere any more."""
        return self._ask(answers.Reservation, "PUT", f"/reservations/{identity}/live", {"url": url})

    def record_violations(
        self, identity: str, found: Sequence[Violation], unrecorded: int = 0
    ) -> answers.Recorded:
        """Reports violations of a reservation, and how many so far have no record."""
        body = Violations(found=list(found), unrecorded=unrecorded).model_dump(mode="json")
        return self._ask(answers.Recorded, "POST", f"/reservations/{identity}/violations", body)

    def _ask(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, str | None] | None = None,
    ) -> Kind:
        """Calls; an error of the service becomes an error of Airloom with its code and cure."""
        import httpx2

        given = {key: value for key, value in (query or {}).items() if value is not None}
        try:
            answer = self._http.request(method, f"/v1{path}", json=body, params=given)
            said = answer.json()
        except httpx2.HTTPError as error:
            raise HostError(
                "grid.unreachable",
                f"the grid manager does not answer: {error}",
                where=self.login.url,
                cure="is `airloom grid serve` running there?",
            ) from None
        except ValueError:
            raise HostError("grid.unreachable", "this is no grid manager", where=self.login.url) from None
        where = f"{method} {self.login.url}/v1{path}"
        with _understood(where, answer.status_code):
            if answer.is_success:
                return TypeAdapter(kind).validate_python(said)
            refused = answers.Error.model_validate(said)
        raise _error(answer.status_code, refused)


@contextlib.contextmanager
def _understood(where: str, status: int) -> Iterator[None]:
    """Context manager: raises :class:`HostError` for an answer that is not what this version expects."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise HostError(
            "grid.answer",
            f"the answer ({status}) is not understood: {place}{first['msg']}",
            where=where,
            cure="is that a grid manager, of this version of Airloom? (`airloom --version` here and there)",
        ) from None


def _error(status: int, said: answers.Error) -> LabError:
    kind = RunError if status >= 500 or status == 429 else ScenarioError
    error, *further = (
        kind(one.code, one.message, where=one.where, cure=one.cure) for one in (said, *(said.further or ()))
    )
    error.further = tuple(further)
    return error


class LaboratoryClient:
    """The grid manager as a shared laboratory calls it: with the tokens of runs' users."""

    def __init__(self, url: str):
        self.url = url

    def grant_of(self, token: str, reservation: str) -> answers.Lent:
        """Returns the grant of a reservation; an error if it does not stand."""
        with Client(Login(self.url, token)) as client:
            return client.grant(reservation)

    def report(self, token: str, reservation: str, found: Sequence[Violation], unrecorded: int) -> None:
        """Reports violations of a reservation."""
        with Client(Login(self.url, token)) as client:
            client.record_violations(reservation, found, unrecorded)
