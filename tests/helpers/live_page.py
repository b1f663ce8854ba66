"""``airloom up --web`` or ``airloom run --web`` in a process of its own, and its events."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from helpers import REPOSITORY, forked

WAIT_S = 90


class Laboratory:
    """The command with ``--web``; ``operator`` and ``viewer`` are the URLs that it printed."""

    def __init__(self, *words: str | Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "SHELL": "/bin/sh"}
        environment["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
        self.process = forked.Started(
            (*map(str, words), "--web"), Path.cwd(), environment,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._said = b""
        self.operator = self._url("live page")
        self.viewer = self._url("read only")

    def _url(self, label: str) -> str:
        assert self.process.stderr is not None
        end = time.monotonic() + WAIT_S
        while (found := re.search(rf"^{label}: (\S+)\n", self._said.decode(), re.MULTILINE)) is None:
            ready, _, _ = select.select([self.process.stderr], [], [], max(0.0, end - time.monotonic()))
            octets = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            if not octets:
                self.kill()
                raise AssertionError(f"it did not start: {self._said.decode()}")
            self._said += octets
        return found[1]

    def type(self, line: str) -> None:
        """Enters a line at the prompt."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def events(self, url: str) -> Iterator[tuple[str, Any]]:
        """Logs in with a URL, and yields the server-sent events until the page ends them."""
        parts = urlsplit(url)
        with contextlib.closing(http.client.HTTPConnection(parts.netloc, timeout=WAIT_S)) as connection:
            connection.request("GET", f"{parts.path}?{parts.query}")
            login = connection.getresponse()
            login.read()
            cookie = login.headers["set-cookie"].partition(";")[0]
            connection.request("GET", f"{parts.path}events", headers={"cookie": cookie})
            kind = ""
            for line in connection.getresponse():
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    kind = rest
                elif word == "data":
                    yield kind, json.loads(rest)

    def end(self) -> int:
        """Ends the prompt's input, and waits for the command; returns its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT_S)

    def kill(self) -> None:
        """Ends it by SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        with self.process:
            self.process.wait(WAIT_S)
