"""A grid manager inside the test's process: a clock that the test sets, and users of every role."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from httpx2 import ASGITransport, AsyncClient, Response

from airloom.grid import inventory, service
from airloom.grid.answers import Lent
from airloom.grid.storage.database import Database
from airloom.scenario.source import Source
from helpers import REPOSITORY

SMALL = REPOSITORY / "examples" / "grid" / "small.yaml"
NOON = 1_800_000_000
"""When tests begin: 2027-01-15 08:00 UTC."""

ONE_NODE = """\
name: one
channels: [36, 40]
slots: {frame: 2}
terms: {longest: 24 h, ahead: 240 h, waiting: 3}
nodes: {n: {position: [0 m, 0 m], radios: [w0, w1]}}
"""


def at(hours: float) -> str:
    """The time so many hours after noon, as calls write it."""
    return datetime.fromtimestamp(NOON + round(hours * 3600), UTC).isoformat()


class Manager:
    """A grid manager with a project ``p`` and a project ``q``, and calls to it."""

    def __init__(self, path: Path, text: str | None = None, *, url: str | None = None):
        self.path = path
        self.now = NOON
        self.database = Database(url or str(path))
        bed = inventory.load(SMALL) if text is None else inventory.checked(Source.of_text(text))
        self.service = service.make(bed, self.database, rate=1e6, burst=10**6, clock=lambda: self.now)
        self.runner = asyncio.Runner()
        self.client = AsyncClient(transport=ASGITransport(self.service.app), base_url="http://grid")
        self.admin = self.service.accounts.admin_token()
        for project in ("p", "q"):
            self.must("POST", "/v1/projects", {"name": project})

    def user(self, name: str, role: str | None = None, project: str = "p", **token: Any) -> str:
        """Makes a user with a role in a project; returns a token."""
        self.must("POST", "/v1/users", {"name": name})
        if role is not None:
            self.must("PUT", f"/v1/projects/{project}/members/{name}", {"role": role})
        return self.token(name, **token)

    def token(self, name: str, **token: Any) -> str:
        """Makes a token of a user."""
        said = {"scopes": ["read", "reserve", "manage"], **token}
        text: str = self.must("POST", f"/v1/users/{name}/tokens", said)["token"]
        return text

    def close(self) -> None:
        """Ends the client and closes the database."""
        self.runner.run(self.client.aclose())
        self.runner.close()
        self.database.close()

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Response:
        """Calls with a token, the administrator's by default; ``""`` is none."""
        text = self.admin if token is None else token
        headers = {"Authorization": f"Bearer {text}"} if text else {}
        return self.runner.run(self.client.request(method, path, json=body, headers=headers))

    def must(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Calls, and returns the answer's data; fails if it is refused."""
        answer = self.call(method, path, body, token)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def refused(self, method: str, path: str, body: Any = None, token: str | None = None) -> dict[str, Any]:
        """Calls, and returns the error; fails if it is not refused, or if the call changed anything."""
        before = self.dump()
        answer = self.call(method, path, body, token)
        assert answer.status_code >= 400, answer.text
        assert self.dump() == before
        return {"status": answer.status_code, **answer.json()}

    def refused_booking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Books, and returns the error; fails if it is not refused."""
        answer = self.call("POST", "/v1/reservations", body)
        assert answer.status_code >= 400, answer.text
        said: dict[str, Any] = answer.json()
        return said

    def book(self, hours: tuple[float, float], token: str | None = None, **more: Any) -> Any:
        """Books in project ``p``."""
        return self.must("POST", "/v1/reservations", request(hours, **more), token)

    def dump(self) -> list[str]:
        """Everything that the database holds."""
        from airloom.grid.storage.tables import Table

        with self.database.engine.connect() as connection:
            return [
                repr(tuple(row))
                for table in Table.metadata.sorted_tables
                for row in connection.execute(table.select().order_by(*table.primary_key.columns))
            ]


def lent(
    slice_name: str, grant: dict[str, Any], positions: dict[str, tuple[float, float, float]], **more: Any
) -> Lent:
    """What a grid manager says that the holder of a reservation may use."""
    asked = {
        "nodes": [], "count": len(positions), "area": None, "radios": 1, "channels": [], "channel_count": 1,
        "slots": None, "power_dbm": grant["power_dbm"], "apart": False,
    }  # fmt: skip
    return Lent.model_validate(
        {
            "id": "1" * 32, "project": "p", "user": "u", "slice": slice_name, "state": "active",
            "start": at(0), "end": at(1), "latest": at(0), "created": at(0), "asked": asked, "grant": grant,
            "live": None, "now": at(0), "remaining_s": 3600, "positions": positions, "booked": [], **more,
        }
    )  # fmt: skip


def request(hours: tuple[float, float], **more: Any) -> dict[str, Any]:
    """A request for a window given in hours after noon."""
    return {"project": "p", "slice": "s", "start": at(hours[0]), "end": at(hours[1]), **more}
