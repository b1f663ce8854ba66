"""The application: routes, authentication, errors, and the thread that serves the queue."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import AwareDatetime
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from airloom import __version__
from airloom.grid import answers, messages
from airloom.grid.access import Caller
from airloom.grid.accounts import Accounts
from airloom.grid.api.gate import VALID, Gate, Rate
from airloom.grid.inventory import Testbed
from airloom.grid.refused import Refused
from airloom.grid.reservations import Reservations
from airloom.grid.violations import Violations
from airloom.scenario.model.base import NAME_PATTERN

WEB = Path(__file__).parent.parent / "web"
FILES = {"": "index.html", "docs": "docs.html"} | {
    name: name for name in ("style.css", "app.js", "calendar.js", "docs.js", "icon.svg")
}
"""The web page's files by path."""
QUEUE_S = 5.0
"""How often the queue is served without an occasion."""

Name = Annotated[str, InPath(pattern=NAME_PATTERN, max_length=63)]
Identity = Annotated[str, InPath(pattern=r"^[0-9a-f]{32}$")]
TokenIdentity = Annotated[str, InPath(pattern=r"^[0-9a-f]{16}$")]
ProjectName = Annotated[str | None, Query(pattern=NAME_PATTERN, max_length=63)]
_REFUSED: dict[int | str, dict[str, Any]] = {"default": {"model": answers.Error, "description": "refused"}}
"""What the description says of all errors."""

_bearer = HTTPBearer(auto_error=False, description="a token of the grid manager: `alg_...`")


def _accounts(request: Request) -> Accounts:
    accounts: Accounts = request.app.state.accounts
    return accounts


def _reservations(request: Request) -> Reservations:
    reservations: Reservations = request.app.state.reservations
    return reservations


def _violations(request: Request) -> Violations:
    violations: Violations = request.app.state.violations
    return violations


