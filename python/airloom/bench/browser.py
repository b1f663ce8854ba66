"""Chromium without a window, driven over its debugging pipe: what a page costs to open, and pictures."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.errors import RunError

LIMIT_S = 120.0
"""How long a page may take to open, and to become idle."""
SETTLING_S = 2.0

_TIMES = """(() => {
  const [page] = performance.getEntriesByType("navigation");
  const [first] = performance.getEntriesByName("first-contentful-paint");
  return [document.querySelectorAll("*").length, page.domContentLoadedEventEnd, page.loadEventEnd,
          first ? first.startTime : 0];
})()"""


_SCROLL = """(() => {
  document.documentElement.style.scrollbarWidth = "none";
  const found = [...document.querySelectorAll("h2")].find((one) => one.textContent.startsWith(HEADING));
  scrollTo(0, HEADING && found ? found.offsetTop - 16 : 0);
  return !HEADING || Boolean(found);
})()"""


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening a page took; times are from the start of the navigation, in seconds."""

    elements: int
    """Elements of the document."""
    parsed: float
    """Until DOMContentLoaded."""
    loaded: float
    """Until the end of the load event."""
    painted: float
    """Until the first paint with content."""
    busy: float
    """Processor time of the page's main thread until it was idle."""


class Browser:
    """A running Chromium; a context manager. Raises :class:`RunError` without the program.

    ``dark``: pages are asked for dark colours.
    """

    def __init__(self, *, dark: bool = False) -> None:
        self._scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"

    def __enter__(self) -> Browser:
        program = shutil.which("chromium")
        if program is None:
            raise RunError("bench.browser", "chromium is missing", cure="apt-get install chromium")
        self._profile = tempfile.TemporaryDirectory(prefix="airloom-browser-", ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            [
                # Chromium reads from descriptor 3 and writes to descriptor 4.
                "/bin/sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", program,
                "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
                "--disable-background-networking", "--remote-debugging-pipe", "--window-size=1100,1400",
                self._scheme, f"--user-data-dir={self._profile.name}", "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._in = os.fdopen(ours_in, "rb", buffering=0)
        self._rest = b""
        self._number = 0
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(RunError, BrokenPipeError):
            self._call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()
        self._in.close()
        self._profile.cleanup()

    def open(self, page: Path) -> Opened:
        """Opens a page in a new tab, waits until it is idle, and closes it."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._load(session, page)
        busy = self._idle(session)
        elements, parsed, loaded, painted = self._evaluate(session, _TIMES)
        self._call("Target.closeTarget", targetId=target)
        return Opened(elements, parsed / 1e3, loaded / 1e3, painted / 1e3, busy)

    def picture(self, page: Path | str, heading: str, *, size: tuple[int, int]) -> bytes:
        """Returns a picture (WebP) of a page, a file or a URL, from a heading on; ``size`` in CSS pixels.

        The heading is named by its first words; with none, the picture begins at the top. A page that
        is never idle is taken after :data:`SETTLING_S`.
        """
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        width, height = size
        self._call(
            "Emulation.setDeviceMetricsOverride", session,
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self._load(session, page)
        # Twice: figures that come into sight get their true height.
        for _ in range(2):
            if not self._evaluate(session, _SCROLL.replace("HEADING", json.dumps(heading))):
                raise RunError("bench.browser", f"{page} has no heading that begins with {heading}")
            self._idle(session, SETTLING_S)
        shot = self._call("Page.captureScreenshot", session, format="webp", quality=70)["data"]
        self._call("Target.closeTarget", targetId=target)
        return base64.b64decode(shot)

    def _load(self, session: str, page: Path | str) -> None:
        for domain in ("Page", "Performance"):
            self._call(f"{domain}.enable", session)
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self._call("Page.navigate", session, url=url)
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def _idle(self, session: str, at_most: float = LIMIT_S) -> float:
        """Waits until the main thread did next to nothing for half a second; returns its time, in s."""
        last, end = -1.0, time.monotonic() + at_most
        while True:
            found = self._call("Performance.getMetrics", session)["metrics"]
            busy = float(next(one["value"] for one in found if one["name"] == "TaskDuration"))
            if busy - last < 0.01 or time.monotonic() > end:
                return busy
            last = busy
            time.sleep(0.5)

    def _evaluate(self, session: str, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def _call(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                break
        if "error" in answer:
            raise RunError("bench.browser", f"chromium: {method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], LIMIT_S)[0]:
                raise RunError("bench.browser", f"chromium did not answer within {LIMIT_S:g} s")
            octets = self._in.read(65536)
            if not octets:
                raise RunError("bench.browser", "chromium ended early")
            self._rest += octets
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message
