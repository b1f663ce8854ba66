"""Asks a grid manager, and keeps where it is and with which token: ``~/.config/airloom/grid.json``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airloom.errors import HostError, LabError, RunError, ScenarioError, writing
from airloom.host.files import content

TIMEOUT_S = 60.0
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
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ScenarioError(
            "grid.url", f"{url!r} is not the URL of a service", where="--url", cure="http://HOST:8400"
        )
    return url.rstrip("/")


class Client:
    """Calls to a grid manager."""

    def __init__(self, login: Login):
        from airloom.grid import require

        require()
        import httpx2

        self.login = login
        headers = {"Authorization": f"Bearer {login.token}"} if login.token else {}
        self._http = httpx2.Client(base_url=login.url, headers=headers, timeout=TIMEOUT_S)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Asks for data."""
        return self._call("GET", path, query=query)

    def post(self, path: str, body: Any = None) -> Any:
        """Sends data."""
        return self._call("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """Sets data."""
        return self._call("PUT", path, body)

    def delete(self, path: str) -> Any:
        """Removes something."""
        return self._call("DELETE", path)

    def _call(self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None) -> Any:
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
        if answer.is_success:
            return said
        raise _error(answer.status_code, said if isinstance(said, dict) else {})


def _error(status: int, said: dict[str, Any]) -> LabError:
    kind = RunError if status >= 500 or status == 429 else ScenarioError
    code, message = str(said.get("code", "grid.answer")), str(said.get("message", f"status {status}"))
    error = kind(code, message, where=said.get("where"), cure=said.get("cure"))
    further = [one for one in said.get("further", ()) if isinstance(one, dict)]
    error.further = tuple(_error(status, one) for one in further)
    return error


class LaboratoryClient:
    """The grid manager as a shared laboratory calls it: with the tokens of runs' users."""

    def __init__(self, url: str):
        self.url = url

    def grant_of(self, token: str, reservation: str) -> dict[str, Any]:
        """Returns the grant of a reservation; an error if it does not stand."""
        with Client(Login(self.url, token)) as client:
            found: dict[str, Any] = client.get(f"/reservations/{reservation}/grant")
        return found

    def report(self, token: str, reservation: str, found: list[dict[str, Any]]) -> None:
        """Reports violations of a reservation."""
        with Client(Login(self.url, token)) as client:
            client.post(f"/reservations/{reservation}/violations", {"found": found})
