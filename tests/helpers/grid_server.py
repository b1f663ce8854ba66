"""A grid manager in a process of its own, and a PostgreSQL server of the test's own."""

from __future__ import annotations

import contextlib
import glob
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from helpers import REPOSITORY, forked

WAIT_S = 90


class Server:
    """``airloom grid serve`` on a free port."""

    def __init__(self, inventory: Path, database: str, *options: str):
        self.words = [
            *("grid", "serve", str(inventory), "--port", "0"),
            *("--database", database, "--rate", "100000", "--burst", "100000", *options),
        ]
        self.token = ""
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it accepts calls."""
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python")}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = forked.Started(self.words, Path.cwd(), environment, stderr=self.errors)
        end = time.monotonic() + WAIT_S
        said, self.url = b"", ""
        while not self.url:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            octets = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not octets:
                told = self.told()
                self.kill()
                raise AssertionError(f"it did not start: {said.decode()}{told}")
            said += octets
            for line in said.decode().splitlines(keepends=True):
                if line.startswith("administrator") and line.endswith("\n"):
                    self.token = line.split()[-1]
                if line.startswith("grid manager") and line.endswith("\n"):
                    self.url = line.split()[-1]

    def told(self) -> str:
        """Returns what it wrote to standard error."""
        self.errors.seek(0)
        return self.errors.read().decode()

    def client(self, token: str | None = None) -> httpx2.Client:
        """Returns a client with a token, the administrator's by default."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=WAIT_S, verify=False)

    def must(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Calls, and returns the answer's data; fails if it is refused."""
        with self.client(token) as client:
            answer = client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def kill(self) -> None:
        """Ends it by SIGKILL, wherever it is."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def stop(self) -> int:
        """Ends it in order; returns the exit code."""
        self.process.terminate()
        return self.process.wait(WAIT_S)


class Postgres:
    """A PostgreSQL server with an empty database, on a Unix socket."""

    def __init__(self, programs: Path, folder: Path):
        self.programs = programs
        self.folder = folder
        self.url = f"postgresql://airloom@/postgres?host={folder}"
        # The server refuses to run as root.
        self.become: list[str] = []
        if os.geteuid() == 0:
            self.become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(folder, "postgres", "postgres")
        initdb = [programs / "initdb", "-D", folder / "data", "-U", "airloom", "--auth=trust", "-N"]
        subprocess.run([*self.become, *initdb], check=True, capture_output=True, timeout=WAIT_S, cwd=folder)

    def start(self) -> None:
        """Starts it, and waits until it accepts connections."""
        settings = ("listen_addresses=", f"unix_socket_directories={self.folder}", "max_connections=60")
        options = [word for setting in settings for word in ("-c", setting)]
        self.process = subprocess.Popen(
            [*self.become, self.programs / "postgres", "-D", self.folder / "data", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        end = time.monotonic() + WAIT_S
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", self.folder]).returncode:
            assert time.monotonic() < end
            assert self.process.poll() is None
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends it, with the connections of its clients."""
        self.process.send_signal(signal.SIGINT)  # a "fast" shutdown: it does not wait for clients
        self.process.wait(timeout=WAIT_S)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Starts a PostgreSQL server of the test's own."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not programs:
        pytest.skip("there is no PostgreSQL: apt-get install postgresql")
    # Unix sockets have short paths.
    folder = Path(tempfile.mkdtemp(prefix="airloom-pg-", dir="/tmp"))
    try:
        server = Postgres(Path(programs[-1]), folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