def _caller(
    request: Request,
    accounts: Annotated[Accounts, Depends(_accounts)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    caller = accounts.caller(None if given is None else given.credentials)
    setattr(request.state, VALID, True)
    return caller


InAccounts = Annotated[Accounts, Depends(_accounts)]
InReservations = Annotated[Reservations, Depends(_reservations)]
InViolations = Annotated[Violations, Depends(_violations)]
Calling = Annotated[Caller, Depends(_caller)]

api = APIRouter(prefix="/v1", responses=_REFUSED)


@api.get("/health", tags=["service"])
def health(request: Request) -> answers.Health:
    """Whether the service and its database answer."""
    with request.app.state.accounts.database.reading() as session:
        session.connection()
    return answers.Health(version=__version__, testbed=request.app.state.testbed.inventory.name)


@api.get("/me", tags=["accounts"])
def me(accounts: InAccounts, caller: Calling) -> answers.Me:
    """Who calls, with which scopes and roles."""
    return accounts.me(caller)


@api.get("/users", tags=["accounts"])
def users(accounts: InAccounts, caller: Calling) -> list[answers.User]:
    """All users; for administrators."""
    return accounts.users(caller)


@api.post("/users", status_code=201, tags=["accounts"])
def add_user(accounts: InAccounts, caller: Calling, body: messages.NewUser) -> answers.User:
    """Makes a user; for administrators."""
    return accounts.add_user(caller, body)


@api.post("/users/{name}/disable", tags=["accounts"])
def disable_user(accounts: InAccounts, caller: Calling, name: Name) -> answers.User:
    """Shuts a user out; for administrators."""
    return accounts.set_disabled(caller, name, True)


@api.post("/users/{name}/enable", tags=["accounts"])
def enable_user(accounts: InAccounts, caller: Calling, name: Name) -> answers.User:
    """Lets a user in again; for administrators."""
    return accounts.set_disabled(caller, name, False)


@api.post("/users/{name}/tokens", status_code=201, tags=["accounts"])
def add_token_of(
    accounts: InAccounts, caller: Calling, name: Name, body: messages.NewToken
) -> answers.MadeToken:
    """Makes a token of a user; for administrators. Only this answer has it."""
    return accounts.add_token(caller, body, name)


@api.get("/tokens", tags=["accounts"])
def tokens(accounts: InAccounts, caller: Calling) -> list[answers.Token]:
    """The caller's tokens, without their text."""
    return accounts.tokens(caller)


@api.post("/tokens", status_code=201, tags=["accounts"])
def add_token(accounts: InAccounts, caller: Calling, body: messages.NewToken) -> answers.MadeToken:
    """Makes a token of the caller, with no scope that the calling one lacks; only this answer has it."""
    return accounts.add_token(caller, body)


@api.delete("/tokens/{identity}", tags=["accounts"])
def revoke_token(accounts: InAccounts, caller: Calling, identity: TokenIdentity) -> answers.Token:
    """Ends a token."""
    return accounts.revoke_token(caller, identity)


@api.get("/projects", tags=["projects"])
def projects(accounts: InAccounts, caller: Calling) -> list[answers.Project]:
    """The caller's projects."""
    return accounts.projects(caller)


@api.post("/projects", status_code=201, tags=["projects"])
def add_project(accounts: InAccounts, caller: Calling, body: messages.NewProject) -> answers.Project:
    """Makes a project; for administrators."""
    return accounts.add_project(caller, body)


@api.get("/projects/{name}", tags=["projects"])
def project(accounts: InAccounts, caller: Calling, name: Name) -> answers.Project:
    """A project with its quota and members."""
    return accounts.project(caller, name)


@api.put("/projects/{name}/quota", tags=["projects"])
def set_quota(accounts: InAccounts, caller: Calling, name: Name, body: messages.Quota) -> answers.Project:
    """Sets what a project may hold; for administrators."""
    return accounts.set_quota(caller, name, body)


@api.put("/projects/{name}/members/{user}", tags=["projects"])
def set_member(
    accounts: InAccounts, caller: Calling, name: Name, user: Name, body: messages.Membership
) -> answers.Project:
    """Gives a user a role in a project; for its leads."""
    return accounts.set_member(caller, name, user, body)


@api.delete("/projects/{name}/members/{user}", tags=["projects"])
def remove_member(accounts: InAccounts, caller: Calling, name: Name, user: Name) -> answers.Project:
    """Takes a user out of a project; for its leads."""
    return accounts.remove_member(caller, name, user)


@api.get("/audit", tags=["projects"])
def audit(
    accounts: InAccounts,
    caller: Calling,
    project: ProjectName = None,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
) -> list[answers.AuditRow]:
    """Who did what: of a project for its leads, of everything for administrators; newest first."""
    return accounts.audit(caller, project, before)


@api.get("/inventory", tags=["testbed"])
def inventory(request: Request, reservations: InReservations, caller: Calling) -> answers.Inventory:
    """The nodes, channels and slots that are lent; ``noise_dbm`` of a node by channel."""
    caller.must("read")
    noise = reservations.isolation.noise_dbm
    testbed: Testbed = request.app.state.testbed
    said = testbed.inventory
    return answers.Inventory(
        name=said.name,
        description=said.description,
        phy=testbed.phy,
        medium=said.medium.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        channels=tuple(said.channels),
        power_dbm=float(said.power),
        isolation_db=float(said.isolation),
        slots=answers.TimeDivision(
            frame=testbed.frame, length_ns=int(said.slots.length), guard_ns=int(said.slots.guard)
        ),
        nodes={
            name: answers.Node(
                position_m=testbed.place(name),
                radios=tuple(node.radios),
                noise_dbm={str(channel): round(float(at[number]), 2) for channel, at in noise.items()},
            )
            for number, (name, node) in enumerate(testbed.nodes.items())
        },
    )


@api.get("/violations", tags=["testbed"])
def violations(
    found: InViolations, caller: Calling, project: ProjectName = None
) -> list[answers.RecordedViolation]:
    """Violations of grants in the caller's projects, the newest first."""
    return found.listed(caller, project)


@api.get("/calendar", tags=["testbed"])
def calendar(
    reservations: InReservations,
    caller: Calling,
    start: Annotated[AwareDatetime, Query(alias="from")],
    end: Annotated[AwareDatetime, Query(alias="to")],
) -> list[answers.OwnTaken | answers.Taken]:
    """What is held in a window; of other projects only what is taken and when."""
    return reservations.calendar(caller, messages.stamp(start), messages.stamp(end))


@api.get("/reservations", tags=["reservations"])
def listed(
    reservations: InReservations, caller: Calling, project: ProjectName = None, past: bool = False
) -> list[answers.Reservation]:
    """The reservations of the caller's projects."""
    return reservations.listed(caller, project, past=past)


@api.post("/reservations", status_code=201, tags=["reservations"])
def book(
    reservations: InReservations, caller: Calling, body: messages.Request
) -> answers.Booked | answers.Reservation:
    """Books a reservation, or lets it wait. A refusal names the nearest possible window."""
    return reservations.book(caller, body)


@api.post("/reservations/check", tags=["reservations"])
def check(reservations: InReservations, caller: Calling, body: messages.Request) -> answers.Possible:
    """What a request would be granted now; changes nothing."""
    return reservations.check(caller, body)


@api.get("/reservations/{identity}", tags=["reservations"])
def show(reservations: InReservations, caller: Calling, identity: Identity) -> answers.Reservation:
    """A reservation."""
    return reservations.show(caller, identity)


@api.get("/reservations/{identity}/grant", tags=["reservations"])
def grant(reservations: InReservations, caller: Calling, identity: Identity) -> answers.Lent:
    """What the holder may use now; refused outside of the window."""
    return reservations.grant(caller, identity)


@api.post("/reservations/{identity}/extend", tags=["reservations"])
def extend(
    reservations: InReservations, caller: Calling, identity: Identity, body: messages.Extension
) -> answers.Reservation:
    """Moves the end to a later time, with the same grant."""
    return reservations.extend(caller, identity, body)


@api.post("/reservations/{identity}/release", tags=["reservations"])
def release(reservations: InReservations, caller: Calling, identity: Identity) -> answers.Reservation:
    """Ends a reservation now, or takes a request out of the queue."""
    return reservations.release(caller, identity)


@api.put("/reservations/{identity}/live", tags=["reservations"])
def set_live(
    reservations: InReservations, caller: Calling, identity: Identity, body: messages.LivePage
) -> answers.Reservation:
    """Tells the project's members where the run in a reservation can be watched."""
    return reservations.set_live(caller, identity, body.url)


@api.post("/reservations/{identity}/violations", tags=["reservations"])
def record_violations(
    found: InViolations, caller: Calling, identity: Identity, body: messages.Violations
) -> answers.Recorded:
    """Keeps violations of a reservation that its run or the shared laboratory has recorded."""
    return found.record(caller, identity, body)


def create(accounts: Accounts, reservations: Reservations, rate: Rate) -> FastAPI:
    """Returns the application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=_serve_queue, args=(reservations, over), name="queue", daemon=True)
        thread.start()
        yield
        over.set()
        thread.join()

    app = FastAPI(
        title="Airloom grid manager",
        version=__version__,
        description="Lends the radio nodes, channels and slots of a testbed.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.accounts = accounts
    app.state.reservations = reservations
    app.state.violations = Violations(reservations.database, reservations.clock)
    app.state.testbed = reservations.testbed
    app.add_middleware(Gate, rate=rate, valid=accounts.knows)
    app.include_router(api)
    for path, file in FILES.items():
        _serve_file(app, f"/{path}", WEB / file)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(PoolTimeout, _database)
    return app


def _serve_file(app: FastAPI, path: str, file: Path) -> None:
    def serve() -> FileResponse:
        return FileResponse(file)

    app.get(path, include_in_schema=False, name=file.name)(serve)


def _serve_queue(reservations: Reservations, over: threading.Event) -> None:
    while not over.wait(QUEUE_S):
        try:
            reservations.serve_queue()
        except (DBAPIError, PoolTimeout):
            continue  # the database is away; calls say so, and the queue is served when it is back


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    headers = {"www-authenticate": "Bearer"} if error.status == 401 else None
    return JSONResponse(error.answer.plain(), error.status, headers)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first, *further = (_mistake(each) for each in error.errors()[:20])
    return JSONResponse(answers.Error(**dict(first), further=tuple(further)).plain(), 422)


def _mistake(said: Mapping[str, Any]) -> answers.Mistake:
    place, *path = said["loc"]
    code = {"extra_forbidden": "key.unknown", "missing": "key.missing"}.get(said["type"], "value.invalid")
    where = ".".join(str(part) for part in path) or str(place)
    return answers.Mistake(code=code, message=said["msg"].removeprefix("Value error, "), where=where)


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = answers.Error(code=getattr(error, "code", "http"), message=str(error.detail))
    return JSONResponse(said.plain(), error.status_code, getattr(error, "headers", None))


async def _database(_: Request, __: Exception) -> JSONResponse:
    said = answers.Error(code="grid.database", message="the database does not answer", cure="try again")
    return JSONResponse(said.plain(), 503, {"retry-after": "1"})
